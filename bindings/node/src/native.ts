/** Loads the addon: `endmark.node` of the source tree, or of the package for this platform. */

import { existsSync } from "node:fs";
import { join } from "node:path";

export type Input = string | Uint8Array;

/** Contains either an answer or a failure, as JSON. */
export interface Answer {
  answer?: string;
  failure?: string;
}

interface Callable {
  call(name: string, inputs: Input[], options: string): Answer;
  callLater(name: string, inputs: Input[], options: string): Promise<Answer>;
}

export interface NativeStateful extends Callable {
  readonly failure: string | null;
}

export interface NativeLog {
  write(row: string, taskId: string, turnNumber: number): Promise<void>;
  close(): void;
}

export interface NativeOutputs {
  keep(handle: string, value: Uint8Array): void;
  get(handle: string): Uint8Array | null;
  close(): void;
}

export interface Native extends Callable {
  Stateful: new (kind: string, inputs: Input[], options: string) => NativeStateful;
  LogFile: new (path: string) => NativeLog;
  OutputsFile: new (path: string, maxBytes: number) => NativeOutputs;
  logTable(): string;
  version(): string;
}

function load(): Native {
  const built = join(__dirname, "..", "endmark.node");
  const name = `@endmark/${process.platform}-${process.arch}/endmark.node`;
  try {
    return require(existsSync(built) ? built : name);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(
      `endmark: the addon ${name} cannot be loaded. It is built for Linux with glibc, and npm must install optional dependencies: ${why}`,
    );
  }
}

export const native = load();
