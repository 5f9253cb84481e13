/** What the components for frameworks have in common. */

import { readTool, type Outputs, type ReadTool } from "./context.js";
import { EndmarkError, InvalidReply, NotResumed } from "./errors.js";
import { AskFailed, MAX_RESUME_ATTEMPTS, Pipeline, type Ask, type Logger } from "./recovery.js";
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

export const MAX_COMPONENT_CHARS = 20_000;

/** The pipeline for a part of a reply. A reply is never generated again: its reader may have its beginning. */
export function pipelineFor({ maxAttempts, log }: ComponentOptions, isJson: boolean): Pipeline {
  return new Pipeline({ format: isJson ? "json" : null, maxAttempts: maxAttempts ?? MAX_RESUME_ATTEMPTS, maxCorrections: 0, restart: "off", log });
}

/** What the model is shown as its own reply. A cut call is never shown as one: it would count as made. */
export function shownFor(request: Ask, toolName: string | undefined): string {
  return toolName === undefined ? request.shownText : `Arguments of the call to \`${toolName}\`, as JSON:\n${request.shownText}`;
}

/** Whether an error says that nothing is missing from a reply, so that it is not Endmark's to judge. */
export function isNotCut(error: unknown, isCutCall: boolean): boolean {
  return error instanceof InvalidReply || (error instanceof NotResumed && !isCutCall);
}

/** The text of a message's content, as both frameworks have it. */
export function textOf(content: string | any[]): string {
  if (typeof content === "string") return content;
  return content.map((part) => (part.type === "text" ? part.text : "")).join("");
}

/** The failure of a continuation whose request threw this. */
export function lost(error: unknown): AskFailed {
  return new AskFailed(error instanceof Error ? error.message : String(error), "lost", { cause: error });
}

/** The tool by which a model reads what was left out of a result. */
export function reader(outputs: Outputs, maxChars: number): ReadTool & { execute(wanted: object): Promise<string> } {
  const execute = async (wanted: object) => {
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
  if (first === null || second === null || typeof first !== "object" || typeof second !== "object") return first ?? second;
  const names = [...new Set([...Object.keys(first), ...Object.keys(second)])];
  return Object.fromEntries(names.map((name) => [name, sum(first[name], second[name])]));
}
