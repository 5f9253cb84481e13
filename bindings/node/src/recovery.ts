/** The recovery of a cut reply around any client: detect, ask for the rest, join, validate, correct. */

import { camel, json, kind, onFile, snake, Stateful } from "./core.js";
import { EndmarkError, InvalidInput, InvalidReply, NotResumed, ResumeExhausted } from "./errors.js";
import { native, type NativeLog } from "./native.js";
import type { Format, Seam } from "./texts.js";

/** How many continuations are asked for by default. */
export const MAX_RESUME_ATTEMPTS = 2;
/** How many corrections are asked for by default. */
export const MAX_CORRECTION_ATTEMPTS = 1;

/**
 * How a continuation was asked for: `prompted` by `Ask.prompt`; `exact` where the server provably continued the very message
 * (prefill); `cut`, `token` or `unknown` where only the text can tell.
 */
export type Join = "prompted" | "exact" | "in_message" | "shown" | "cut" | "token" | "unknown";

/** One reply of a model, as it was received. */
export interface Reply {
  readonly text: string;
  /**
   * Why the model stopped, in its provider's word, such as `length`, `max_tokens`, `stop` or `end_turn`. Without it, and without an
   * `ending`, the stream is taken for dropped.
   */
  readonly stop?: string | null | undefined;
  readonly outputTokens?: number | null | undefined;
  /** The limit of output tokens that was sent. A reply that reaches it is cut, whatever its stop reason. */
  readonly limit?: number | null | undefined;
  /** Whether the model reasoned. A reply without text is then cut, not empty. */
  readonly reasoned?: boolean | undefined;
  readonly ending?: "clean" | "dropped" | "stalled" | "upstream_error" | null | undefined;
  /** Of a continuation: how it was asked for, by default `prompted`. */
  readonly join?: Join | undefined;
}

/** A message in the form of Chat Completions. */
export interface Message {
  readonly role: string;
  readonly content: unknown;
}

/** A continuation to ask for. */
export class Ask {
  readonly step = "resume";
  /** From 1. */
  declare readonly attempt: number;
  /** The kind of cut: `limit`, `dropped`, `format`, `marker`, `empty` or `window`. */
  declare readonly cut: string;
  /**
   * `rest`: the rest of `soFar`. `again` and `restart`: the whole reply, by the same request; `again` after a reply without text, with
   * a higher output limit.
   */
  declare readonly wanted: "rest" | "again" | "restart";
  /** What was received so far. */
  declare readonly soFar: string;
  /** How many UTF-16 units of it the model is to be shown as its own reply. */
  declare readonly shown: number;
  /** What to ask for. */
  declare readonly prompt: string;

  constructor(step: object) {
    Object.assign(this, step);
  }

  get shownText(): string {
    return this.soFar.slice(0, this.shown);
  }

  /** The messages to send: those of the first request, the shown text, and the prompt. */
  messages<M>(history: readonly M[]): (M | Message)[] {
    return this.wanted === "rest" ? [...history, ...asked(this.shownText, this.prompt)] : [...history];
  }
}

/** A corrected document to ask for. */
export class Correction {
  readonly step = "correct";
  declare readonly attempt: number;
  /** The problems, and that the whole document is wanted. */
  declare readonly prompt: string;
  /** What to show the model as its own reply. */
  declare readonly text: string;

  constructor(step: object) {
    Object.assign(this, step);
  }

  /** The messages to send. */
  messages<M>(history: readonly M[]): (M | Message)[] {
    return [...history, ...asked(this.text, this.prompt)];
  }
}

function asked(shown: string, prompt: string): Message[] {
  return [
    { role: "assistant", content: shown },
    { role: "user", content: prompt },
  ];
}

/**
 * A client throws it where a request brought no answer; any other error ends the recovery and reaches the caller. `rejected`: this
 * form of request was refused, another one may work. `lost`: no answer came, which counts as an attempt. `final`: refused permanently.
 */
export class AskFailed extends EndmarkError {
  constructor(
    message: string,
    readonly kind: "rejected" | "lost" | "final" | "budget" = "lost",
    options: { cause?: unknown } = {},
  ) {
    super(message, kind);
    this.cause = options.cause;
  }
}

/** A reply that is whole, and how it became so. */
export interface Outcome {
  readonly text: string;
  readonly result: "whole" | "resumed" | "restarted" | "corrected";
  readonly attempts: number;
  readonly corrections: number;
  /** The kind of cut of the first reply, if it was cut. */
  readonly cut: string | null;
  /** It was dropped or stopped by its limit, and is whole all the same. */
  readonly disclosed: boolean;
  readonly seams: readonly Seam[];
}

/** What the log has of a cut reply; sizes are UTF-8 bytes. */
export interface LogRow {
  readonly truncation_index: number | null;
  readonly initial_chunk_length: number;
  readonly resume_attempts: number;
  readonly final_status: "RESOLVED" | "EXHAUSTED";
}

/** Where rows about cut replies go. */
export interface Logger {
  write(row: LogRow, taskId: string, turnNumber: number): Promise<void> | void;
}

/**
 * Writes one row for each cut reply into the table `partial_completion_log` of a SQLite file. The file may be that of a gateway, and
 * several processes and workers may write to it.
 */
export class Log implements Logger {
  readonly #file: NativeLog;

  constructor(path: string) {
    this.#file = onFile(() => new native.LogFile(path));
  }

