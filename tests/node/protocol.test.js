"use strict";
// Tests the protocol for cut replies as specified: first the units, then a client that cuts replies, and the table.
const { execFileSync } = require("node:child_process");
const { mkdtempSync, rmSync } = require("node:fs");
const { tmpdir } = require("node:os");
const { join } = require("node:path");
const protocol = require("endmark/protocol");

const {
  MAX_RESUME_ATTEMPTS, PartialCompletionLog, PartialCompletionResumeExhaustedError, PartialCompletionResumeProtocol,
} = protocol;
const INSTRUCTION =
  "Continue the JSON payload from the last valid token. Output ONLY the remaining JSON. Do not repeat any content before the last valid token.";
const answers = (...replies) => jest.fn(async () => replies.shift() ?? "");

describe("detectTruncation", () => {
  const { detectTruncation } = PartialCompletionResumeProtocol;

  test.each([["{}"], ['{"a": [1, 2]}'], ['"text"'], ["12"], ["null"], ['  {"a": 1}\n']])("%j is whole", (raw) => {
    expect(detectTruncation(raw)).toEqual({ truncated: false });
  });

  test.each([
    ['{"a": [1, 2', ",", 10],
    ['{"a": "b', '"b', 8],
    ['{"a": tru', '"a":', 6],
    ["[1, 2, ", ",", 7],
    ['{"é😀": ["ü", 1', ",", 14],
    ["", "", 0],
  ])("%j is truncated", (raw, token, index) => {
    const found = detectTruncation(raw);
    expect(found.truncated).toBe(true);
    expect(found.truncationIndex).toBe(index);
    expect(found.lastValidToken.endsWith(token.slice(-1))).toBe(true);
    expect(raw.slice(0, found.truncationIndex).trimEnd().endsWith(found.lastValidToken.trimEnd())).toBe(true);
    expect(Object.keys(found).sort()).toEqual(["lastValidToken", "truncated", "truncationIndex"]);
  });

  test.each([['{"a" 1}'], ["Sorry, no."], ["{]"]])("%j is malformed, which no continuation repairs", (raw) => {
    expect(detectTruncation(raw)).toEqual({ truncated: false });
  });

  test("every prefix of a document is truncated, and certain up to its index", () => {
    const whole = '{"name": "Tom 😀", "sizes": [1.5e3, -2], "on": true, "none": null, "deep": {"k\\u00e9y": ["\\ud83d\\ude00"]}}';
    for (let cut = 0; cut < whole.length; cut += 1) {
      const found = detectTruncation(whole.slice(0, cut));
      expect(found.truncated).toBe(true);
      expect(found.truncationIndex).toBeLessThanOrEqual(cut);
    }
  });

  test("a value other than a string is a TypeError", () => {
    expect(() => detectTruncation(undefined)).toThrow(TypeError);
  });
});

describe("buildResumePrompt", () => {
  test("contains the exact token and the instruction on one line, but not the whole first part", () => {
    const raw = `{"text": "${"x".repeat(2_000)}", "list": [1, 2, `;
    const { lastValidToken } = PartialCompletionResumeProtocol.detectTruncation(raw);
    const prompt = PartialCompletionResumeProtocol.buildResumePrompt(lastValidToken);
    expect(prompt).toContain(lastValidToken);
    expect(prompt.split("\n")).toContain(INSTRUCTION);
    expect(prompt).not.toContain(raw);
    expect(prompt.length).toBeLessThan(600);
  });
});

