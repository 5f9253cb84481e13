/** Whether a text is whole, how a cut one is closed, and how its parts are joined. */

import { camel, later, now, unit, type Request } from "./core.js";
import { Malformed } from "./errors.js";
import type { Input } from "./native.js";

/** What a text is supposed to be. `marker` is a text that has to end in the `marker` that is named with it. */
export type Format = "json" | "jsonl" | "markdown" | "tags" | "text" | "marker" | "auto";
/** Where a model was asked to continue: at the cut (prefill), after the last valid token (prompt), or not known. */
export type AskedFrom = "cut" | "token" | "unknown";

/** What `detect` found. Offsets index the value that was given: UTF-16 units of a string, bytes of a Uint8Array. */
export interface Detection {
  readonly verdict: "whole" | "truncated" | "malformed";
  /** Up to here everything is settled: none of it can change, whatever follows. */
  readonly truncationIndex: number | null;
  /** The last offset at which every bracket opened so far is closed, or 0. */
  readonly balancedIndex: number | null;
  /** The source of the last settled token; of a string its settled part, at most its last 200 characters. */
  readonly lastValidToken: string | null;
  /** The signs of what is still open, outermost first. */
  readonly open: readonly string[];
  /** The kind of token the cut goes through, such as `string` or `number`. */
  readonly inToken: string | null;
  /** Of a malformed text, its first invalid place. */
  readonly index: number | null;
  readonly reason: string | null;
  /** `mid_sentence`: prose that stops in a sentence. `control_characters`: valid only with raw control characters in strings. */
  readonly hint: string | null;
  /** What `auto` took the text for. */
  readonly detected: string | null;
}

export interface Marked {
  marker?: string | undefined;
}

const detection = (text: Input, format: Format = "auto", options: Marked & { strict?: boolean } = {}): Request<Detection> => ({
  function: "detect",
  inputs: [text],
  options: { format, offsets: unit(text), ...options },
  read: camel,
});

/**
 * Says whether a text is whole, a valid beginning of something longer, or beyond repair. `strict` refuses raw control characters in
 * JSON strings, which models write. Throws `InvalidInput` for an unknown format.
 */
export const detect = now(detection);

const truncation = (text: Input, format: Format = "json", options: Marked = {}): Request<Detection | null> => ({
  ...detection(text, format, options),
  read(answer) {
    if (answer.verdict === "malformed") throw new Malformed(`malformed at ${answer.index}: ${answer.reason}`, "malformed");
    return answer.verdict === "whole" ? null : camel(answer);
  },
});

/** Says where a text is cut, or null if nothing is missing. Throws `Malformed` if no continuation could make the text valid. */
export const detectTruncation = now(truncation);

/** A cut JSON text that was closed without asking for the rest. */
export interface Completed {
  readonly text: string;
  /** Which value of the text the unfinished places are in, from 0. */
  readonly value: number;
  /** Each with its JSON Pointer, empty for the document itself. What is left out had hardly begun. */
  readonly unfinished: readonly { readonly pointer: string; readonly kind: string; readonly leftOut: boolean }[];
  /** How many further places there are between those that are listed. */
  readonly unfinishedOmitted: number;
  /** How many raw control characters in strings were escaped. */
  readonly escaped: number;
}

const completion = (text: Input, format: Format = "json", options: Marked = {}): Request<Completed> => ({
  function: "complete",
  inputs: [text],
  options: { format, offsets: unit(text), ...options },
  read: (answer) => ({ ...camel(answer), unfinished: answer.unfinished.map(camel) }),
});

/** Closes a cut JSON text, and says what in it is unfinished. Throws `Malformed` if the text is not JSON, or has no value yet. */
export const complete = now(completion);

/**
 * The words that ask a model for the rest of its cut reply. A `template` must have the placeholder `{last_valid_token}` and may have
 * `{instruction}`; else it throws `InvalidInput`.
 */
export const buildResumePrompt = now(
  (lastValidToken: string, format: Format = "json", options: Marked & { template?: string | undefined } = {}): Request<string> => ({
    function: "build_resume_prompt",
    inputs: [lastValidToken],
    options: { format, ...options },
    read: (answer) => answer,
  }),
);

/** Where a continuation was joined. */
export interface Seam {
  /** Where its part begins in the merged text, in UTF-16 units. */
  readonly at: number;
  /** How it was joined, such as `exact`, `overlap`, `fence` or `preamble`. */
  readonly style: string;
  /** UTF-8 bytes of both sides that are not in the merged text. */
  readonly droppedBytes: number;
  /** The beginning of those, at most 80 characters. */
  readonly dropped: string;
  /** The share of the evidence for this seam, 0 to 1. */
  readonly confidence: number;
  /** Other plausible seams that give a different value. */
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
  read: ({ text, seam, verdict }) => ({ text, seam: camel(seam), verdict: camel(verdict) }),
});

/**
 * Joins a cut text with its continuation, where that is certain. Throws `MergeError`, which has everything received, if no seam is
 * certain or the text is still not whole.
 */
export const mergeChunks = now(merging);

/** What became of several parts. */
export interface Stitched {
  readonly outcome: "whole" | "ambiguous" | "error";
  /** The whole text, the best candidate, or the longest verified beginning. */
  readonly text: string;
  readonly seams: readonly Seam[];
  /** Why it is not whole. */
  readonly error: { readonly code: string; readonly message: string } | null;
}

const stitching = (parts: readonly string[], format: Format = "auto", { askedFrom: from = "unknown", ...options }: MergeOptions = {}): Request<Stitched> => ({
  function: "stitch",
  inputs: [...parts],
  options: { format, from, offsets: "utf16", ...options },
  read: (answer) => ({ ...answer, seams: answer.seams.map(camel) }),
});

/** Joins a first part and its continuations in order. What one continuation leaves open the next may decide. */
export const stitch = now(stitching);

export const textsLater = {
  detect: later(detection),
  detectTruncation: later(truncation),
  complete: later(completion),
  mergeChunks: later(merging),
  stitch: later(stitching),
};
