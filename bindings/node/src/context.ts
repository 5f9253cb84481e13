/** Caps tool results, condenses conversations, counts tokens, and enforces the budget of a session. */

import { createHmac, randomBytes } from "node:crypto";
import { types } from "node:util";

import { camelNames, checkNames, copyInput, json, kind, makeAsync, makeSync, onFile, snakeNames, Stateful, type Request } from "./core.js";
import { InvalidInput } from "./errors.js";
import { native, type Input, type NativeOutputs } from "./native.js";

/** The wire formats of requests. */
export type WireFormat = "openai_chat" | "openai_responses" | "anthropic_messages" | "gemini";
/** The default limit of a tool result, in characters. */
export const MAX_RESULT_CHARS = 200_000;

/**
 * Keeps the full values of capped results, so that a model can read the rest. Without a `path` they are kept in memory. With a `path`
 * they are in a SQLite file, which several processes can share. If all values together exceed `maxBytes`, the least recently used ones are
 * removed. Handles cannot be guessed, but a handle is enough to read its value.
 */
export class Outputs {
  readonly #kept = new Map<string, Uint8Array>();
  readonly #file: NativeOutputs | undefined;
  readonly #maxBytes: number;
  readonly #secret = randomBytes(32);
  #bytes = 0;

  constructor(path?: string, options: { maxBytes?: number } = {}) {
    checkNames(options, ["maxBytes"]);
    const { maxBytes = 64 << 20 } = options;
    this.#maxBytes = maxBytes;
    if (path !== undefined) this.#file = onFile(() => new native.OutputsFile(path, maxBytes));
  }

  /** Returns the handle of a value. It depends only on the value, so that a repeated conversation stays the same. */
  handle(value: Input): string {
    return createHmac("sha256", this.#secret).update(value).digest("hex").slice(0, 16);
  }

  /** Keeps a value under a handle. */
  keep(handle: string, value: Input): void {
    const bytes = typeof value === "string" ? Buffer.from(value) : value;
    const file = this.#file;
    if (file) return onFile(() => file.keep(handle, bytes));
    this.#remove(handle);
    this.#kept.set(handle, bytes);
    this.#bytes += bytes.length;
    for (const oldest of this.#kept.keys()) {
      if (this.#bytes <= this.#maxBytes || oldest === handle) return;
      this.#remove(oldest);
    }
  }

  /** Returns the full value. Throws `InvalidInput` with the code `unknown_handle` if there is none. */
  get(handle: string): Uint8Array {
    const file = this.#file;
    const value = file ? onFile(() => file.get(handle)) : this.#kept.get(handle);
    if (!value) throw new InvalidInput(`no output is kept under the handle \`${handle}\`; it may have been removed`, "unknown_handle");
    if (!this.#file) {
      // A Map iterates in insertion order, so insert the value again as the newest.
      this.#kept.delete(handle);
      this.#kept.set(handle, value);
    }
    return value;
  }

  /** Answers a call of the tool `endmark_read`: a page, lines, bytes, the target of a JSON Pointer, or matching lines. */
  async read(given: string | object, { maxChars = 20_000 }: { maxChars?: number } = {}): Promise<string> {
    const wanted = typeof given === "string" ? parseArguments(given) : given;
    const handle: unknown = (wanted as any)?.handle;
    if (typeof handle !== "string") throw new InvalidInput("`handle` is missing: a marker in the result names it", "invalid_part");
    const part = (): Request<string> => ({
      function: "read",
      inputs: [this.get(handle)],
      options: { arguments: snakeNames(wanted), maxChars },
      read: (answer) => answer.for_model,
    });
    return makeAsync(part)();
  }

  close(): void {
    this.#file?.close();
    this.#kept.clear();
    this.#bytes = 0;
  }

  #remove(handle: string): void {
    this.#bytes -= this.#kept.get(handle)?.length ?? 0;
    this.#kept.delete(handle);
  }
}

function parseArguments(text: string): object {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new InvalidInput(`the arguments are not JSON: ${String(error)}`, "invalid_part");
  }
}

/** The tool with which a model reads omitted parts of a result. `schema` is the JSON Schema of its arguments. */
export interface ReadTool {
  readonly name: string;
  readonly description: string;
  readonly schema: any;
}

export const readTool = makeSync((): Request<ReadTool> => ({ function: "read_tool", inputs: [], options: {}, read: (answer) => answer }));

