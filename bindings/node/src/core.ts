/** The way into the addon: texts and bytes unchanged, everything else as JSON. */

import { types } from "node:util";

import { InternalError, InvalidInput, raised } from "./errors.js";
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
  const wrong = inputs.find((input: unknown) => typeof input !== "string" && !types.isUint8Array(input));
  if (wrong !== undefined || inputs.includes(undefined as never)) {
    throw new InvalidInput(`expected a string or a Uint8Array, not ${kind(wrong)}`, "invalid_argument");
  }
  return inputs;
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

/** Names as Rust has them. What is null or missing is left out. */
export function snake(options: object): object {
  const named = Object.entries(options).filter(([, value]) => value != null);
  return Object.fromEntries(named.map(([name, value]) => [name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), value]));
}

/** Names as JavaScript has them. */
export function camel(value: any): any {
  const named = Object.entries(value);
  return Object.fromEntries(named.map(([name, member]) => [name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase()), member]));
}

/** What offsets count, so that they index what was given. */
export function unit(text: Input): string {
  return typeof text === "string" ? "utf16" : "bytes";
}
