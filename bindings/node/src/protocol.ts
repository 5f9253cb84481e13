/**
 * Completes cut JSON replies with any client that answers a prompt:
 *
 *     const whole = await PartialCompletionResumeProtocol.resumeIfTruncated(raw, llm, { logger: new PartialCompletionLog("tasks.db") });
 *
 * Validation and correction follow it. A cut reply must not reach them, because a correction would invent the missing part.
 */

import { kind } from "./core.js";
import { InvalidReply, MergeError, NotResumed, ResumeExhausted } from "./errors.js";
import { Log, MAX_RESUME_ATTEMPTS, resumeIfTruncated, type Ask, type Logger, type Reply } from "./recovery.js";
import { buildResumePrompt, detect, mergeChunks } from "./texts.js";

export { MAX_RESUME_ATTEMPTS, type Logger, type LogRow } from "./recovery.js";

/** Writes one row for each cut reply into the table `partial_completion_log` of a SQLite file. Lengths are UTF-8 bytes. */
export class PartialCompletionLog extends Log {}

/** Where a JSON text is cut; `truncationIndex` counts UTF-16 units. A text that no continuation could make valid is not truncated. */
export type TruncationResult =
  | { readonly truncated: true; readonly lastValidToken: string; readonly truncationIndex: number }
  | { readonly truncated: false };

/** Answers a prompt: a function, or an object with the method `complete`, `generate` or `send`. */
export type LLMClient =
  | ((prompt: string) => Promise<string>)
  | { complete(prompt: string): Promise<string> }
  | { generate(prompt: string): Promise<string> }
  | { send(prompt: string): Promise<string> };

/** A client whose method has the name in the option `method`. */
export type NamedClient<M extends string> = { readonly [name in M]: (prompt: string) => Promise<string> };

/** The reply is still cut after `attempts` calls. `mergedRaw` is everything received, for the correction of malformed replies. */
export class PartialCompletionResumeExhaustedError extends ResumeExhausted {}

/** Two parts could not be joined to whole JSON. The first `verifiedLength` UTF-16 units of `attempt`, which is everything received, are verified. */
export class PartialCompletionMergeError extends TypeError {
  constructor(
    message: string,
    readonly code: string,
    readonly attempt: string,
    readonly verifiedLength: number,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = "PartialCompletionMergeError";
  }
}

export interface ResumeOptions<M extends string = string> {
  logger?: Logger | undefined;
  taskId?: string | undefined;
  turnNumber?: number | undefined;
  maxAttempts?: number | undefined;
  /** The name of the client's method that answers a prompt. */
  method?: M | undefined;
}

/** Corrects a malformed reply: a function, or an object with the method `handle`. */
export type MalformedResponseHandler<T> = ((raw: string) => T | Promise<T>) | { handle(raw: string): T | Promise<T> };

const METHODS = ["complete", "generate", "send"];

export class PartialCompletionResumeProtocol {
  static readonly MAX_RESUME_ATTEMPTS = MAX_RESUME_ATTEMPTS;
  readonly detectTruncation = PartialCompletionResumeProtocol.detectTruncation;
  readonly buildResumePrompt = PartialCompletionResumeProtocol.buildResumePrompt;
  readonly mergeChunks = PartialCompletionResumeProtocol.mergeChunks;
  readonly #client: LLMClient | undefined;
  readonly #options: ResumeOptions;

  /** Creates an instance with a default client and default options for `resumeIfTruncated`. */
  constructor(client?: LLMClient, options: ResumeOptions = {}) {
    this.#client = client;
    this.#options = options;
  }

