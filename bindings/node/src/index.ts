/**
 * Detects cut replies of language models, recovers them where possible, and discloses what is missing.
 *
 * Offsets of strings count UTF-16 units, and those of a Uint8Array bytes. No function makes a request. `promises` contains functions that
 * process large inputs on threads of Node's pool.
 */

import { contextLater } from "./context.js";
import { guardLater } from "./guard.js";
import { native } from "./native.js";
import { textsLater } from "./texts.js";

export {
  MAX_RESULT_CHARS, Meter, Outputs, cap, compact, count, read, readTool, type Admitted, type CallCost, type CapOptions, type Capped,
  type CompactOptions, type Compacted, type Count, type Excerpt, type ReadTool, type Tokens, type Usage, type WireFormat,
} from "./context.js";
export {
  EndmarkError, FileError, InternalError, InvalidInput, InvalidReply, Malformed, MergeError, NotAdmitted, NotResumed, ResumeExhausted,
  type Exhausted, type Problem,
} from "./errors.js";
export * as envelope from "./envelope.js";
export * as findings from "./findings.js";
export { guard, type GuardCriteria, type GuardFinding, type GuardOptions, type GuardReport } from "./guard.js";
export * from "./recovery.js";
export {
  buildResumePrompt, complete, detect, detectTruncation, mergeChunks, stitch, type AskedFrom, type Completed, type Detection, type Format,
  type Merged, type Seam, type Stitched,
} from "./texts.js";
export type { Input } from "./native.js";

/** The same functions, but not on the event loop. */
export const promises = { ...textsLater, ...contextLater, guard: guardLater };
/** SQL that creates the table in which cut replies are logged. It can run more than once. */
export const LOG_TABLE = native.logTable();
export const version = native.version();
