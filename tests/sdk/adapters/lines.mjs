// A request a line in, what the library made of it a line out.

import { createInterface } from "node:readline";

export async function serve(ask, ownError) {
  for await (const line of createInterface({ input: process.stdin })) {
    let answer;
    try {
      answer = await ask(JSON.parse(line));
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

// Two replies never have the same, whatever they say.
const identity = new Set([
  "id", "created", "created_at", "completed_at", "timings", "system_fingerprint", "item_id", "call_id", "response_id",
]);

export const told = (body) => JSON.parse(JSON.stringify(body, (key, value) => (identity.has(key) ? undefined : value)));
