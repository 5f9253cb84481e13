/**
 * One JSON document for each answer of a command, in which nothing is shortened without a warning. For any parser of arguments:
 *
 *     program.command("show <name>").action(answers((name) => ({ name, log: readLog(name) })));   // commander
 *     yargs.command("show <name>", "shows it", {}, answers(({ name }) => ({ name, log: readLog(name) })));
 */

import { writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

import { camel, json, now, snake, type Request } from "./core.js";
import { InvalidInput } from "./errors.js";

/** What is known of a field, by which a cut of a backend is found. `field` is a path from `data`, in which `[*]` is every item. */
export interface Rule {
  field: string;
  maxBytes?: number;
  maxChars?: number;
  maxItems?: number;
  /** The value is what it is, however it ends. */
  exact?: boolean;
}

export interface CommandFailure {
  exitCode?: number;
  hint?: string;
  /** What the command has to show all the same. */
  data?: unknown;
  /** A path from `input` or `data`. */
  field?: string;
  limit?: number;
  actual?: number;
  phase?: "validation" | "execution";
}

/** A command throws it to answer with an error. */
export class CommandFailed extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly options: CommandFailure = {},
  ) {
    super(message);
    this.name = "CommandFailed";
  }
}

export interface DocumentOptions {
  error?: CommandFailed | undefined;
  warnings?: readonly object[] | undefined;
  durationMs?: number | undefined;
  /** For the whole document, by default 1,000,000. */
  maxResponseBytes?: number | undefined;
  rules?: readonly Rule[] | undefined;
}

/** An envelope that is ready to be written. */
export interface Document {
  /** On one line, with all of `ok`, `data`, `error`, `warnings` and `meta`. */
  readonly json: string;
  readonly exitCode: number;
}

/**
 * Makes an envelope: what a backend cut is found, and what is over `maxResponseBytes` is shortened, with a warning for each. Throws
 * `InvalidInput` for data that cannot be JSON.
 */
export const document = now((data: unknown = null, { error, rules = [], ...options }: DocumentOptions = {}): Request<Document> => {
  const { data: shown, exitCode = 1, ...details } = error?.options ?? {};
  return {
    function: "envelope",
    inputs: [json(error ? (shown ?? null) : data)],
    options: { ...options, rules: rules.map(snake), error: error && snake({ code: error.code, message: error.message, exitCode, ...details }) },
    read: (answer) => ({ json: answer.document, exitCode: answer.exit_code }),
  };
});

/**
 * Checks what a command is to write, before anything is written: throws `CommandFailed` with the code `FIELD_TOO_LARGE` and exit code 2
 * for a field with more UTF-8 bytes than its limit.
 */
export function checkLimits(fields: Readonly<Record<string, unknown>>, maxBytes: Readonly<Record<string, number>>): void {
  const size = (value: unknown) => Buffer.byteLength(typeof value === "string" ? value : json(value));
  const given = Object.keys(maxBytes).filter((field) => fields[field] != null);
  const error = overLimit(Object.fromEntries(given.map((field) => [field, size(fields[field])])), maxBytes);
  if (!error) return;
  const { code, message, ...details } = error;
  throw new CommandFailed(code, message, camel(details));
}

const overLimit = now((sizes: object, maxBytes: object): Request<any> => ({
  function: "check_limits",
  inputs: [],
  options: { sizes, maxBytes },
  read: (answer) => answer,
}));

export interface AnswerOptions extends Omit<DocumentOptions, "error" | "durationMs"> {
  /** Limits of the fields of the command's first argument that is an object (yargs), by name. */
  maxBytes?: Readonly<Record<string, number>> | undefined;
}

/** Runs a command, writes its envelope to standard output, and resolves to the exit code. Any other error is `bug` with exit code 70. */
export async function run(command: () => unknown, options: Omit<AnswerOptions, "maxBytes"> = {}): Promise<number> {
  const begun = performance.now();
  let data: unknown = null;
  let error: CommandFailed | undefined;
  try {
    data = await command();
  } catch (thrown) {
    error = thrown instanceof CommandFailed ? thrown : bug(thrown);
  }
  const durationMs = Math.round(performance.now() - begun);
  let made: Document;
  try {
    made = document(data, { ...options, error, durationMs });
  } catch (thrown) {
    if (!(thrown instanceof InvalidInput)) throw thrown;
    made = document(null, { durationMs, error: bug(thrown) });
  }
  await write(`${made.json}\n`);
  return made.exitCode;
}

function bug(thrown: unknown): CommandFailed {
  console.error(thrown);
  return new CommandFailed("bug", String(thrown), { exitCode: 70 });
}

/** Writes all of a text: a pipe that is full takes a part of it, and a process that exits then loses the rest. */
async function write(text: string): Promise<void> {
  let rest: Uint8Array = Buffer.from(text);
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(process.stdout.fd, rest));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
      await sleep(5);
    }
  }
}

/** Makes an action of a function: what it returns is written in an envelope, and the process exits with its code. */
export function answers<A extends unknown[]>(command: (...given: A) => unknown, options: AnswerOptions = {}): (...given: A) => Promise<void> {
  const { maxBytes, ...rest } = options;
  return async (...given) => {
    process.exitCode = await run(() => {
      const fields = given.find((value) => typeof value === "object" && value !== null);
      if (maxBytes) checkLimits((fields ?? {}) as Record<string, unknown>, maxBytes);
      return command(...given);
    }, rest);
  };
}
