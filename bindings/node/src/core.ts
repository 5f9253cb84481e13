/** Calls the addon. Texts and bytes are passed unchanged, everything else as JSON. */

import { types } from "node:util";

import { FileError, InternalError, InvalidInput, camelName, toError } from "./errors.js";
import { native, type Answer, type Input, type NativeStateful } from "./native.js";

/** The length from which an input is processed on a thread of Node's pool, if the caller awaits the answer. */
const LARGE = 32_768;

/** A call of the addon: its inputs, and how to read the answer. */
export interface Request<T> {
  function: string;
  inputs: Input[];
  options: object;
  read(answer: any): T;
}

/** Copies an input, so that later changes of its bytes have no effect. */
export const copyInput = (value: Input): Input => (typeof value === "string" ? value : Uint8Array.from(checkInputs([value])[0] as Uint8Array));

/** Makes a synchronous function. */
export function makeSync<A extends unknown[], T>(make: (...given: A) => Request<T>): (...given: A) => T {
  return (...given) => {
    const { function: name, inputs, options, read } = make(...given);
    return read(parseAnswer(native.call(name, checkInputs(inputs), json(snakeNames(options)))));
  };
}

/** Makes an asynchronous function, which runs on a thread of Node's pool. */
export function makeAsync<A extends unknown[], T>(make: (...given: A) => Request<T>): (...given: A) => Promise<T> {
  return async (...given) => {
    const { function: name, inputs, options, read } = make(...given);
    return read(parseAnswer(await native.callLater(name, checkInputs(inputs), json(snakeNames(options)))));
  };
}

/** An object of the addon, with its state. */
export class Stateful {
  readonly #inner: NativeStateful;

  constructor(kind: string, inputs: Input[], options: object) {
    this.#inner = new native.Stateful(kind, checkInputs(inputs), json(snakeNames(options)));
    if (this.#inner.failure) throw toError(this.#inner.failure);
  }

  call(method: string, inputs: Input[] = [], options: object = {}): any {
    return parseAnswer(this.#inner.call(method, checkInputs(inputs), json(snakeNames(options))));
  }

  /** Does the same as `call`, but not on the event loop if an input is large. */
  async later(method: string, inputs: Input[] = [], options: object = {}): Promise<any> {
    if (inputs.every((input) => input.length < LARGE)) return this.call(method, inputs, options);
    return parseAnswer(await this.#inner.callLater(method, checkInputs(inputs), json(snakeNames(options))));
  }
}

function parseAnswer({ answer, failure }: Answer): any {
  if (failure != null) throw toError(failure);
  if (answer == null) throw new InternalError("a bug in Endmark; please report it: a call has no answer", "bug");
  return JSON.parse(answer);
}

function checkInputs(inputs: Input[]): Input[] {
  for (const input of inputs) {
    if (typeof input === "string") continue;
    if (!types.isUint8Array(input)) throw new InvalidInput(`expected a string or a Uint8Array, not ${kind(input)}`, "invalid_argument");
    if (isDetached(input)) throw new InvalidInput("the memory of a Uint8Array was transferred to another thread", "invalid_argument");
  }
  return inputs;
}

/** Whether an array's memory was transferred to another thread. Such an array looks empty, and Node 20 has no property for it. */
function isDetached({ length, buffer }: Uint8Array): boolean {
  if (length > 0) return false;
  try {
    return new Uint8Array(buffer).length < 0;
  } catch {
    return true;
  }
}

/** Runs work on a SQLite file, and converts its errors to `FileError`. */
export function onFile<T>(work: () => T): T {
  try {
    const result = work();
    return types.isPromise(result) ? (result.catch(rethrow) as T) : result;
  } catch (error) {
    return rethrow(error);
  }
}

function rethrow(error: unknown): never {
  throw Object.assign(new FileError(error instanceof Error ? error.message : String(error), "file"), { cause: error });
}

/** Describes the type of a value, for messages. */
export function kind(value: unknown): string {
  if (value == null) return String(value);
  return typeof value === "object" ? `a value of the class ${value.constructor?.name ?? "Object"}` : `a ${typeof value}`;
}

/** Writes a value as JSON. Replaces each lone surrogate, which UTF-8 cannot encode, by U+FFFD. */
export function json(value: unknown): string {
  try {
    return JSON.stringify(value, (name, member) => {
      // JSON would contain null, which means the default.
      if (typeof member === "number" && !Number.isFinite(member)) throw new RangeError(`\`${name}\` is ${member}`);
      return typeof member === "string" ? member.toWellFormed() : member;
    }) ?? "null";
  } catch (error) {
    throw new InvalidInput(`an argument cannot be written as JSON: ${String(error)}`, "invalid_argument");
  }
}

const snakeName = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** Converts names to snake case, as the addon needs them. Leaves out null and undefined. */
export function snakeNames(options: object): object {
  const named = Object.entries(options).filter(([, value]) => value != null);
  return Object.fromEntries(named.map(([name, value]) => [snakeName(name), value]));
}

/** Rejects unknown names of options that TypeScript reads, as the addon does for its own options. */
export const checkNames = makeSync((options: object, known: readonly string[]): Request<void> => ({
  function: "check_names",
  inputs: [],
  options: { given: Object.keys(options).map(snakeName), known: known.map(snakeName) },
  read: () => undefined,
}));

/** Converts names to camel case. */
export function camelNames(value: any): any {
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [camelName(name), member]));
}

/** Returns the unit of offsets into this value: UTF-16 units of a string, or bytes. */
export function offsetUnit(text: Input): string {
  return typeof text === "string" ? "utf16" : "bytes";
}