export interface CapOptions {
  /** At most one of these three limits. The default is 200,000 characters (code points). */
  maxChars?: number | undefined;
  maxBytes?: number | undefined;
  maxTokens?: number | undefined;
  /** The maximum number of items of a list, by default 500. */
  maxItems?: number | undefined;
  keep?: "both" | "head" | "tail" | undefined;
  format?: "auto" | "text" | "json" | "jsonl" | "csv" | "diff" | undefined;
  /** Where the full value is kept if it is shortened. */
  outputs?: Outputs | undefined;
}

/** A value within its limits. */
export interface Capped {
  /** The value, or a shortened value with visible markers where parts are omitted. */
  readonly text: string;
  readonly format: string;
  readonly isCut: boolean;
  /** One warning for each incomplete value: `code`, `field`, `returned_bytes`, `original_bytes`, `handle`, … */
  readonly warnings: readonly any[];
  /** The name with which the full value can be read, if it was kept. */
  readonly handle: string | null;
}

const capping = (value: Input, { outputs, ...options }: CapOptions = {}): Request<Capped> => {
  // Copy the bytes, because the caller could change them before they are kept.
  const kept = outputs ? copyInput(value) : value;
  const handle = outputs ? outputs.handle(kept) : null;
  return {
    function: "cap",
    inputs: [kept],
    options: { ...options, handle, tool: outputs !== undefined },
    read({ text, format, is_cut: isCut, warnings }) {
      if (isCut && handle !== null) outputs?.keep(handle, kept);
      return { text, format, isCut, warnings, handle: isCut ? handle : null };
    },
  };
};

/**
 * Shortens a tool's output with visible markers. JSON stays valid, and lines and rows that report errors are kept. Throws `InvalidInput`
 * for limits that are too low (the lowest is 80).
 */
export const cap = makeSync(capping);

/** A part of an output. */
export interface Excerpt {
  readonly text: string | null;
  /** The bytes, if they are not text. */
  readonly base64: string | null;
  /** The part as a model reads it, with its position. */
  readonly forModel: string;
  readonly page: number | null;
  readonly pages: number | null;
  /** The range of UTF-8 bytes, from 0, without the end. */
  readonly bytes: readonly [number, number] | null;
  /** The first and the last line, from 1. */
  readonly lines: readonly [number, number] | null;
  readonly matches: number | null;
  readonly warnings: readonly any[];
}

export interface Part {
  page?: number | undefined;
  /** A range of lines: `10:20`. */
  lines?: string | undefined;
  /** A range of bytes: `0:4096`. */
  bytes?: string | undefined;
  /** A JSON Pointer. */
  pointer?: string | undefined;
  /** A regular expression. Only matching lines are returned. */
  grep?: string | undefined;
}

const reading = (value: Input, { maxChars, ...part }: Part & { maxChars?: number } = {}): Request<Excerpt> => ({
  function: "read",
  inputs: [value],
  options: { arguments: { handle: "value", ...snakeNames(part) }, maxChars },
  read: camelNames,
});

/**
 * Reads a part of an output, by default its first page. Throws `InvalidInput` with the code `no_page`, `bad_range`, `bad_pattern` or
 * `bad_pointer`.
 */
export const read = makeSync(reading);

export interface CompactOptions {
  mode?: "window" | "emergency" | undefined;
  triggerTokens?: number | undefined;
  budgetTokens?: number | undefined;
  /** The number of newest turns that are kept, by default 10. */
  keep?: number | undefined;
  /** Condenses the history to this share, whatever its size. */
  keepShare?: number | undefined;
}

/** A request after its conversation was condensed, if that was needed. */
export interface Compacted<R> {
  readonly request: R;
  /**
   * `tokens_before`, `tokens_after`, `dropped` by kind, `shortened_results`, `over_budget`, `anchors` found and kept by kind, and
   * `not_compacted`: why the request is unchanged, or null.
   */
  readonly receipt: any;
  readonly isCompacted: boolean;
}

function body(request: unknown): Input {
  if (types.isUint8Array(request) || typeof request === "string") return request;
  if (typeof request === "object" && request !== null) return json(request);
  throw new InvalidInput(`expected a string, a Uint8Array or a request, not ${kind(request)}`, "invalid_argument");
}

const compaction = <R = any>(request: R, format: WireFormat, options: CompactOptions = {}): Request<Compacted<R>> => ({
  function: "compact",
  inputs: [body(request)],
  options: { for: format, ...options },
  read: (answer) => ({ ...answer, isCompacted: answer.receipt.not_compacted === null }),
});

