/**
 * Prints the result of a command as one JSON document, in which nothing is shortened without a warning. Works with any argument parser:
 *
 *     program.command("show <name>").action(answers((name) => ({ name, log: readLog(name) })));   // commander
 *     yargs.command("show <name>", "shows it", {}, answers(({ name }) => ({ name, log: readLog(name) })));
 */

import { writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

import { camelNames, json, makeSync, snakeNames, type Request } from "./core.js";
import { InvalidInput } from "./errors.js";

/** The known limits of a field, which help to detect that a backend cut its value. In the path `field`, `[*]` means every item. */
export interface Rule {
  field: string;
  maxBytes?: number;
  maxChars?: number;
  maxItems?: number;
  /** Whether the value is always complete, however it ends. */
  exact?: boolean;
}

export interface CommandFailure {
  exitCode?: number;
  hint?: string;
  /** The part of the result that is available nevertheless. */
  data?: unknown;
  /** A path from `input` or `data`. */
  field?: string;
  limit?: number;
  actual?: number;
  phase?: "validation" | "execution";
}

/** The error of a command. */
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
  /** The limit of the whole document, by default 1,000,000. */
  maxResponseBytes?: number | undefined;
  rules?: readonly Rule[] | undefined;
}

/** A finished envelope. */
export interface Document {
  /** The document on one line, with `ok`, `data`, `error`, `warnings` and `meta`. */
  readonly json: string;
  readonly exitCode: number;
}

/**
 * Creates an envelope of at most `maxResponseBytes`, with a warning for each value that a backend cut or that is shortened here. Throws
 * `InvalidInput` if `data` cannot be written as JSON.
 */
export const document = makeSync((data: unknown = null, { error, rules = [], ...options }: DocumentOptions = {}): Request<Document> => {
  const { data: shown, exitCode = 1, ...details } = error?.options ?? {};
  return {
    function: "envelope",
    inputs: [json(error ? (shown ?? null) : data)],
    options: { ...options, rules: rules.map(snakeNames), error: error && snakeNames({ code: error.code, message: error.message, exitCode, ...details }) },
    read: (answer) => ({ json: answer.document, exitCode: answer.exit_code }),
  };
});

/**
 * Checks the inputs of a command before it writes anything. Throws `CommandFailed` with the code `FIELD_TOO_LARGE` and exit code 2 for a
 * field with more UTF-8 bytes than its limit.
 */
export function checkLimits(fields: Readonly<Record<string, unknown>>, maxBytes: Readonly<Record<string, number>>): void {
  const size = (value: unknown) => Buffer.byteLength(typeof value === "string" ? value : json(value));
  const given = Object.keys(maxBytes).filter((field) => fields[field] != null);
  const error = overLimit(Object.fromEntries(given.map((field) => [field, size(fields[field])])), maxBytes);
  if (!error) return;
  const { code, message, ...details } = error;
  throw new CommandFailed(code, message, camelNames(details));
}

const overLimit = makeSync((sizes: object, maxBytes: object): Request<any> => ({
  function: "check_limits",
  inputs: [],
  options: { sizes, maxBytes },
  read: (answer) => answer,
}));

export interface AnswerOptions extends Omit<DocumentOptions, "error" | "durationMs"> {
  /** The limits of input fields by name. The fields are those of the first argument that is an object (yargs). */
  maxBytes?: Readonly<Record<string, number>> | undefined;
}

/** Runs a command, prints its envelope, and resolves to the exit code. An error other than `CommandFailed` is `bug`, exit code 70. */
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

/** Writes a whole text. A full pipe accepts only a part, and the rest would be lost if the process exited then. */
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

/** Wraps a function as an action. Its return value is printed in an envelope, and the process exits. */
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
