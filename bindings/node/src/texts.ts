/** Detects cut texts, closes cut JSON, and joins the parts of a text. */

import { camelNames, makeAsync, makeSync, offsetUnit, type Request } from "./core.js";
import { Malformed } from "./errors.js";
import type { Input } from "./native.js";

/** The required format of a text. `marker` is a text that must end with the given `marker`. */
export type Format = "json" | "jsonl" | "markdown" | "tags" | "text" | "marker" | "auto";
/** Where a model was asked to continue: at the cut (prefill), after the last valid token (prompt), or unknown. */
export type AskedFrom = "cut" | "token" | "unknown";

/** The result of `detect`. Offsets index the value that was passed: UTF-16 units of a string, bytes of a Uint8Array. */
export interface Detection {
  readonly verdict: "whole" | "truncated" | "malformed";
  /** The offset up to which no further text can change the parsed content. */
  readonly truncationIndex: number | null;
  /** The last offset at which every bracket opened so far is closed, or 0. */
  readonly balancedIndex: number | null;
  /** The source text of the last token that is certain. For a string: its certain part, at most the last 200 characters. */
  readonly lastValidToken: string | null;
  /** The opening characters of everything that is still open, outermost first. */
  readonly open: readonly string[];
  /** The kind of the token that is cut, such as `string` or `number`. */
  readonly inToken: string | null;
  /** The offset of the first invalid character in a malformed text. */
  readonly index: number | null;
  readonly reason: string | null;
  /** `mid_sentence`: prose ends inside a sentence. `control_characters`: strings contain raw control characters. */
  readonly hint: string | null;
  /** The format that `auto` detected. */
  readonly detected: string | null;
}

export interface Marked {
  marker?: string | undefined;
}

const detection = (text: Input, format: Format = "auto", options: Marked & { strict?: boolean } = {}): Request<Detection> => ({
  function: "detect",
  inputs: [text],
  options: { format, offsets: offsetUnit(text), ...options },
  read: camelNames,
});

/**
 * Detects whether a text is whole, truncated or malformed. `strict` rejects raw control characters in JSON strings, which models often
 * write. Throws `InvalidInput` for an unknown format.
 */
export const detect = makeSync(detection);

const truncation = (text: Input, format: Format = "json", options: Marked = {}): Request<Detection | null> => ({
  ...detection(text, format, options),
  read(answer) {
    if (answer.verdict === "malformed") throw new Malformed(`malformed at ${answer.index}: ${answer.reason}`, "malformed");
    return answer.verdict === "whole" ? null : camelNames(answer);
  },
});

/** Returns where a text is cut, or null if nothing is missing. Throws `Malformed` if no continuation could make the text valid. */
export const detectTruncation = makeSync(truncation);

/** A cut JSON text that was closed without asking for the rest. */
export interface Completed {
  readonly text: string;
  /** The number of the top-level value that contains the unfinished ones, from 0. */
  readonly value: number;
  /** The unfinished values with their JSON Pointers. The pointer of the document itself is empty. If `leftOut`, the text lacks the value. */
  readonly unfinished: readonly { readonly pointer: string; readonly kind: string; readonly leftOut: boolean }[];
  /** The number of further unfinished values that are not listed. */
  readonly unfinishedOmitted: number;
  /** The number of raw control characters in strings that were escaped. */
  readonly escaped: number;
}

const completion = (text: Input, format: Format = "json", options: Marked = {}): Request<Completed> => ({
  function: "complete",
  inputs: [text],
  options: { format, offsets: offsetUnit(text), ...options },
  read: (answer) => ({ ...camelNames(answer), unfinished: answer.unfinished.map(camelNames) }),
});

/** Closes a cut JSON text, and lists its unfinished values. Throws `Malformed` if the text is not JSON, or has no value yet. */
export const complete = makeSync(completion);

/**
 * Returns the prompt that asks a model for the rest of its cut reply. A `template` must contain the placeholder `{last_valid_token}` and
 * may contain `{instruction}`. Otherwise throws `InvalidInput`.
 */
export const buildResumePrompt = makeSync(
  (lastValidToken: string, format: Format = "json", options: Marked & { template?: string | undefined } = {}): Request<string> => ({
    function: "build_resume_prompt",
    inputs: [lastValidToken],
    options: { format, ...options },
    read: (answer) => answer,
  }),
);

/** Where a continuation was joined. */
export interface Seam {
  /** The offset in the merged text at which the continuation begins, in UTF-16 units. */
  readonly at: number;
  /** How it was joined, such as `exact`, `overlap`, `fence` or `preamble`. */
  readonly style: string;
  /** The number of UTF-8 bytes of both parts that are not in the merged text. */
  readonly droppedBytes: number;
  /** The beginning of the dropped text, at most 80 characters. */
  readonly dropped: string;
  /** The share of the evidence that supports this seam, from 0 to 1. */
  readonly confidence: number;
  /** The number of other plausible seams that yield a different value. */
  readonly alternatives: number;
}

/** Two parts that were joined to a verified text. */
export interface Merged {
  readonly text: string;
  readonly seam: Seam;
  readonly verdict: Detection;
}

export interface MergeOptions extends Marked {
  askedFrom?: AskedFrom;
}

const merging = (initial: string, continuation: string, format: Format = "json", { askedFrom: from = "unknown", ...options }: MergeOptions = {}): Request<Merged> => ({
  function: "merge_chunks",
  inputs: [initial, continuation],
  options: { format, from, offsets: "utf16", ...options },
  read: ({ text, seam, verdict }) => ({ text, seam: camelNames(seam), verdict: camelNames(verdict) }),
});

/**
 * Joins a cut text with its continuation, if the seam is certain. Throws `MergeError`, which contains everything received, if no seam is
 * certain or the text is still cut.
 */
export const mergeChunks = makeSync(merging);

/** The result of joining several parts. */
export interface Stitched {
  readonly outcome: "whole" | "ambiguous" | "error";
  /** The whole text, the best candidate, or the longest verified beginning. */
  readonly text: string;
  readonly seams: readonly Seam[];
  /** Why the text is not whole. */
  readonly error: { readonly code: string; readonly message: string } | null;
}

const stitching = (parts: readonly string[], format: Format = "auto", { askedFrom: from = "unknown", ...options }: MergeOptions = {}): Request<Stitched> => ({
  function: "stitch",
  inputs: [...parts],
  options: { format, from, offsets: "utf16", ...options },
  read: (answer) => ({ ...answer, seams: answer.seams.map(camelNames) }),
});

/** Joins a first part and its continuations in order. A later continuation may resolve an ambiguous seam. */
export const stitch = makeSync(stitching);

export const textsLater = {
  detect: makeAsync(detection),
  detectTruncation: makeAsync(truncation),
  complete: makeAsync(completion),
  mergeChunks: makeAsync(merging),
  stitch: makeAsync(stitching),
};