/**
 * Condenses the older part of a conversation, without a model. `window` starts above 24,000 tokens of history, condenses it to at most
 * 32,000 and keeps the newest 10 turns. `emergency` starts above 850,000 tokens of the whole request. The user's task is kept, and so is
 * the result of each tool call. Throws `InvalidInput` if the request does not have the format.
 */
export const compact = makeSync(compaction);

/** The number of tokens of a text or request for a model, and its price. */
export interface Count {
  readonly tokens: number;
  /** Whether the model's own tokenizer counted the tokens. */
  readonly exact: boolean;
  readonly countedAs: string;
  /** The price in dollars, as a decimal number; null for a model without a known price. */
  readonly usd: string | null;
  readonly pricesAsOf: string;
}

const counting = (text: unknown, model: string, { format, ...options }: { format?: WireFormat; at?: number } = {}): Request<Count> => ({
  function: "count",
  inputs: [body(text)],
  options: { model, for: format, ...options },
  read: camelNames,
});

/** Counts the tokens of a text, or of a whole request in a wire `format`. Prices are those at the time `at`, in seconds since 1970. */
export const count = makeSync(counting);

/** The tokens of a call, as the provider reports them. `prompt` includes `cached`, and `completion` includes `reasoning`. */
export interface Tokens {
  readonly prompt?: number | undefined;
  readonly cached?: number | undefined;
  readonly cacheWrite?: number | undefined;
  readonly completion?: number | undefined;
  readonly reasoning?: number | undefined;
}

/** An admitted call. Its maximum cost is held until `afterCall`. */
export interface Admitted {
  readonly id: number;
  /** The output limit to send. In a closing call it may be lower than the requested one. */
  readonly maxOutputTokens: number;
  /** Whether this is the session's last call: make it without tools, and ask for a summary of the findings. */
  readonly isClosing: boolean;
  /** The spent share of the budget, if a warning level was passed for the first time. */
  readonly warningPercent: number | null;
}

export interface CallCost {
  readonly tokens: number;
  readonly usd: string | null;
  readonly isEstimated: boolean;
}

/** What a session has used so far. */
export interface Usage {
  readonly calls: number;
  readonly estimatedCalls: number;
  readonly unpricedCalls: number;
  readonly tokens: Required<Tokens>;
  readonly usd: string;
  readonly heldTokens: number;
  /** The remaining tokens, or null without a budget in tokens. */
  readonly tokensLeft: number | null;
}

const budgetOf = makeSync((environment: object): Request<number> => ({
  function: "token_budget",
  inputs: [],
  options: { environment: { ...environment } },
  read: (answer) => answer,
}));

/**
 * The budget of one session and its usage so far. A budget of 0 means unlimited. The maximum cost of a call is held before it and settled
 * after it, so that parallel calls cannot exceed the budget.
 */
export class Meter {
  readonly #meter: Stateful;

  constructor(options: { maxTokens?: number; maxUsd?: number } = {}) {
    this.#meter = new Stateful("meter", [], options);
  }

  /** Creates a meter with the budget of `ENDMARK_TOKEN_BUDGET` or else `SRE_AGENT_TOKEN_BUDGET`, such as `850,000` or `850_000`. */
  static fromEnvironment(environment: Record<string, string | undefined> = process.env): Meter {
    return new Meter({ maxTokens: budgetOf(environment) });
  }

  /**
   * Admits a call and holds its maximum cost, or throws `NotAdmitted`. `isContinuation` means that the call continues a cut reply. Such a
   * call is never the closing call, which is kept for the session's answer.
   */
  beforeCall(model: string, sizes: { promptTokens: number; maxOutputTokens: number; at?: number; isContinuation?: boolean }): Admitted {
    return camelNames(this.#meter.call("before_call", [], { model, ...sizes }));
  }

  /**
   * Settles a call with the `tokens` that its provider reports, or else with the received `text`. Without both, the call was not answered
   * and costs nothing.
   */
  afterCall(admitted: Admitted, given: { tokens?: Tokens | undefined; text?: string | undefined; at?: number } = {}): CallCost {
    const { tokens, ...rest } = given;
    if (tokens !== undefined && typeof tokens !== "object") throw new InvalidInput(`\`tokens\` is ${kind(tokens)}`, "invalid_usage");
    return camelNames(this.#meter.call("after_call", [], { id: admitted.id, tokens: tokens && snakeNames(tokens), ...rest }));
  }

  usage(): Usage {
    const usage = camelNames(this.#meter.call("usage"));
    return { ...usage, tokens: camelNames(usage.tokens) };
  }
}

export const contextLater = { cap: makeAsync(capping), read: makeAsync(reading), compact: makeAsync(compaction), count: makeAsync(counting) };
