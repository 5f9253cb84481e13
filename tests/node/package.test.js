"use strict";
// Tests the package: the shared cases of all languages, its functions, and invalid inputs.
const { execFileSync, spawnSync } = require("node:child_process");
const { mkdtempSync, readFileSync, rmSync } = require("node:fs");
const { tmpdir } = require("node:os");
const { dirname, join } = require("node:path");
const { Worker } = require("node:worker_threads");
const fc = require("fast-check");
const endmark = require("endmark");

const { native } = require(join(dirname(require.resolve("endmark")), "native.js"));
const CASES = JSON.parse(readFileSync(process.env.ENDMARK_CASES, "utf8"));

/** Removes the column from messages about options, because each language writes options with different white space. */
const withoutColumns = (found) => JSON.parse(JSON.stringify(found).replace(/ at line 1 column \d+/g, ""));
/** Parses JSON, but keeps the form of numbers such as 1.0. */
const shown = ({ answer, failure }) => (failure == null ? { answer } : { failure });

/** Whether JavaScript can express the options exactly. It rounds integers of more than 53 bits, and a schema is an object. */
const isExact = ({ options }) => {
  let exact = true;
  JSON.stringify(options, (_, value) => {
    exact &&= !Number.isInteger(value) || Number.isSafeInteger(value);
    return value;
  });
  return exact;
};

test.each(CASES.filter(isExact).map((found) => [found.name, found]))("case: %s", async (_, found) => {
  const options = JSON.stringify(found.options);
  if (found.class === undefined) {
    const bytes = found.inputs.map((input) => Buffer.from(input));
    for (const inputs of [found.inputs, bytes]) {
      expect(withoutColumns(shown(native.call(found.function, inputs, options)))).toEqual(withoutColumns(found.expected));
      expect(withoutColumns(shown(await native.callLater(found.function, inputs, options)))).toEqual(withoutColumns(found.expected));
    }
    return;
  }
  const made = new native.Stateful(found.class, found.inputs, options);
  const answers = found.calls.map((step) => shown(made.call(step.method, step.inputs, JSON.stringify(step.options))));
  expect(answers).toEqual(found.expected.answers);
});

