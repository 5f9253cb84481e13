/** What the components for frameworks have in common. */

import { contextLater, count, readTool, type Admitted, type Meter, type Outputs, type ReadTool, type Tokens } from "./context.js";
import { checkNames, json, now, type Request } from "./core.js";
import { EndmarkError, InvalidReply, NotAdmitted, NotResumed } from "./errors.js";
import { AskFailed, MAX_RESUME_ATTEMPTS, Pipeline, type Ask, type Correction, type Logger, type Outcome, type Reply, type RunOptions } from "./recovery.js";
import { detect } from "./texts.js";

export interface ComponentOptions {
  maxAttempts?: number | undefined;
  /** How many characters of a tool's result the model sees, by default 20,000. */
  maxResultChars?: number | undefined;
  /** Keeps the full values of capped results, by default in memory. The model reads them with the tool `endmark_read`. */
  outputs?: Outputs | undefined;
  log?: Logger | undefined;
  taskId?: string | undefined;
}

/** Refuses options that no component has, or that this one does not have beside those of all. */
export function checkOptions(options: ComponentOptions, ...own: string[]): void {
  checkNames(options, ["maxAttempts", "maxResultChars", "outputs", "log", "taskId", ...own]);
}

export const MAX_COMPONENT_CHARS = 20_000;
/** What the closing call of a budget asks for. */
export const CLOSING = "The token budget is used up. Summarise your findings with the data that you have. You cannot use tools any more.";

/** A part of a reply that may be cut. */
export interface Part extends RunOptions {
  reply: Reply;
  isJson: boolean;
  /** Whether an error ends the call: the caller stopped it. All others are requests without an answer. */
  isStop(error: unknown): boolean;
}

/** Makes a part of a reply whole. A reply is never generated again: its reader may have its beginning. */
export function recover({ maxAttempts, log, taskId }: ComponentOptions, ask: (asked: Ask) => Promise<Reply>, part: Part): Promise<Outcome> {
  const { reply, isJson, isStop, ...given } = part;
  const pipeline = new Pipeline({ format: isJson ? "json" : null, maxAttempts: maxAttempts ?? MAX_RESUME_ATTEMPTS, maxCorrections: 0, restart: "off", log });
  const answer = async (asked: Ask | Correction): Promise<Reply> => {
    try {
      // No correction is asked for.
      return await ask(asked as Ask);
    } catch (error) {
      throw isStop(error) ? error : askFailed(error);
    }
  };
  return pipeline.run(answer, reply, { taskId, ...given });
}

/** What the model is shown as its own reply. A cut call is never shown as one: it would count as made. */
export function shownFor(request: Ask, toolName: string | undefined): string {
  return toolName === undefined ? request.shownText : `Arguments of the call to \`${toolName}\`, as JSON:\n${request.shownText}`;
}

/** Whether an error says that nothing is missing from a reply, so that it is not Endmark's to judge. */
export function isNotCut(error: unknown, isCutCall: boolean): boolean {
  return error instanceof InvalidReply || (error instanceof NotResumed && !isCutCall);
}

/** The text of a message's content, as the AI SDK and LangChain have it. */
export function textOf(content: string | any[]): string {
  if (typeof content === "string") return content;
  return content.map((part) => (part.type === "text" ? part.text : "")).join("");
}

/** The failure of a continuation whose request threw this: `final` if the provider refuses the request itself, such as a bad key. */
function askFailed(error: unknown): AskFailed {
  if (error instanceof AskFailed) return error;
  const kind = error instanceof NotAdmitted ? "budget" : failureOf({ status: statusOf(error) });
  return new AskFailed(error instanceof Error ? error.message : String(error), kind, { cause: error });
}

const failureOf = now((options: { status: number | undefined }): Request<"lost" | "final"> => ({
  function: "ask_failure",
  inputs: [],
  options,
  read: (answer) => answer,
}));

/** The HTTP status in the error of a client, or in what caused it. */
function statusOf(error: any): number | undefined {
  for (let [cause, depth] = [error, 0]; cause instanceof Error && depth < 8; [cause, depth] = [cause.cause, depth + 1]) {
    const { status, statusCode = status } = cause as { status?: unknown; statusCode?: unknown };
    if (typeof statusCode === "number" && statusCode >= 100 && statusCode < 600) return statusCode;
  }
  return undefined;
}

/** Whether a stop reason means that the reply is not complete, such as a limit of tokens. */
export const isCutStop = now((stop: string | undefined): Request<boolean> => ({
  function: "stop_meaning",
  inputs: [],
  options: { stop },
  read: (meaning) => ["limit", "repetition", "broken_off", "not_ended"].includes(meaning),
}));

/** The same object with these methods instead of its own. Its other methods keep their `this`, whose fields may be private. */
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
  /** A budget: the call that no longer fits is made without tools and asks for a summary. Later calls throw `NotAdmitted`. */
  meter?: Meter | undefined;
  /** The output limit that the budget assumes where a call has none, by default 4,096. */
  assumeOutputTokens?: number | undefined;
}

/** The calls of a component within the budget of a meter, if there is one. */
export class Budget {
  constructor(readonly options: BudgetOptions) {}

  /** Holds the most that a call can cost. Throws `NotAdmitted`. */
  admit(model: string, body: unknown, given: { limit: number | undefined; isContinuation: boolean }): Admitted | undefined {
    const { meter, assumeOutputTokens = 4_096 } = this.options;
    if (!meter) return undefined;
    const { limit: maxOutputTokens = assumeOutputTokens, isContinuation } = given;
    return meter.beforeCall(model, { promptTokens: count(json(body), model).tokens, maxOutputTokens, isContinuation });
  }

  /** Settles a call: by its tokens, else by its text. A call without both was not answered. */
  settle(admitted: Admitted | undefined, tokens: Tokens | undefined, text: string | undefined): void {
    if (admitted) this.options.meter?.afterCall(admitted, { tokens, text });
  }
}

/** A function that caps a text, with the full value in `outputs` if anything is left out. */
export function shortener(maxChars: number, outputs: Outputs | undefined): (text: string) => Promise<string> {
  return async (text) => (text.length <= maxChars ? text : (await contextLater.cap(text, { maxChars, outputs })).text);
}

/** The tool by which a model reads what was left out of a result. */
export function reader(outputs: Outputs, maxChars: number): ReadTool & { execute(wanted: object | string): Promise<string> } {
  const execute = async (wanted: object | string) => {
    try {
      return await outputs.read(wanted, { maxChars });
    } catch (error) {
      // The model can correct its call.
      if (error instanceof EndmarkError) return `Error: ${error.message}`;
      throw error;
    }
  };
  return { ...readTool(), execute };
}

export function isWhole(json: string): boolean {
  return detect(json, "json").verdict === "whole";
}

/** The sum of two usages, number by number, in whatever form they have. */
export function sum(first: any, second: any): any {
  if (typeof first === "number" && typeof second === "number") return first + second;
  if (Array.isArray(first) && Array.isArray(second)) return [...first, ...second];
  if (first === null || second === null || typeof first !== "object" || typeof second !== "object") return first ?? second;
  const names = [...new Set([...Object.keys(first), ...Object.keys(second)])];
  return Object.fromEntries(names.map((name) => [name, sum(first[name], second[name])]));
}
