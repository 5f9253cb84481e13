/** Code that all framework integrations share. */

import { contextLater, count, readTool, type Admitted, type Meter, type Outputs, type ReadTool, type Tokens } from "./context.js";
import { checkNames, json, makeSync, type Request } from "./core.js";
import { EndmarkError, InvalidReply, NotAdmitted, NotResumed } from "./errors.js";
import { AskFailed, MAX_RESUME_ATTEMPTS, Pipeline, type Ask, type Correction, type Logger, type Outcome, type Reply, type RunOptions } from "./recovery.js";
import { detect } from "./texts.js";

export interface ComponentOptions {
  maxAttempts?: number | undefined;
  /** The maximum number of characters of a tool result, by default 20,000. */
  maxResultChars?: number | undefined;
  /** Keeps the full values of capped results, by default in memory. The model reads them with the tool `endmark_read`. */
  outputs?: Outputs | undefined;
  log?: Logger | undefined;
  taskId?: string | undefined;
}

/** Rejects options that are neither common to all integrations nor in `own`. */
export function checkOptions(options: ComponentOptions, ...own: string[]): void {
  checkNames(options, ["maxAttempts", "maxResultChars", "outputs", "log", "taskId", ...own]);
}

export const MAX_COMPONENT_CHARS = 20_000;
/** The message that the closing call of a budget adds. */
export const CLOSING = "The token budget is used up. Summarise your findings with the data that you have. You cannot use tools any more.";

/** A part of a reply that may be cut. */
export interface Part extends RunOptions {
  reply: Reply;
  isJson: boolean;
  /** Whether an error means that the caller stopped the call. Any other error is a request without an answer. */
  isStop(error: unknown): boolean;
}

/** Recovers a part of a reply. A reply is never generated again, because a client may already have its start. */
export function recover({ maxAttempts, log, taskId }: ComponentOptions, ask: (asked: Ask) => Promise<Reply>, part: Part): Promise<Outcome> {
  const { reply, isJson, isStop, ...given } = part;
  const pipeline = new Pipeline({ format: isJson ? "json" : null, maxAttempts: maxAttempts ?? MAX_RESUME_ATTEMPTS, maxCorrections: 0, restart: "off", log });
  const answer = async (asked: Ask | Correction): Promise<Reply> => {
    try {
      // The pipeline requests no corrections.
      return await ask(asked as Ask);
    } catch (error) {
      throw isStop(error) ? error : convertError(error);
    }
  };
  return pipeline.run(answer, reply, { taskId, ...given });
}

/** Returns the text to show to the model as its own reply. A cut call is shown as text, because otherwise it would count as made. */
export function shownText(request: Ask, toolName: string | undefined): string {
  return toolName === undefined ? request.shownText : `Arguments of the call to \`${toolName}\`, as JSON:\n${request.shownText}`;
}

/** Whether an error means that the reply is not cut, so that the framework must handle it. */
export function isNotCut(error: unknown, isCutCall: boolean): boolean {
  return error instanceof InvalidReply || (error instanceof NotResumed && !isCutCall);
}

/** Returns the text of a message's content in the format of the AI SDK or LangChain. */
export function textOf(content: string | any[]): string {
  if (typeof content === "string") return content;
  return content.map((part) => (part.type === "text" ? part.text : "")).join("");
}

/** Converts the error of a continuation request. It is `final` if the provider refuses the request itself, for example a bad key. */
function convertError(error: unknown): AskFailed {
  if (error instanceof AskFailed) return error;
  const kind = error instanceof NotAdmitted ? "budget" : failureKind({ status: httpStatus(error) });
  return new AskFailed(error instanceof Error ? error.message : String(error), kind, { cause: error });
}

const failureKind = makeSync((options: { status: number | undefined }): Request<"lost" | "final"> => ({
  function: "ask_failure",
  inputs: [],
  options,
  read: (answer) => answer,
}));