describe("mergeChunks", () => {
  const { mergeChunks } = PartialCompletionResumeProtocol;

  test.each([
    ['{"city": "San Fran', 'cisco", "n": 1}', { city: "San Francisco", n: 1 }],
    ['{"a": [1, ', "2]}", { a: [1, 2] }],
    ['{"a": [1, ', '```json\n2]}\n```', { a: [1, 2] }],
    ['{"city": "San Fran', '"San Francisco"}', { city: "San Francisco" }],
    ['{"city": "San Fran', '{"city": "San Francisco"}', { city: "San Francisco" }],
  ])("%j and %j", (initial, continuation, value) => {
    expect(JSON.parse(mergeChunks(initial, continuation))).toEqual(value);
  });

  test.each([
    ['{"a": [1, ', "2, ", "still_truncated"],
    ['{"a": 1}', '{"b": 2}', "nothing_to_join"],
    ["[1, 2", "3]", "ambiguous"],
    ['{"a": [1, ', "I cannot do that.", undefined],
  ])("%j and %j are a TypeError with everything received", (initial, continuation, code) => {
    let error;
    try {
      mergeChunks(initial, continuation);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(TypeError);
    if (code) expect(error.code).toBe(code);
    expect(error.attempt.startsWith(initial.slice(0, error.verifiedLength))).toBe(true);
  });

  test("an argument that is not a string is a TypeError", () => {
    expect(() => mergeChunks('{"a":', undefined)).toThrow(TypeError);
    expect(() => mergeChunks(null, "1}")).toThrow(TypeError);
  });
});

describe("resumeIfTruncated", () => {
  const { resumeIfTruncated } = PartialCompletionResumeProtocol;

  test("a whole reply needs no call", async () => {
    const client = answers();
    await expect(resumeIfTruncated('{"a": 1}', client)).resolves.toBe('{"a": 1}');
    expect(client).not.toHaveBeenCalled();
  });

  test("a malformed reply is left to its handler", async () => {
    const client = answers();
    await expect(resumeIfTruncated('{"a" 1}', client)).resolves.toBe('{"a" 1}');
    expect(client).not.toHaveBeenCalled();
  });

  test("one continuation", async () => {
    const client = answers("2, 3]}");
    await expect(resumeIfTruncated('{"a": [1, ', client)).resolves.toBe('{"a": [1, 2, 3]}');
    expect(client).toHaveBeenCalledTimes(1);
    expect(client.mock.calls[0][0]).toContain(INSTRUCTION);
  });

  test("two continuations", async () => {
    const client = answers("2, ", "3]}");
    expect(JSON.parse(await resumeIfTruncated('{"a": [1, ', client))).toEqual({ a: [1, 2, 3] });
    expect(client).toHaveBeenCalledTimes(2);
  });

  test("still cut after MAX_RESUME_ATTEMPTS", async () => {
    expect(MAX_RESUME_ATTEMPTS).toBe(2);
    const client = answers("2, ", "3, ", "4]}");
    const error = await resumeIfTruncated('{"a": [1, ', client).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(PartialCompletionResumeExhaustedError);
    expect(error).toBeInstanceOf(Error);
    expect(error.name).toBe("PartialCompletionResumeExhaustedError");
    expect(error.attempts).toBe(2);
    expect(error.mergedRaw).toBe('{"a": [1, 2, 3, ');
    expect(client).toHaveBeenCalledTimes(2);
  });

  test("an empty reply is requested again", async () => {
    await expect(resumeIfTruncated("", answers('{"a": 1}'))).resolves.toBe('{"a": 1}');
  });

  test.each(["complete", "generate", "send"])("a client with the method %s", async (method) => {
    class Client {
      rest = "2]}";
      async [method]() {
        return this.rest;
      }
    }
    await expect(resumeIfTruncated("[[1, ", new Client()).catch((error) => error.attempts)).resolves.toBe(2);
    await expect(resumeIfTruncated('{"a": [1, ', new Client())).resolves.toBe('{"a": [1, 2]}');
  });

  test("the option `method` selects a method, and a client without one is a TypeError", async () => {
    await expect(resumeIfTruncated('{"a": [1, ', { invoke: async () => "2]}" }, { method: "invoke" })).resolves.toBe('{"a": [1, 2]}');
    await expect(resumeIfTruncated('{"a": [1, ', { invoke: async () => "2]}" })).rejects.toThrow(TypeError);
    await expect(resumeIfTruncated('{"a": [1, ', async () => ({ text: "2]}" }))).rejects.toThrow(TypeError);
  });

  test("an instance has its own client and options", async () => {
    const written = [];
    const instance = new PartialCompletionResumeProtocol(answers("2]}"), { logger: { write: (...row) => void written.push(row) }, taskId: "task-1" });
    expect(instance.detectTruncation("[").truncated).toBe(true);
    expect(instance.mergeChunks('{"a": [1, ', "2]}")).toBe('{"a": [1, 2]}');
    await expect(instance.resumeIfTruncated('{"a": [1, ')).resolves.toBe('{"a": [1, 2]}');
    await expect(instance.resumeIfTruncated("[1, ", answers("2]"))).resolves.toBe("[1, 2]");
    expect(written.map(([row, taskId]) => [row.final_status, taskId])).toEqual([["RESOLVED", "task-1"], ["RESOLVED", "task-1"]]);
    await expect(new PartialCompletionResumeProtocol().resumeIfTruncated("[1, ")).rejects.toThrow(TypeError);
  });

  test("an error of the client reaches the caller", async () => {
    const failure = new Error("the line is dead");
    await expect(resumeIfTruncated("[1, ", async () => Promise.reject(failure))).rejects.toBe(failure);
  });
});

describe("partial_completion_log", () => {
  let folder;
  let path;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "endmark-"));
    path = join(folder, "tasks.db");
  });
  afterEach(() => rmSync(folder, { recursive: true }));
  const rows = () =>
    execFileSync("sqlite3", [
      path,
      "SELECT task_id, turn_number, truncation_index, initial_chunk_length, resume_attempts, final_status, timestamp IS NOT NULL FROM partial_completion_log ORDER BY id",
    ])
      .toString()
      .trim()
      .split("\n");

  test("has a row for each cut reply, in bytes", async () => {
    const logger = new PartialCompletionLog(path);
    const { resumeIfTruncated } = PartialCompletionResumeProtocol;
    await resumeIfTruncated('{"é😀": [1, ', answers("2]}"), { logger, taskId: "task-1", turnNumber: 3 });
    await resumeIfTruncated("[1, ", answers("2, ", "3, "), { logger, taskId: "task-2" }).catch(() => {});
    await resumeIfTruncated("[1, ", async () => Promise.reject(new Error("dead")), { logger, taskId: "task-3" }).catch(() => {});
    await resumeIfTruncated("[1]", answers(), { logger, taskId: "task-4" });
    logger.close();
    expect(rows()).toEqual(["task-1|3|15|15|1|RESOLVED|1", "task-2|1|4|4|2|EXHAUSTED|1", "task-3|1|4|4|0|EXHAUSTED|1"]);
    await expect(logger.write({}, "", 1)).rejects.toThrow("closed");
  });

  test("the migration can run twice, from code and from the shell", () => {
    const migration = require.resolve("endmark/migrations/partial_completion_log.js");
    for (let time = 0; time < 2; time += 1) execFileSync(process.execPath, [migration, path]);
    for (let time = 0; time < 2; time += 1) execFileSync("sqlite3", [path], { input: require(migration).sql });
    const columns = execFileSync("sqlite3", [path, "SELECT group_concat(name) FROM pragma_table_info('partial_completion_log')"]);
    expect(columns.toString().trim()).toBe(
      "id,task_id,turn_number,truncation_index,initial_chunk_length,resume_attempts,final_status,timestamp",
    );
  });
});

describe("before the handler of malformed replies", () => {
  const { before } = PartialCompletionResumeProtocol;

  test("the handler gets whole replies, or everything received if they stay cut", async () => {
    const handler = { calls: [], handle(raw) { this.calls.push(raw); return JSON.parse(raw); } };
    await expect(before(handler, answers("2]}"))('{"a": [1, ')).resolves.toEqual({ a: [1, 2] });
    const correct = jest.fn(async (raw) => `corrected: ${raw}`);
    await expect(before(correct, answers("2, ", "3, "))("[1, ")).resolves.toBe("corrected: [1, 2, 3, ");
    expect(handler.calls).toEqual(['{"a": [1, 2]}']);
  });

  test("an error of the client does not reach the handler", async () => {
    const handler = jest.fn();
    await expect(before(handler, async () => Promise.reject(new Error("dead")))("[1, ")).rejects.toThrow("dead");
    expect(handler).not.toHaveBeenCalled();
  });
});
