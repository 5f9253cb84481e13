/** The way into the addon: texts and bytes unchanged, everything else as JSON. */

import { types } from "node:util";

import { FileError, InternalError, InvalidInput, camelName, raised } from "./errors.js";
import { native, type Answer, type Input, type NativeStateful } from "./native.js";

/** A larger text is worked on by a thread of Node's pool, where the caller awaits the answer. */
const LARGE = 32_768;

/** A call of the addon: what goes in, and what is made of the answer. */
export interface Request<T> {
  function: string;
  inputs: Input[];
  options: object;
  read(answer: any): T;
}

/** A copy of an input, so that later changes of its bytes do not matter. */
export const copied = (value: Input): Input => (typeof value === "string" ? value : Uint8Array.from(checked([value])[0] as Uint8Array));

/** A function that is called at once. */
export function now<A extends unknown[], T>(make: (...given: A) => Request<T>): (...given: A) => T {
  return (...given) => {
    const { function: name, inputs, options, read } = make(...given);
    return read(answered(native.call(name, checked(inputs), json(snake(options)))));
  };
}

/** The same function on a thread of Node's pool. */
export function later<A extends unknown[], T>(make: (...given: A) => Request<T>): (...given: A) => Promise<T> {
  return async (...given) => {
    const { function: name, inputs, options, read } = make(...given);
    return read(answered(await native.callLater(name, checked(inputs), json(snake(options)))));
  };
}

/** An object of the addon. */
export class Stateful {
  readonly #inner: NativeStateful;

  constructor(kind: string, inputs: Input[], options: object) {
    this.#inner = new native.Stateful(kind, checked(inputs), json(snake(options)));
    if (this.#inner.failure) throw raised(this.#inner.failure);
  }

  call(method: string, inputs: Input[] = [], options: object = {}): any {
    return answered(this.#inner.call(method, checked(inputs), json(snake(options))));
  }

  /** The same, away from the event loop where an input is large. */
  async later(method: string, inputs: Input[] = [], options: object = {}): Promise<any> {
    if (inputs.every((input) => input.length < LARGE)) return this.call(method, inputs, options);
    return answered(await this.#inner.callLater(method, checked(inputs), json(snake(options))));
  }
}

function answered({ answer, failure }: Answer): any {
  if (failure != null) throw raised(failure);
  if (answer == null) throw new InternalError("a bug in Endmark; please report it: a call has no answer", "bug");
  return JSON.parse(answer);
}

function checked(inputs: Input[]): Input[] {
  for (const input of inputs) {
    if (typeof input === "string") continue;
    if (!types.isUint8Array(input)) throw new InvalidInput(`expected a string or a Uint8Array, not ${kind(input)}`, "invalid_argument");
    if (isDetached(input)) throw new InvalidInput("the memory of a Uint8Array was transferred to another thread", "invalid_argument");
  }
  return inputs;
}

/** Whether an array's memory belongs to another thread: it looks empty. Node 20 has no property for it. */
function isDetached({ length, buffer }: Uint8Array): boolean {
  if (length > 0) return false;
  try {
    return new Uint8Array(buffer).length < 0;
  } catch {
    return true;
  }
}

/** Does something with a SQLite file. */
export function onFile<T>(work: () => T): T {
  try {
    const result = work();
    return types.isPromise(result) ? (result.catch(rethrown) as T) : result;
  } catch (error) {
    return rethrown(error);
  }
}

function rethrown(error: unknown): never {
  throw Object.assign(new FileError(error instanceof Error ? error.message : String(error), "file"), { cause: error });
}

/** What a value is, for a message. */
export function kind(value: unknown): string {
  if (value == null) return String(value);
  return typeof value === "object" ? `a value of the class ${value.constructor?.name ?? "Object"}` : `a ${typeof value}`;
}

/** Writes JSON in which each half of a surrogate pair is U+FFFD: UTF-8 cannot hold it. */
export function json(value: unknown): string {
  try {
    return JSON.stringify(value, (name, member) => {
      // JSON would have null, which stands for a default.
      if (typeof member === "number" && !Number.isFinite(member)) throw new RangeError(`\`${name}\` is ${member}`);
      return typeof member === "string" ? member.toWellFormed() : member;
    }) ?? "null";
  } catch (error) {
    throw new InvalidInput(`an argument cannot be written as JSON: ${String(error)}`, "invalid_argument");
  }
}

const snakeName = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** Names as Rust has them. What is null or missing is left out. */
export function snake(options: object): object {
  const named = Object.entries(options).filter(([, value]) => value != null);
  return Object.fromEntries(named.map(([name, value]) => [snakeName(name), value]));
}

/** Refuses names of options that are read here, as the addon does with those that it reads. */
export const checkNames = now((options: object, known: readonly string[]): Request<void> => ({
  function: "check_names",
  inputs: [],
  options: { given: Object.keys(options).map(snakeName), known: known.map(snakeName) },
  read: () => undefined,
}));

/** Names as JavaScript has them. */
export function camel(value: any): any {
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [camelName(name), member]));
}

/** What offsets count, so that they index what was given. */
export function unit(text: Input): string {
  return typeof text === "string" ? "utf16" : "bytes";
}