/** Returns the HTTP status in the error of a client, or in its cause. */
function httpStatus(error: any): number | undefined {
  for (let [cause, depth] = [error, 0]; cause instanceof Error && depth < 8; [cause, depth] = [cause.cause, depth + 1]) {
    const { status, statusCode = status } = cause as { status?: unknown; statusCode?: unknown };
    if (typeof statusCode === "number" && statusCode >= 100 && statusCode < 600) return statusCode;
  }
  return undefined;
}

/** Whether a stop reason means that the reply is cut, such as an output limit. */
export const isCutStop = makeSync((stop: string | undefined): Request<boolean> => ({
  function: "stop_meaning",
  inputs: [],
  options: { stop },
  read: (meaning) => ["limit", "repetition", "broken_off", "not_ended"].includes(meaning),
}));

/** Returns the object with some methods replaced. The other methods keep their `this`, whose fields may be private. */
export function withMethods<T extends object>(target: T, methods: Record<string, (...given: any[]) => unknown>): T {
  return new Proxy(target, {
    get(_, name) {
      if (typeof name === "string" && Object.hasOwn(methods, name)) return methods[name];
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === "function" && name !== "constructor" ? member.bind(target) : member;
    },
  });
}

export interface BudgetOptions {
  /** A budget: the first call that no longer fits is made without tools and asks for a summary. Later calls throw `NotAdmitted`. */
  meter?: Meter | undefined;
  /** The output limit that the budget assumes for a call without one, by default 4,096. */
  assumeOutputTokens?: number | undefined;
}

/** Holds and settles the calls of an integration in the budget of a meter, if there is one. */
export class Budget {
  constructor(readonly options: BudgetOptions) {}

  /** Holds the maximum cost of a call. Throws `NotAdmitted`. */
  admit(model: string, body: unknown, given: { limit: number | undefined; isContinuation: boolean }): Admitted | undefined {
    const { meter, assumeOutputTokens = 4_096 } = this.options;
    if (!meter) return undefined;
    const { limit: maxOutputTokens = assumeOutputTokens, isContinuation } = given;
    return meter.beforeCall(model, { promptTokens: count(json(body), model).tokens, maxOutputTokens, isContinuation });
  }

  /** Settles a call with its tokens, or else with its text. A call without both was not answered. */
  settle(admitted: Admitted | undefined, tokens: Tokens | undefined, text: string | undefined): void {
    if (admitted) this.options.meter?.afterCall(admitted, { tokens, text });
  }
}

/** Returns a function that caps a text, and keeps the full value in `outputs` if the text is shortened. */
export function createShortener(maxChars: number, outputs: Outputs | undefined): (text: string) => Promise<string> {
  return async (text) => (text.length <= maxChars ? text : (await contextLater.cap(text, { maxChars, outputs })).text);
}

/** Returns the tool with which a model reads omitted parts of a result. */
export function createReadTool(outputs: Outputs, maxChars: number): ReadTool & { execute(wanted: object | string): Promise<string> } {
  const execute = async (wanted: object | string) => {
    try {
      return await outputs.read(wanted, { maxChars });
    } catch (error) {
      // Return the error, because the model can correct its call.
      if (error instanceof EndmarkError) return `Error: ${error.message}`;
      throw error;
    }
  };
  return { ...readTool(), execute };
}

export function isWhole(json: string): boolean {
  return detect(json, "json").verdict === "whole";
}

/** Adds two usages of any form, number by number. */
export function addUsage(first: any, second: any): any {
  if (typeof first === "number" && typeof second === "number") return first + second;
  if (Array.isArray(first) && Array.isArray(second)) return [...first, ...second];
  if (first === null || second === null || typeof first !== "object" || typeof second !== "object") return first ?? second;
  const names = [...new Set([...Object.keys(first), ...Object.keys(second)])];
  return Object.fromEntries(names.map((name) => [name, addUsage(first[name], second[name])]));
}
