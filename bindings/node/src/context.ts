/** What an agent reads: tool results within limits, conversations, tokens, and the budget of a session. */

import { createHmac, randomBytes } from "node:crypto";
import { types } from "node:util";

import { camel, checkNames, copied, json, kind, later, now, onFile, snake, Stateful, type Request } from "./core.js";
import { InvalidInput } from "./errors.js";
import { native, type Input, type NativeOutputs } from "./native.js";

/** The wire formats of requests. */
export type WireFormat = "openai_chat" | "openai_responses" | "anthropic_messages" | "gemini";
/** How many characters of a tool result are shown by default. */
export const MAX_RESULT_CHARS = 200_000;

/**
 * Keeps the full values of capped results, so that a model can read the rest. Without a `path` they are in memory; with one they are
 * in a SQLite file that several processes share. The least recently kept or read values are removed when all have more than
 * `maxBytes`. Handles cannot be guessed, but whoever knows one can read its value.
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

  /** The handle of a value: the same for the same value, so that a conversation that is sent again stays the same. */
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

  /** The full value. Throws `InvalidInput` with the code `unknown_handle` if there is none. */
  get(handle: string): Uint8Array {
    const file = this.#file;
    const value = file ? onFile(() => file.get(handle)) : this.#kept.get(handle);
    if (!value) throw new InvalidInput(`no output is kept under the handle \`${handle}\`; it may have been removed`, "unknown_handle");
    if (!this.#file) {
      // A map is in the order of insertion.
      this.#kept.delete(handle);
      this.#kept.set(handle, value);
    }
    return value;
  }

  /** Answers a call of the tool `endmark_read`: a page, lines, bytes, what a JSON Pointer points to, or matching lines. */
  async read(given: string | object, { maxChars = 20_000 }: { maxChars?: number } = {}): Promise<string> {
    const wanted = typeof given === "string" ? parsed(given) : given;
    const handle: unknown = (wanted as any)?.handle;
    if (typeof handle !== "string") throw new InvalidInput("`handle` is missing: a marker in the result names it", "invalid_part");
    const part = (): Request<string> => ({
      function: "read",
      inputs: [this.get(handle)],
      options: { arguments: snake(wanted), maxChars },
      read: (answer) => answer.for_model,
    });
    return later(part)();
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

function parsed(text: string): object {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new InvalidInput(`the arguments are not JSON: ${String(error)}`, "invalid_part");
  }
}

/** The tool by which a model reads what was left out of a result; `schema` is the JSON Schema of its arguments. */
export interface ReadTool {
  readonly name: string;
  readonly description: string;
  readonly schema: any;
}

export const readTool = now((): Request<ReadTool> => ({ function: "read_tool", inputs: [], options: {}, read: (answer) => answer }));

export interface CapOptions {
  /** At most one of these three; 200,000 characters (code points) without any. */
  maxChars?: number | undefined;
  maxBytes?: number | undefined;
  maxTokens?: number | undefined;
  /** How many items of a list stay, by default 500. */
  maxItems?: number | undefined;
  keep?: "both" | "head" | "tail" | undefined;
  format?: "auto" | "text" | "json" | "jsonl" | "csv" | "diff" | undefined;
  /** Keeps the full value there if anything is left out. */
  outputs?: Outputs | undefined;
}

/** A value within its limits. */
export interface Capped {
  /** The value, or a part of it with visible markers where something is left out. */
  readonly text: string;
  readonly format: string;
  readonly isCut: boolean;
  /** One for each incomplete value: `code`, `field`, `returned_bytes`, `original_bytes`, `handle`, … */
  readonly warnings: readonly any[];
  /** Under what name the full value can be read, if it was kept. */
  readonly handle: string | null;
}