describe("functions", () => {
  test("offsets index the value that was passed", () => {
    const text = '{"é😀": ["ü", 1';
    const cut = endmark.detectTruncation(text);
    expect(text.slice(0, cut.truncationIndex)).toBe('{"é😀": ["ü", ');
    const bytes = Buffer.from(text);
    expect(bytes.subarray(0, endmark.detect(bytes, "json").truncationIndex).toString()).toBe('{"é😀": ["ü", ');
    expect(endmark.detect('"\ud83d', "json").truncationIndex).toBe(2);
  });

  test("errors have classes and codes", () => {
    expect(() => endmark.detect("x", "yaml")).toThrow(endmark.InvalidInput);
    expect(() => endmark.detectTruncation('{"a" 1}')).toThrow(endmark.Malformed);
    expect(() => endmark.complete("Sorry", "auto")).toThrow(expect.objectContaining({ code: "not_json" }));
    for (const wrong of [undefined, null, 5, {}, [], Symbol("x")]) expect(() => endmark.detect(wrong)).toThrow(endmark.InvalidInput);
    expect(() => endmark.compact({ a: 1n }, "openai_chat")).toThrow(endmark.InvalidInput);
    const bug = JSON.stringify({ kind: "bug", code: "bug", message: "please report it", details: null });
    const { toError } = require(join(dirname(require.resolve("endmark")), "errors.js"));
    expect(toError(bug)).toBeInstanceOf(endmark.InternalError);
  });

  test("unknown names are rejected with the nearest known name", async () => {
    const { createEndmark } = require("endmark/ai-sdk");
    const first = { text: "[1", stop: "length" };
    const ask = () => ({ text: ", 2]", stop: "stop" });
    const meter = new endmark.Meter({ maxTokens: 9_000 });
    const call = meter.beforeCall("gpt-5", { promptTokens: 1, maxOutputTokens: 1 });
    const slips = [
      ["maxCharz", "maxChars", () => endmark.cap("x", { maxCharz: 100 })],
      ["maxToken", "maxTokens", () => new endmark.Meter({ maxToken: 100 })],
      ["maxByte", "maxBytes", () => new endmark.Outputs(undefined, { maxByte: 100 })],
      ["maxResultChar", "maxResultChars", () => createEndmark({ maxResultChar: 100 })],
      ["askedForm", "from", () => endmark.mergeChunks("[1", ", 2]", "json", { form: "cut", askedForm: "cut" })],
      ["txt", "text", () => meter.afterCall(call, { txt: "x" })],
      ["maxAttempt", "maxAttempts", () => endmark.resumeIfTruncated(ask, first, { maxAttempt: 1 })],
      ["isSend", "isSent", () => new endmark.Pipeline().run(ask, first, { isSend: true })],
      ["reply.outputToken", "reply.outputTokens", () => new endmark.Pipeline().run(ask, { ...first, outputToken: 5 })],
      ["reply.outputToken", "reply.outputTokens", () => new endmark.Pipeline().run(() => ({ ...ask(), outputToken: 5 }), first)],
    ];
    for (const [name, meant, work] of slips) {
      const error = await (async () => work())().catch((error) => error);
      expect(error).toBeInstanceOf(endmark.InvalidInput);
      if (name !== "askedForm") expect(error.message).toBe(`unknown option \`${name}\`: did you mean \`${meant}\`?`);
    }
    expect(() => endmark.cap("x", { maxChars: "9" })).toThrow("`maxChars`: invalid type");
    expect(() => endmark.cap("x", { maxChars: 100, maxBytes: 100 })).toThrow("`maxChars`, `maxBytes` and `maxTokens` exclude one another");
    expect(() => endmark.mergeChunks("[1", ", 2]", "json", { askedFrom: "my_cut" })).toThrow("unknown `askedFrom`: `my_cut`");
  });

  test("a wrong type and an unusable file raise errors of the package", async () => {
    for (const wrong of [undefined, null, 5]) expect(() => endmark.count(wrong, "gpt-5")).toThrow(/expected a string.*not (undefined|null|a number)/);
    const moved = new Uint8Array([91, 49]);
    structuredClone(moved, { transfer: [moved.buffer] });
    for (const work of [() => endmark.detect(moved, "json"), () => endmark.cap(moved, { outputs: new endmark.Outputs() })]) {
      expect(work).toThrow(expect.objectContaining({ name: "InvalidInput", message: expect.stringContaining("transferred") }));
    }
    expect(endmark.detect(new Uint8Array(), "json").verdict).toBe("truncated");
    expect(() => new endmark.Log("/nowhere/log.db")).toThrow(endmark.FileError);
    expect(() => new endmark.Outputs("/nowhere/outputs.db")).toThrow(endmark.FileError);
    const log = new endmark.Log(":memory:");
    log.close();
    await expect(log.write({ resume_attempts: 1 }, "t", 1)).rejects.toThrow(endmark.EndmarkError);
  });

  test("a position in an error indexes the value that was passed", () => {
    expect(() => endmark.complete('{"é😀" 1}')).toThrow("malformed at 7:");
    expect(() => endmark.complete(Buffer.from('{"é😀" 1}'))).toThrow("malformed at byte 10:");
  });

  test("a meter enforces its budget", () => {
    const meter = new endmark.Meter({ maxTokens: 2_000 });
    const first = meter.beforeCall("gpt-5", { promptTokens: 900, maxOutputTokens: 500 });
    meter.afterCall(first, { tokens: { prompt: 900, completion: 400 } });
    const sizes = { promptTokens: 900, maxOutputTokens: 500 };
    expect(() => meter.beforeCall("gpt-5", { ...sizes, isContinuation: true })).toThrow(endmark.NotAdmitted);
    const closing = meter.beforeCall("gpt-5", sizes);
    expect(closing.isClosing).toBe(true);
    meter.afterCall(closing, { text: "The findings." });
    expect(() => meter.beforeCall("gpt-5", { promptTokens: 1, maxOutputTokens: 1 })).toThrow(endmark.NotAdmitted);
    expect(() => meter.afterCall(first)).toThrow(endmark.InvalidInput);
    expect(endmark.Meter.fromEnvironment({ ENDMARK_TOKEN_BUDGET: " ", SRE_AGENT_TOKEN_BUDGET: "1_000" }).usage().tokensLeft).toBe(1_000);
    expect(endmark.Meter.fromEnvironment({}).usage().tokensLeft).toBe(null);
    expect(endmark.Meter.fromEnvironment({ SRE_AGENT_TOKEN_BUDGET: "850,000" }).usage().tokensLeft).toBe(850_000);
    expect(() => endmark.Meter.fromEnvironment({ ENDMARK_TOKEN_BUDGET: "lots" })).toThrow(endmark.InvalidInput);
  });

  test("omitted parts of a result can be read from memory and from a file", async () => {
    const folder = mkdtempSync(join(tmpdir(), "endmark-"));
    const value = Array.from({ length: 5_000 }, (_, line) => `line ${line} é😀`).join("\n");
    for (const path of [undefined, join(folder, "outputs.db")]) {
      const outputs = new endmark.Outputs(path, { maxBytes: 300_000 });
      const capped = await endmark.promises.cap(value, { maxChars: 1_000, outputs });
      expect(capped.isCut).toBe(true);
      expect(capped.text).toContain(capped.handle);
      expect(endmark.cap(value, { maxChars: 1_000, outputs }).text).toBe(capped.text);
      expect(await outputs.read({ handle: capped.handle, lines: "5000:" })).toContain("line 4999 é😀");
      await expect(outputs.read(`{"handle": "guess"}`)).rejects.toThrow(expect.objectContaining({ code: "unknown_handle" }));
      await expect(outputs.read("[")).rejects.toThrow(endmark.InvalidInput);
      for (let time = 0; time < 4; time += 1) outputs.keep(`other ${time}`, Buffer.alloc(90_000));
      expect(() => outputs.get(capped.handle)).toThrow(endmark.InvalidInput);
      expect(outputs.get("other 3").length).toBe(90_000);
      outputs.close();
    }
    rmSync(folder, { recursive: true });
  });

  test("findings, guard and envelope", () => {
    expect(endmark.findings.estimate(12, 9_500).fits).toBe(true);
    expect(endmark.findings.estimate(12, 9_500).dropped.titles).toBe(0);
    const [result] = endmark.findings.check("===AGENT_RESULT===\nagent_id: a\ndeclared_findings: 2\n").results;
    expect([result.cut, result.expected.findings, result.begins.byte]).toEqual(["mild", 2, 0]);
    expect(endmark.findings.report({ a: "===AGENT_RESULT===\nagent_id: a\n" })).toContain("a");
    expect(endmark.guard("# Plan\n\n## Risks\n\nTBD\n", { requiredSections: ["Risks"] }).verdict).toBe("wrapped_up");
    const { json, exitCode } = endmark.envelope.document({ log: "first lines [...]" });
    expect([exitCode, JSON.parse(json).warnings[0].field]).toEqual([0, "data.log"]);
    expect(() => endmark.envelope.checkLimits({ body: "é".repeat(6) }, { body: 10 })).toThrow(
      expect.objectContaining({ code: "FIELD_TOO_LARGE" }),
    );
  });
});

