/** Recovers cut replies with any client: detects cuts, requests the rest, joins, validates and corrects. */

import { camelNames, json, kind, onFile, snakeNames, Stateful } from "./core.js";
import { EndmarkError, InvalidInput, InvalidReply, NotResumed, ResumeExhausted } from "./errors.js";
import { native, type NativeLog } from "./native.js";
import type { Format, Seam } from "./texts.js";

/** The default maximum number of continuation requests. */
export const MAX_RESUME_ATTEMPTS = 2;
/** The default maximum number of correction requests. */
export const MAX_CORRECTION_ATTEMPTS = 1;

/**
 * How a continuation was requested: `prompted` with `Ask.prompt`; `exact` if the server certainly continued the same message (prefill);
 * `cut`, `token` or `unknown` if only the text can show where it continues.
 */
export type Join = "prompted" | "exact" | "in_message" | "shown" | "cut" | "token" | "unknown";

/** One reply of a model, as it was received. */
export interface Reply {
  readonly text: string;
  /**
   * The provider's stop reason, such as `length`, `max_tokens`, `stop` or `end_turn`. Without it, and without an `ending`, the stream
   * counts as dropped.
   */
  readonly stop?: string | null | undefined;
  readonly outputTokens?: number | null | undefined;
  /** The output limit of the request, in tokens. A reply that reaches it counts as cut, whatever its stop reason. */
  readonly limit?: number | null | undefined;
  /** Whether the model reasoned. A reply without text then counts as cut, and not as empty. */
  readonly reasoned?: boolean | undefined;
  readonly ending?: "clean" | "dropped" | "stalled" | "upstream_error" | null | undefined;
  /** For a continuation: how it was requested, by default `prompted`. */
  readonly join?: Join | undefined;
}

/** A message in the format of Chat Completions. */
export interface Message {
  readonly role: string;
  readonly content: unknown;
}

/** A request for a continuation. */
export class Ask {
  readonly step = "resume";
  /** From 1. */
  declare readonly attempt: number;
  /** The kind of cut: `limit`, `dropped`, `format`, `marker`, `empty` or `window`. */
  declare readonly cut: string;
  /**
   * `rest` requests the rest of `soFar`. `again` and `restart` repeat the first request for the whole reply; `again` follows a reply
   * without text and needs a higher output limit.
   */
  declare readonly wanted: "rest" | "again" | "restart";
  /** The text received so far. */
  declare readonly soFar: string;
  /** The number of UTF-16 units of `soFar` to show to the model as its own reply. */
  declare readonly shown: number;
  /** The message that asks for the rest. */
  declare readonly prompt: string;

  constructor(step: object) {
    Object.assign(this, step);
  }

  get shownText(): string {
    return this.soFar.slice(0, this.shown);
  }

  /** Returns the messages to send: those of the first request, the shown text, and the prompt. */
  messages<M>(history: readonly M[]): (M | Message)[] {
    return this.wanted === "rest" ? [...history, ...asked(this.shownText, this.prompt)] : [...history];
  }
}

/** A request for a corrected document. */
export class Correction {
  readonly step = "correct";
  declare readonly attempt: number;
  /** The message that lists the problems and asks for the whole document. */
  declare readonly prompt: string;
  /** The text to show to the model as its own reply. */
  declare readonly text: string;

  constructor(step: object) {
    Object.assign(this, step);
  }