  /** Does the same as the static method. */
  resumeIfTruncated(raw: string, client: LLMClient | undefined = this.#client, options: ResumeOptions = {}): Promise<string> {
    return PartialCompletionResumeProtocol.resumeIfTruncated(raw, client as LLMClient, { ...this.#options, ...options });
  }

  /** Detects whether a JSON text is the valid start of a longer one. */
  static detectTruncation(raw: string): TruncationResult {
    const { verdict, lastValidToken, truncationIndex } = detect(text("raw", raw), "json");
    if (verdict !== "truncated") return { truncated: false };
    return { truncated: true, lastValidToken: lastValidToken ?? "", truncationIndex: truncationIndex ?? 0 };
  }

  /** Returns the prompt that asks for the rest. It contains the last valid token, and never the whole first part. */
  static buildResumePrompt(lastValidToken: string): string {
    return buildResumePrompt(text("lastValidToken", lastValidToken), "json");
  }

  /** Joins both parts to whole JSON. Throws a `TypeError` if the seam is not certain, or the text is still cut. */
  static mergeChunks(initial: string, continuation: string): string {
    try {
      return mergeChunks(text("initial", initial), text("continuation", continuation), "json").text;
    } catch (error) {
      if (!(error instanceof MergeError)) throw error;
      throw new PartialCompletionMergeError(error.message, error.code, error.attempt, error.verifiedLength, { cause: error });
    }
  }

  /**
   * Resolves to the whole reply. A reply that is not truncated is returned unchanged, without a call of the client. Rejects with
   * `PartialCompletionResumeExhaustedError` if the reply stays cut, and with any error of the client.
   */
  static async resumeIfTruncated<M extends string = string>(
    raw: string,
    client: LLMClient | NamedClient<M>,
    options: ResumeOptions<M> = {},
  ): Promise<string> {
    const { logger, method, ...rest } = options;
    const send = sender(client, method);
    const detection = PartialCompletionResumeProtocol.detectTruncation(raw);
    if (!detection.truncated) return raw;
    const ask = async (request: Ask): Promise<Reply> => {
      // The client cannot repeat the first request, so a reply without text can only be continued with the same prompt.
      const answer: unknown = await send(request.prompt || buildResumePrompt(detection.lastValidToken, "json"));
      return { text: text("the client's answer", answer), ending: "clean" };
    };
    try {
      return (await resumeIfTruncated(ask, { text: raw, ending: "clean" }, { ...rest, format: "json", restart: "off", log: logger })).text;
    } catch (error) {
      if (error instanceof ResumeExhausted) {
        throw new PartialCompletionResumeExhaustedError(error.message, error.code, error, error.cause);
      }
      if (error instanceof NotResumed || error instanceof InvalidReply) return error.text;
      throw error;
    }
  }

  /** Resumes replies before the handler of malformed ones. The handler gets whole replies, or everything received if they stay cut. */
  static before<T, M extends string = string>(
    handler: MalformedResponseHandler<T>,
    client: LLMClient | NamedClient<M>,
    options: ResumeOptions<M> = {},
  ): (raw: string) => Promise<T> {
    // The order is fixed: [3_MCP-TAS-072] truncation resume, [3_MCP-TAS-071] schema validation, [3_MCP-TAS-071] formatting correction. A
    // correction of a cut reply would invent the missing part.
    const handle = typeof handler === "function" ? handler : handler.handle.bind(handler);
    return async (raw) => {
      let received: string;
      try {
        received = await PartialCompletionResumeProtocol.resumeIfTruncated(raw, client, options);
      } catch (error) {
        if (!(error instanceof PartialCompletionResumeExhaustedError)) throw error;
        received = error.mergedRaw;
      }
      return await handle(received);
    };
  }
}

function text(what: string, value: unknown): string {
  if (typeof value !== "string") throw new TypeError(`${what} must be a string, not ${kind(value)}`);
  return value;
}

function sender(client: any, method: string | undefined): (prompt: string) => unknown {
  if (method === undefined && typeof client === "function") return client;
  const names = method === undefined ? METHODS : [method];
  const name = names.find((name) => typeof client?.[name] === "function");
  if (name === undefined) throw new TypeError(`the client must be a function, or have the method ${names.join(", ")}: it is ${kind(client)}`);
  return (prompt) => client[name](prompt);
}