describe("recovery", () => {
  const first = { text: '{"sum": [1, 2, ', stop: "length" };

  test("a document is resumed, validated and corrected", async () => {
    const schema = { type: "object", properties: { sum: { items: { type: "integer" } } } };
    const requests = [];
    const replies = [{ text: '"3"]}', stop: "stop" }, { text: '{"sum": [1, 2, 3]}', stop: "stop" }];
    const outcome = await new endmark.Pipeline({ schema }).run((request) => (requests.push(request), replies.shift()), first);
    expect([outcome.result, outcome.text]).toEqual(["corrected", '{"sum": [1, 2, 3]}']);
    expect(requests.map((request) => request.step)).toEqual(["resume", "correct"]);
    expect(requests[0].messages([{ role: "user", content: "Sum." }])).toEqual([
      { role: "user", content: "Sum." },
      { role: "assistant", content: first.text },
      { role: "user", content: requests[0].prompt },
    ]);
  });

  test("every incomplete end is an error", async () => {
    const { resumeIfTruncated } = endmark;
    await expect(resumeIfTruncated(() => Promise.reject(new endmark.AskFailed("refused", "final", { cause: "why" })), first)).rejects.toThrow(
      expect.objectContaining({ name: "ResumeExhausted", code: "refused", mergedRaw: first.text, cause: "why" }),
    );
    await expect(resumeIfTruncated(() => ({}), { text: "I cannot", stop: "content_filter" })).rejects.toThrow(endmark.NotResumed);
    await expect(resumeIfTruncated(() => ({}), { text: "The", stop: "moon_phase" })).rejects.toMatchObject({
      code: "unknown_stop",
      stop: "moon_phase",
    });
    await expect(resumeIfTruncated(() => ({}), { text: "Sorry.", stop: "stop" })).rejects.toThrow(endmark.InvalidReply);
    await expect(resumeIfTruncated(() => "3]}", first)).rejects.toThrow(endmark.InvalidInput);
    await expect(resumeIfTruncated(() => ({ text: 5 }), first)).rejects.toThrow(endmark.InvalidInput);
    await expect(resumeIfTruncated(() => ({}), null)).rejects.toThrow(endmark.InvalidInput);
  });

  test("sent prose is only extended", async () => {
    const text = "The harbour was built in 1904 by the";
    const outcome = await endmark.resumeIfTruncated(() => ({ text: "by the city.", stop: "stop" }), { text }, { format: null, isSent: true });
    expect(outcome.text).toBe("The harbour was built in 1904 by the city.");
  });

  test("many recoveries run at once", async () => {
    const one = async (n) => (await endmark.resumeIfTruncated(async () => ({ text: `${n}]}`, stop: "stop" }), first)).text;
    const found = await Promise.all(Array.from({ length: 64 }, (_, n) => one(n)));
    expect(found.map((text) => JSON.parse(text).sum[2])).toEqual(Array.from({ length: 64 }, (_, n) => n));
  });
});