  /** Returns the messages to send. */
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
 * A request brought no answer. Clients throw it; any other error ends the recovery and reaches the caller. `rejected`: this kind of
 * request was refused, but another one may work. `lost`: no answer arrived, which counts as an attempt. `final`: refused permanently.
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

/** A complete reply, and how it was completed. */
export interface Outcome {
  readonly text: string;
  readonly result: "whole" | "resumed" | "restarted" | "corrected";
  readonly attempts: number;
  readonly corrections: number;
  /** The kind of cut of the first reply, if it was cut. */
  readonly cut: string | null;
  /** Whether the reply was dropped or reached its limit, but is complete nevertheless. */
  readonly disclosed: boolean;
  readonly seams: readonly Seam[];
}

/** The row of a cut reply in the log. Sizes are UTF-8 bytes. */
export interface LogRow {
  readonly truncation_index: number | null;
  readonly initial_chunk_length: number;
  readonly resume_attempts: number;
  readonly final_status: "RESOLVED" | "EXHAUSTED";
}

/** Stores rows about cut replies. */
export interface Logger {
  write(row: LogRow, taskId: string, turnNumber: number): Promise<void> | void;
}

/**
 * Writes one row for each cut reply into the table `partial_completion_log` of a SQLite file. A gateway may also use the file, and several
 * processes and workers may write to it.
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
  /** The required format of a reply, by default `json`. With null, only the stop reason and the end of the stream show a cut. */
  format?: Format | null | undefined;
  marker?: string | undefined;
  /** A JSON Schema. External references are not fetched. */
  schema?: object | undefined;
  maxAttempts?: number | undefined;
  maxCorrections?: number | undefined;
  /** Whether a reply may be generated again as the last attempt. `same`: only with the same complete values. */
  restart?: "any" | "same" | "off" | undefined;
  /** `best` uses the most likely of several seams. */
  onAmbiguous?: "stop" | "best" | undefined;
  /** The prompt that asks for the rest, with the placeholder `{last_valid_token}`. */
  prompt?: string | undefined;
  log?: Logger | undefined;
}

export interface RunOptions {
  taskId?: string | undefined;
  turnNumber?: number | undefined;
  /** Whether a client already has the reply, so that it can only be extended. */
  isSent?: boolean | undefined;
}

/** Completes replies in three stages, always in this order: truncation resume, schema validation, formatting correction. */
export class Pipeline {
  readonly #options: object;
  readonly #log: Logger | undefined;

  constructor({ log, format = "json", ...options }: PipelineOptions = {}) {
    this.#options = { format, maxAttempts: MAX_RESUME_ATTEMPTS, maxCorrections: MAX_CORRECTION_ATTEMPTS, offsets: "utf16", ...options };
    this.#log = log;
  }

  /**
   * Completes and validates a reply. `ask` is called for each continuation and correction. Rejects with `ResumeExhausted`, `NotResumed`
   * or `InvalidReply`, and with any error of `ask` except `AskFailed`.
   */
  async run(ask: (request: Ask | Correction) => Promise<Reply> | Reply, first: Reply, options: RunOptions = {}): Promise<Outcome> {
    const { taskId = "", turnNumber = 1, ...rest } = options;
    const { join: _, ...reply } = checkReply("the first reply", first);
    const recovery = new Stateful("recovery", [first.text], { ...this.#options, ...rest, reply: snakeNames(reply) });
    let step = await recovery.later("next");
    let cause: unknown;
    try {
      while (step.step !== "done") {
        const request = step.step === "resume" ? new Ask(camelNames(step)) : new Correction(camelNames(step));
        try {
          const answer = await ask(request);
          const { join = "prompted", ...reply } = checkReply("what `ask` returned", answer);
          if (request instanceof Correction) step = await recovery.later("corrected", [answer.text], reply);
          else step = await recovery.later("resumed", [answer.text], { reply: snakeNames(reply), join });
        } catch (failure) {
          if (!(failure instanceof AskFailed)) throw failure;
          cause = failure.cause ?? failure;
          step = recovery.call("failed", [failure.message], { kind: failure.kind });
        }
      }
    } catch (error) {
      // The reply stays cut. Log it nevertheless.
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

/** Checks a reply, and returns its members for the addon, except the text. */
function checkReply(what: string, reply: Reply): Omit<Reply, "text"> {
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
    throw new ResumeExhausted(reason, code, { ...camelNames(exhausted), verifiedLength, text: done.text }, cause);
  }
  if (done.result === "passed") throw new NotResumed(done.text, done.passed, stop);
  if (done.result === "invalid") throw new InvalidReply(done.text, done.problems);
  const { text, result, attempts, corrections, cut, disclosed, seams } = done;
  return { text, result, attempts, corrections, cut, disclosed, seams: seams.map(camelNames) };
}

/**
 * Requests the rest of a cut reply, and joins it. Rejects with `ResumeExhausted` if the reply stays cut, `NotResumed` if the provider
 * refused it, and `InvalidReply` if it is not cut but invalid.
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