const capping = (value: Input, { outputs, ...options }: CapOptions = {}): Request<Capped> => {
  // Bytes could be changed before they are kept.
  const kept = outputs ? copied(value) : value;
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
 * Shortens a tool's output visibly: JSON stays JSON, lines and rows that report errors stay, sizes are disclosed. Throws
 * `InvalidInput` for limits that leave no room (80 is the least).
 */
export const cap = now(capping);

/** A part of an output. */
export interface Excerpt {
  readonly text: string | null;
  /** The bytes, where they are not text. */
  readonly base64: string | null;
  /** The part as a model reads it, with where it is. */
  readonly forModel: string;
  readonly page: number | null;
  readonly pages: number | null;
  /** UTF-8 bytes of the output, from 0, the end excluded. */
  readonly bytes: readonly [number, number] | null;
  /** Lines of the output, from 1, both included. */
  readonly lines: readonly [number, number] | null;
  readonly matches: number | null;
  readonly warnings: readonly any[];
}

export interface Part {
  page?: number | undefined;
  /** As `10:20`. */
  lines?: string | undefined;
  /** As `0:4096`. */
  bytes?: string | undefined;
  /** A JSON Pointer. */
  pointer?: string | undefined;
  /** A regular expression that lines have to match. */
  grep?: string | undefined;
}

const reading = (value: Input, { maxChars, ...part }: Part & { maxChars?: number } = {}): Request<Excerpt> => ({
  function: "read",
  inputs: [value],
  options: { arguments: { handle: "value", ...snake(part) }, maxChars },
  read: camel,
});

/**
 * Reads a part of an output, by default its first page. Throws `InvalidInput` with the code `no_page`, `bad_range`, `bad_pattern` or
 * `bad_pointer`.
 */
export const read = now(reading);

export interface CompactOptions {
  mode?: "window" | "emergency" | undefined;
  triggerTokens?: number | undefined;
  budgetTokens?: number | undefined;
  /** How many of the newest turns stay, by default 10. */
  keep?: number | undefined;
  /** Condenses to that share of the history, whatever its size. */
  keepShare?: number | undefined;
}

/** A request whose conversation was condensed, if that was needed. */
export interface Compacted<R> {
  readonly request: R;
  /**
   * `tokens_before`, `tokens_after`, `dropped` by kind, `shortened_results`, `over_budget`, `anchors` found and kept by kind, and
   * `not_compacted`: why it stays as it was, or null.
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
 * Condenses the older part of a conversation, without a model. The `window` (24,000 tokens of history, to at most 32,000) keeps the
 * newest 10 turns; the `emergency` brake counts the whole request (850,000 tokens). No tool call loses its result, and the user's task
 * stays. Throws `InvalidInput` if the request is not of its format.
 */
export const compact = now(compaction);

/** How many tokens something has for a model, and what sending it costs. */
export interface Count {
  readonly tokens: number;
  /** Whether the model's own tokenizer counted. */
  readonly exact: boolean;
  readonly countedAs: string;
  /** Dollars to send it, as a decimal number; null for a model without a price. */
  readonly usd: string | null;
  readonly pricesAsOf: string;
}

const counting = (text: unknown, model: string, { format, ...options }: { format?: WireFormat; at?: number } = {}): Request<Count> => ({
  function: "count",
  inputs: [body(text)],
  options: { model, for: format, ...options },
  read: camel,
});

/** Counts the tokens of a text, or of a whole request in a wire `format`. `at` is the second since 1970 whose prices hold. */
export const count = now(counting);

/** The tokens that a provider reports of a call. `prompt` includes `cached`, and `completion` includes `reasoning`. */
export interface Tokens {
  readonly prompt?: number | undefined;
  readonly cached?: number | undefined;
  readonly cacheWrite?: number | undefined;
  readonly completion?: number | undefined;
  readonly reasoning?: number | undefined;
}

/** A call that may be made. Its worst case is held until `afterCall`. */
export interface Admitted {
  readonly id: number;
  /** The limit to send. It is lower than the one that was asked for in a closing call. */
  readonly maxOutputTokens: number;
  /** The session's last call: make it without tools, and ask for a summary of the findings. */
  readonly isClosing: boolean;
  /** The share of the budget that is spent, the first time that it passes a level. */
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
  /** Null without a budget in tokens. */
  readonly tokensLeft: number | null;
}

const budgetOf = now((environment: object): Request<number> => ({
  function: "token_budget",
  inputs: [],
  options: { environment: { ...environment } },
  read: (answer) => answer,
}));

/**
 * What one session may spend, and what it has spent. A budget of 0 means unlimited. The amount is held before each call and settled
 * after it, so that parallel calls cannot exceed the budget.
 */
export class Meter {
  readonly #meter: Stateful;

  constructor(options: { maxTokens?: number; maxUsd?: number } = {}) {
    this.#meter = new Stateful("meter", [], options);
  }

  /** A meter with the budget of `ENDMARK_TOKEN_BUDGET`, else of `SRE_AGENT_TOKEN_BUDGET`, as `850000`, `850,000` or `850_000`. */
  static fromEnvironment(environment: Record<string, string | undefined> = process.env): Meter {
    return new Meter({ maxTokens: budgetOf(environment) });
  }

  /**
   * Asks whether a call may be made, and holds the most that it can cost. `isContinuation`: it continues a cut reply, so it is never the
   * closing call, which is kept for the session's answer. Throws `NotAdmitted`.
   */
  beforeCall(model: string, sizes: { promptTokens: number; maxOutputTokens: number; at?: number; isContinuation?: boolean }): Admitted {
    return camel(this.#meter.call("before_call", [], { model, ...sizes }));
  }

  /**
   * Settles a call: by the `tokens` that its provider reports, else by the `text` that came. Without both it was not answered, and costs
   * nothing.
   */
  afterCall(admitted: Admitted, given: { tokens?: Tokens | undefined; text?: string | undefined; at?: number } = {}): CallCost {
    const { tokens, ...rest } = given;
    if (tokens !== undefined && typeof tokens !== "object") throw new InvalidInput(`\`tokens\` is ${kind(tokens)}`, "invalid_usage");
    return camel(this.#meter.call("after_call", [], { id: admitted.id, tokens: tokens && snake(tokens), ...rest }));
  }

  usage(): Usage {
    const usage = camel(this.#meter.call("usage"));
    return { ...usage, tokens: camel(usage.tokens) };
  }
}

export const contextLater = { cap: later(capping), read: later(reading), compact: later(compaction), count: later(counting) };