describe("no input crashes it", () => {
  const any = fc.oneof(fc.string({ unit: "binary" }), fc.uint8Array(), fc.json(), fc.string({ unit: fc.constantFrom("{", "[", '"', "\\", ",", ":", "1", "\ud83d", "\n", "`", "<", "|") }));
  const format = fc.constantFrom("json", "jsonl", "markdown", "tags", "text", "auto");
  const survives = (work) => {
    try {
      work();
    } catch (error) {
      if (!(error instanceof endmark.EndmarkError) || error instanceof endmark.InternalError) throw error;
    }
  };

  test("any text and any bytes", () => {
    fc.assert(
      fc.property(any, any, format, (first, second, name) => {
        survives(() => {
          const { truncationIndex } = endmark.detect(first, name);
          if (truncationIndex !== null) expect(truncationIndex).toBeLessThanOrEqual(first.length);
        });
        survives(() => endmark.complete(first, name));
        survives(() => endmark.mergeChunks(first, second, name));
        survives(() => endmark.stitch([first, second, first], name));
        survives(() => endmark.cap(first, { maxChars: 80 }));
        survives(() => endmark.read(first, { lines: String(second) }));
        survives(() => endmark.compact(first, "openai_chat"));
        survives(() => endmark.count(first, "gpt-5"));
        survives(() => endmark.guard(first));
        survives(() => endmark.findings.merge({ a: first, b: second }));
        survives(() => endmark.envelope.document(first));
      }),
      { numRuns: 200, seed: 1 },
    );
  });

  test("any arguments of the addon", async () => {
    const value = fc.anything({ withBigInt: true, withTypedArray: true });
    await fc.assert(
      fc.asyncProperty(value, value, value, async (name, inputs, options) => {
        for (const work of [() => native.call(name, inputs, options), () => new native.Stateful(name, inputs, options), () => new native.LogFile(name)]) {
          try {
            work();
          } catch (error) {
            expect(error).toHaveProperty("message");
          }
        }
        await Promise.resolve(native.callLater("detect", [String(name)], "{")).catch(() => {});
      }),
      { numRuns: 200, seed: 1 },
    );
  });
});

