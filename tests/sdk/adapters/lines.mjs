// Reads requests as lines, and writes the library's results as lines.

import { createInterface } from "node:readline";
import { gzipSync } from "node:zlib";

// A fetch function for these libraries, which compresses every request.
const plain = globalThis.fetch;
const compressing = (url, { body, headers, ...options }) => {
  const all = new Headers(headers);
  all.delete("content-length");
  all.set("content-encoding", "gzip");
  return plain(url, { ...options, headers: all, body: gzipSync(body) });
};

export async function serve(ask, ownError) {
  for await (const line of createInterface({ input: process.stdin })) {
    let answer;
    try {
      const asked = JSON.parse(line);
      globalThis.fetch = asked.compressed ? compressing : plain;
      answer = await ask(asked);
    } catch (error) {
      answer = {
        error: error.constructor.name,
        is_own: ownError(error),
        status: error.status ?? error.statusCode ?? null,
        message: String(error.message ?? error),
      };
    }
    process.stdout.write(JSON.stringify(answer) + "\n");
  }
}

// Fields that differ in each reply.
const identity = new Set([
  "id", "created", "created_at", "completed_at", "timings", "system_fingerprint", "item_id", "call_id", "response_id",
]);

export const told = (body) => JSON.parse(JSON.stringify(body, (key, value) => (identity.has(key) ? undefined : value)));