  async write(row: LogRow, taskId: string, turnNumber: number): Promise<void> {
    await onFile(() => this.#file.write(json(row), taskId, turnNumber));
  }

  close(): void {
    this.#file.close();
  }
}

export interface PipelineOptions {
  /** What a reply has to be, by default `json`. Null demands nothing: only the provider's word and the stream's end count. */
  format?: Format | null | undefined;
  marker?: string | undefined;
  /** A JSON Schema; nothing that it refers to is fetched. */
  schema?: object | undefined;
  maxAttempts?: number | undefined;
  maxCorrections?: number | undefined;
  /** Whether a reply may be generated again as the last attempt. `same`: only with the same complete values. */
  restart?: "any" | "same" | "off" | undefined;
  /** `best` takes the likeliest of several seams. */
  onAmbiguous?: "stop" | "best" | undefined;
  /** The words that ask for the rest, with the placeholder `{last_valid_token}`. */
  prompt?: string | undefined;
  log?: Logger | undefined;
}

export interface RunOptions {
  taskId?: string | undefined;
  turnNumber?: number | undefined;
  /** The reply's reader has it already, so that it can only be extended. */
  isSent?: boolean | undefined;
}

/** Takes replies through their stages: truncation resume, schema validation, formatting correction. In this order, always. */
export class Pipeline {
  readonly #options: object;
  readonly #log: Logger | undefined;

  constructor({ log, format = "json", ...options }: PipelineOptions = {}) {
    this.#options = { format, maxAttempts: MAX_RESUME_ATTEMPTS, maxCorrections: MAX_CORRECTION_ATTEMPTS, offsets: "utf16", ...options };
    this.#log = log;
  }

  /**
   * Makes a reply whole and valid. `ask` is called for each continuation and correction. Rejects with `ResumeExhausted`, `NotResumed`
   * or `InvalidReply`, and with whatever `ask` throws except `AskFailed`.
   */
  async run(ask: (request: Ask | Correction) => Promise<Reply> | Reply, first: Reply, options: RunOptions = {}): Promise<Outcome> {
    const { taskId = "", turnNumber = 1, ...rest } = options;
    const { join: _, ...reply } = received("the first reply", first);
    const recovery = new Stateful("recovery", [first.text], { ...this.#options, ...rest, reply: snake(reply) });
    let step = await recovery.later("next");
    let cause: unknown;
    try {
      while (step.step !== "done") {
        const request = step.step === "resume" ? new Ask(camel(step)) : new Correction(camel(step));
        try {
          const answer = await ask(request);
          const { join = "prompted", ...reply } = received("what `ask` returned", answer);
          if (request instanceof Correction) step = await recovery.later("corrected", [answer.text], reply);
          else step = await recovery.later("resumed", [answer.text], { reply: snake(reply), join });
        } catch (failure) {
          if (!(failure instanceof AskFailed)) throw failure;
          cause = failure.cause ?? failure;
          step = recovery.call("failed", [failure.message], { kind: failure.kind });
        }
      }
    } catch (error) {
      // The reply stays cut, and the log has a row for it.
      while (step.step !== "done") step = recovery.call("failed", ["the caller left"], { kind: "final" });
      await this.#write(step.log, taskId, turnNumber);
      throw error;
    }
    await this.#write(step.log, taskId, turnNumber);
    return outcome(step, cause, first.stop ?? undefined);
  }

  async #write(row: LogRow | null, taskId: string, turnNumber: number): Promise<void> {
    if (row) await this.#log?.write(row, taskId, turnNumber);
  }
}

/** What the addon is given of a reply beside its text. */
function received(what: string, reply: Reply): Omit<Reply, "text"> {
  if (typeof reply?.text !== "string") {
    const found = reply == null || typeof reply !== "object" ? kind(reply) : `a value whose \`text\` is ${kind(reply.text)}`;
    throw new InvalidInput(`${what} is not a reply with a \`text\`, but ${found}`, "invalid_reply");
  }
  const { text: _, ...rest } = reply;
  return rest;
}

function outcome(done: any, cause: unknown, stop: string | undefined): Outcome {
  if (done.exhausted) {
    const { reason, cause: code, verified_len: verifiedLength, ...exhausted } = done.exhausted;
    throw new ResumeExhausted(reason, code, { ...camel(exhausted), verifiedLength, text: done.text }, cause);
  }
  if (done.result === "passed") throw new NotResumed(done.text, done.passed, stop);
  if (done.result === "invalid") throw new InvalidReply(done.text, done.problems);
  const { text, result, attempts, corrections, cut, disclosed, seams } = done;
  return { text, result, attempts, corrections, cut, disclosed, seams: seams.map(camel) };
}

/**
 * Asks for the rest of a cut reply, and joins it. Rejects with `ResumeExhausted` if it stays cut, `NotResumed` if the provider refused
 * it, and `InvalidReply` if it is not cut but not valid either.
 */
export async function resumeIfTruncated(
  ask: (request: Ask) => Promise<Reply> | Reply,
  first: Reply,
  options: Omit<PipelineOptions, "schema" | "maxCorrections"> & RunOptions = {},
): Promise<Outcome> {
  const { taskId, turnNumber, isSent, ...pipeline } = options;
  const onlyAsks = (request: Ask | Correction) => {
    if (request instanceof Correction) throw new AskFailed("no correction is asked for", "final");
    return ask(request);
  };
  return new Pipeline({ ...pipeline, maxCorrections: 0 }).run(onlyAsks, first, { taskId, turnNumber, isSent });
}