describe("where it runs", () => {
  const folder = __dirname;
  const node = (...words) => execFileSync(process.execPath, words, { cwd: folder }).toString().trim();

  test("both module systems have the same classes", () => {
    const script = `import { InvalidInput, detect } from "endmark"; import { createRequire } from "node:module";
      const other = createRequire(process.cwd() + "/x.js")("endmark");
      try { detect("x", "yaml"); } catch (error) { console.log(error instanceof other.InvalidInput && error instanceof InvalidInput); }`;
    expect(node("--input-type=module", "--eval", script)).toBe("true");
    for (const path of ["protocol", "guard", "envelope", "ai-sdk"]) {
      const names = `console.log(Object.keys(m).filter((name) => !["default", "__esModule", "module.exports"].includes(name)).sort().join())`;
      const esm = node("--input-type=module", "--eval", `import * as m from "endmark/${path}"; ${names}`);
      expect(esm).toBe(node("--eval", `const m = require("endmark/${path}"); ${names}`));
      expect(esm).not.toBe("");
    }
  });

  test("eight workers run at once and can be terminated while they work", async () => {
    const source = `const { parentPort } = require("node:worker_threads"); const { detect, promises } = require(${JSON.stringify(require.resolve("endmark"))});
      const text = '["' + "x".repeat(200_000); let last;
      for (let time = 0; time < 20; time += 1) last = detect(text, "json").truncationIndex;
      promises.detect(text, "json").then((found) => parentPort.postMessage([last, found.truncationIndex]));`;
    const start = () => new Worker(source, { eval: true });
    const workers = Array.from({ length: 8 }, start);
    const found = await Promise.all(workers.map((worker) => new Promise((resolve, reject) => worker.once("message", resolve).once("error", reject))));
    expect(found).toEqual(Array(8).fill([200_002, 200_002]));
    const ended = Array.from({ length: 4 }, start);
    await Promise.all(ended.map((worker) => worker.terminate()));
  });

  test("loading takes less than 30 ms of processor time", () => {
    const script =
      "const begun = process.cpuUsage(); require('endmark'); const { user, system } = process.cpuUsage(begun); console.log((user + system) / 1000)";
    const times = Array.from({ length: 7 }, () => Number(node("--eval", script)));
    expect(Math.min(...times)).toBeLessThan(30);
  });

  test("a command prints an envelope, and a full pipe loses nothing", () => {
    const command = (body) => {
      const script = `const { answers, CommandFailed } = require("endmark/envelope"); answers(async (given) => { ${body} }, { maxBytes: { body: 10 } })({ body: process.argv[1] });`;
      const { stdout, status } = spawnSync(process.execPath, ["--eval", script, "--", "é".repeat(5)], { cwd: folder, maxBuffer: 1 << 24 });
      return [JSON.parse(stdout.toString()), status];
    };
    expect(command("return { n: 1 }")).toMatchObject([{ ok: true, data: { n: 1 } }, 0]);
    expect(command("return 'x'.repeat(900_000)")[0].data.length).toBe(900_000);
    expect(command("throw new CommandFailed('not_found', 'there is no issue 7', { hint: 'list' })")).toMatchObject([{ ok: false, error: { code: "not_found" } }, 1]);
    expect(command("throw new Error('oh')")).toMatchObject([{ ok: false, error: { code: "bug" } }, 70]);
    expect(command("return 1n")).toMatchObject([{ ok: false, error: { code: "bug" } }, 70]);
    const script = `const { answers } = require("endmark/envelope"); answers(() => 1, { maxBytes: { body: 10 } })({ body: "é".repeat(6) });`;
    const { stdout, status } = spawnSync(process.execPath, ["--eval", script], { cwd: folder });
    expect([JSON.parse(stdout.toString()).error, status]).toMatchObject([{ code: "FIELD_TOO_LARGE", phase: "validation" }, 2]);
  });

  test("commander, yargs and oclif reject a field over its limit before the command runs", () => {
    const parsers = [
      `import { Command } from "commander";
       const program = new Command();
       program.command("post <name>").option("--body <body>").action(answers((name, { body }) => post({ name, body }), limits));
       await program.parseAsync(["node", "x", "post", "a", "--body", body]);`,
      `import yargs from "yargs";
       await yargs(["post", "a", "--body", body]).command("post <name>", "posts it", { body: { type: "string" } }, answers(post, limits)).parseAsync();`,
      `import { Args, Command, Flags } from "@oclif/core";
       class Post extends Command {
         static args = { name: Args.string() };
         static flags = { body: Flags.string() };
         async run() {
           const { args, flags } = await this.parse(Post);
           await answers(post, limits)({ ...args, ...flags });
         }
       }
       const pjson = { name: "post", version: "1.0.0", oclif: {} };
       await Post.run(["a", "--body", body], { root: process.cwd(), pjson });`,
    ];
    for (const parser of parsers) {
      const script = `import { answers } from "endmark/envelope"; const body = process.argv[1]; const limits = { maxBytes: { body: 10 } };
        const post = ({ name, body }) => (console.error("called"), { name, body }); ${parser}`;
      const run = (body) => spawnSync(process.execPath, ["--input-type=module", "--eval", script, "--", body], { cwd: folder });
      const posted = run("é".repeat(5));
      expect([JSON.parse(posted.stdout.toString()), posted.status]).toMatchObject([{ ok: true, data: { name: "a", body: "ééééé" } }, 0]);
      const refused = run("é".repeat(6));
      expect([JSON.parse(refused.stdout.toString()).error, refused.status]).toMatchObject([{ code: "FIELD_TOO_LARGE", field: "body" }, 2]);
      expect(refused.stderr.toString()).not.toContain("called");
    }
  });

  test("a large input does not block the event loop", async () => {
    const text = `[${"1234567, ".repeat(400_000)}`;
    let ticks = 0;
    const timer = setInterval(() => (ticks += 1), 1);
    const found = await endmark.promises.detect(text, "json");
    clearInterval(timer);
    expect(found.verdict).toBe("truncated");
    expect(ticks).toBeGreaterThan(3);
  });
});
