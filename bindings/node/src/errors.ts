/** The errors of the package, all derived from `EndmarkError`. */

/** Any failure that Endmark reports. `code` is a stable, machine-readable word. */
export class EndmarkError extends Error {
  constructor(
    message: string,
    readonly code: string = "error",
  ) {
    super(message);
    this.name = new.target.name;
  }
}

/** An argument is not valid: an unknown format, a limit that is too small, bytes that are not UTF-8. */
export class InvalidInput extends EndmarkError {}

/** No continuation could make the text valid, or the text does not have the given format. */
export class Malformed extends EndmarkError {}

/** A bug in Endmark. Please report it with the input that causes it. */
export class InternalError extends EndmarkError {}

/**
 * A budget does not admit a call. `code` is `held` (running calls hold the rest of the budget: retry after one of them has ended),
 * `used_up`, `too_large` (the call may need more than the whole budget) or `no_price` (there is a budget in dollars, and the model has no
 * price).
 */
export class NotAdmitted extends EndmarkError {}

/**
 * Two parts could not be joined to a verified text. The error contains everything received. `code` is `ambiguous`, `still_truncated`,
 * `malformed`, `nothing_to_join` or `no_seam`.
 */
export class MergeError extends EndmarkError {
  constructor(
    message: string,
    code: string,
    /** Everything received, joined at the best seam, or simply concatenated. */
    readonly attempt: string,
    /** The number of UTF-16 units at the start of `attempt` that are verified. */
    readonly verifiedLength: number,
  ) {
    super(message, code);
  }
}

/** The known parts of a reply that stays cut. */
export interface Exhausted {
  /** The number of calls that were made. */
  readonly attempts: number;
  /** Everything received, joined at the best seams. */
  readonly mergedRaw: string;
  /** The number of UTF-16 units at the start of `mergedRaw` that are verified. */
  readonly verifiedLength: number;
  /** The verified start of the reply, which can be shown to users. */
  readonly text: string;
  /** The most likely whole text, or null. It is only a guess. */
  readonly best: string | null;
}

/**
 * The recovery ended, and the reply is still cut. `code` is `attempts`, `no_progress`, `ambiguous`, `refused`, `rejected`, `budget` or
 * `stopped`. `cause` is the error of the last request without an answer.
 */
export class ResumeExhausted extends EndmarkError {
  constructor(message: string, code: string, exhausted: Exhausted, cause?: unknown) {
    super(message, code);
    const { attempts, mergedRaw, verifiedLength, text, best } = exhausted;
    Object.assign(this, { attempts, mergedRaw, verifiedLength, text, best });
    if (cause !== undefined) this.cause = cause;
  }
}

export interface ResumeExhausted extends Exhausted {}

/**
 * The provider refused, filtered, paused or gave up the reply, or its stop reason is unknown. No continuation was requested.
 *
 * `text` is the unchanged reply. `code` is `passed`, or `unknown_stop` for an unknown stop reason: the reply may be cut.
 */
export class NotResumed extends EndmarkError {
  constructor(
    readonly text: string,
    reason?: string,
    /** The provider's stop reason. */
    readonly stop?: string,
  ) {
    const isUnknown = reason === "unknown";
    const what = isUnknown
      ? `the stop reason \`${stop}\` is unknown, so the reply may be cut`
      : `the provider refused, filtered, paused or gave up the reply${stop === undefined ? "" : ` (stop reason \`${stop}\`)`}`;
    super(`${what}; it was not resumed`, isUnknown ? "unknown_stop" : "passed");
  }
}

export interface Problem {
  /** A JSON Pointer. */
  readonly path: string;
  readonly message: string;
}

/** The reply is not cut but invalid: it violates its grammar or its schema, and no correction helped. */
export class InvalidReply extends EndmarkError {
  constructor(
    readonly text: string,
    readonly problems: readonly Problem[],
  ) {
    const first = problems.slice(0, 3).map((problem) => `${problem.path || "the document"}: ${problem.message}`);
    super(`the reply is not valid: ${first.join("; ")}`, "invalid");
  }
}

/** A SQLite file cannot be opened, read or written. `code` is `file`. */
export class FileError extends EndmarkError {}

/** Options of the addon that have another name in TypeScript. */
const NAMES: Readonly<Record<string, string>> = { for: "format", from: "askedFrom" };

/** Converts a name to camel case. */
export function camelName(name: string): string {
  return name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** Returns the error for a failure of the addon. */
export function toError(failure: string): EndmarkError {
  const { kind, code, details, options = [], message: written } = JSON.parse(failure);
  const named = (quoted: string, name: string) => (options.includes(name) ? `\`${NAMES[name] ?? camelName(name)}\`` : quoted);
  const message: string = written.replace(/`([^`]*)`/g, named);
  switch (kind) {
    case "merge":
      return new MergeError(message, code, details.attempt, details.verified_len);
    case "invalid":
      return new InvalidInput(message, code);
    case "malformed":
      return new Malformed(message, code);
    case "budget":
      return new NotAdmitted(message, code);
    default:
      return new InternalError(message, code);
  }
}
