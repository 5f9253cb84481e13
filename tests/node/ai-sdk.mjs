// Tests the middleware in the real AI SDK with its OpenAI provider: `node --test ai-sdk.mjs` with ENDMARK_AI_SDK=5, 6 or 7.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { createEndmark } from "endmark/ai-sdk";
import { ResumeExhausted } from "endmark";
import { z } from "zod";
import { DOCUMENT, FINAL, TEXT, note, scripted } from "./scripted.mjs";

const version = process.env.ENDMARK_AI_SDK ?? "5";
const ai = await import(version === "5" ? "ai" : `ai-${version}`);
const { createOpenAI } = await import(`openai-${version}`);
const { generateText, streamText, stepCountIs, isStepCount, tool, wrapLanguageModel } = ai;

let server;
let executed;
before(async () => (server = await scripted()));
after(() => server.close());
beforeEach(() => ((executed = []), (server.requests.length = 0)));

const openai = () => createOpenAI({ baseURL: server.url, apiKey: "none" }).chat("scripted-1");
const inputSchema = z.object({ path: z.string(), text: z.string() });
const save = (result = "saved") =>
  tool({ description: "Saves a note.", inputSchema, execute: async (input) => (executed.push(JSON.stringify(input)), result) });

function options(prompt, endmark, { tools = { save_note: save() }, ...more } = {}) {
  const model = endmark ? wrapLanguageModel({ model: openai(), middleware: endmark.middleware }) : openai();
  const hasTools = /^(call|log|invalid)/.test(prompt);
  return { model, prompt, maxRetries: 0, stopWhen: (stepCountIs ?? isStepCount)(5), ...(hasTools && { tools: { ...tools, ...endmark?.tools } }), ...more };
}

/** Runs the same test with a generated and a streamed reply. */
async function both(prompt, more) {
  const found = {};
  for (const isStream of [false, true]) {
    executed = [];
    const endmark = createEndmark();
    if (!isStream) {
      const result = await generateText(options(prompt, endmark, more));
      found.generated = { text: result.text, finishReason: result.finishReason, usage: result.totalUsage ?? result.usage, executed };
    } else {
      const result = streamText({ ...options(prompt, endmark, more), onError: () => {} });
      const parts = [];
      for await (const part of result.fullStream) parts.push(part);
      const failed = parts.find((part) => part.type === "error");
      if (failed) throw failed.error;
      found.streamed = { text: await result.text, finishReason: await result.finishReason, usage: await (result.totalUsage ?? result.usage), executed };
      found.parts = parts;
    }
  }
  return found;
}

describe(`AI SDK ${version}`, () => {
  test("without the middleware, a cut reply counts as complete", async () => {
    const { text, finishReason } = await generateText(options("text limit"));
    assert.equal(finishReason, "length");
    assert.ok(TEXT.startsWith(text) && text.length < TEXT.length);
    await generateText(options("call limit")).catch(() => {});
    assert.deepEqual(executed, []);
  });

  test("a text that reached its limit is completed, and usage is summed", async () => {
    const { generated, streamed, parts } = await both("text limit");
    for (const found of [generated, streamed]) {
      assert.equal(found.text, TEXT);
      assert.equal(found.finishReason, "stop");
      assert.deepEqual([found.usage.inputTokens, found.usage.outputTokens], [100, 40]);
    }
    const deltas = parts.filter((part) => part.type === "text-delta").map((part) => part.text ?? part.delta);
    assert.equal(deltas.join(""), TEXT);
    assert.ok(deltas.length > 10);
    assert.equal(parts.filter((part) => part.type === "text-end").length, 1);
  });

  test("a text without a finish reason is completed", async () => {
    const { generated, streamed } = await both("text ends");
    for (const found of [generated, streamed]) assert.equal(found.text, TEXT);
  });

  test("a call without arguments is complete", async () => {
    await generateText(options("empty whole"));
    const plain = server.requests.length;
    await generateText(options("empty whole", createEndmark()));
    assert.equal(server.requests.length, 2 * plain);
  });

  test("the metadata discloses the recovery", async () => {
    const { providerMetadata } = await generateText(options("text limit", createEndmark()));
    assert.deepEqual(providerMetadata.endmark, { outcome: "resumed", attempts: 1 });
  });

  test("a whole reply stays unchanged", async () => {
    const whole = await both("text whole");
    const plain = await generateText(options("text whole"));
    assert.equal(whole.generated.text, plain.text);
    assert.equal(plain.providerMetadata?.endmark, undefined);
    assert.equal(server.requests.length, 3);
    assert.equal((await both("refused limit")).streamed.finishReason, "content-filter");
  });

  test("a JSON document is completed and parsed", async () => {
    const schema = z.object({ name: z.string(), age: z.number(), likes: z.array(z.string()) });
    const ask = async (endmark) => {
      const given = { ...options("document limit", endmark), stopWhen: undefined };
      if (ai.generateObject) return (await ai.generateObject({ ...given, schema })).object;
      return (await generateText({ ...given, output: ai.Output.object({ schema }) })).output;
    };
    await assert.rejects(ask());
    assert.deepEqual(await ask(createEndmark()), JSON.parse(DOCUMENT));
    const [, continuation] = server.requests.slice(-2);
    assert.equal(continuation.response_format, undefined);
  });

  test("a cut call runs once, with whole arguments", async () => {
    const { generated, streamed } = await both("call limit");
    for (const found of [generated, streamed]) {
      assert.deepEqual(found.executed, [note(1)]);
      assert.equal(found.text, FINAL);
      assert.deepEqual([found.usage.inputTokens, found.usage.outputTokens], [150, 60]);
    }
    assert.equal(server.requests.filter((body) => body.tool_choice === "none").length, 2);
  });

  test("two calls run if the second one is cut", async () => {
    const { generated, streamed } = await both("calls limit");
    for (const found of [generated, streamed]) assert.deepEqual(found.executed.sort(), [note(1), note(2)]);
    assert.equal(generated.text, FINAL);
    assert.equal(streamed.text, FINAL);
  });

  for (const harm of ["never", "fails"]) {
    test(`a reply that stays cut rejects (${harm})`, async () => {
      for (const kind of ["text", "call"]) {
        const error = await generateText(options(`${kind} ${harm}`, createEndmark())).catch((error) => error);
        assert.ok(error instanceof ResumeExhausted, String(error));
        const whole = kind === "text" ? TEXT : note(1);
        assert.ok(whole.startsWith(error.mergedRaw) && error.mergedRaw.length > 20);
        await assert.rejects(both(`${kind} ${harm}`), ResumeExhausted);
      }
      assert.deepEqual(executed, []);
    });
  }

  test("a stream that breaks off is continued", async () => {
    for (const [kind, whole] of [["text", TEXT], ["call", FINAL]]) {
      executed = [];
      const result = streamText({ ...options(`${kind} drop`, createEndmark()), onError: () => {} });
      let text = "";
      for await (const part of result.textStream) text += part;
      assert.equal(text, whole);
      assert.deepEqual(executed, kind === "call" ? [note(1)] : []);
    }
  });

  test("a tool result of 2 MB is capped, keeps its error row, and can be read", async () => {
    const rows = Array.from({ length: 40_000 }, (_, row) => `row ${row} ${row === 20_000 ? "ERROR: disk full" : "all is well"} ${"-".repeat(30)}`);
    for (const result of [rows.join("\n"), rows.map((line, row) => ({ row, line }))]) {
      server.requests.length = 0;
      const { text, steps } = await generateText(options("log whole", createEndmark(), { tools: { save_note: save(result) } }));
      assert.equal(text, FINAL);
      const [, second, third] = server.requests;
      const content = second.messages.at(-1).content;
      assert.ok(content.length < 25_000 && content.includes("ERROR: disk full"), content.slice(0, 300));
      assert.match(third.messages.at(-1).content, /row 31234 /);
      assert.ok(third.messages.at(-1).content.length < 300);
      // The same result is capped in the same way in the next request, so that prompt caching works.
      assert.equal(third.messages.at(-3).content, content);
      assert.equal(steps.length, 3);
    }
  });

  test("arguments that violate their schema are corrected", async () => {
    const endmark = createEndmark();
    const repair = endmark.repairToolCall(openai());
    const { text } = await generateText(options("invalid whole", endmark, { experimental_repairToolCall: repair, repairToolCall: repair }));
    assert.equal(text, FINAL);
    assert.deepEqual(executed, ['{"path":"5","text":"x"}']);
    const cut = { toolCall: { toolName: "save_note", input: '{"path": "a' }, inputSchema: async () => ({}) };
    assert.equal(await repair(cut), null);
  });

  const parted = async (parts, continuation, params = {}) => {
    const streamOf = (parts) => new ReadableStream({ start: (controller) => (parts.forEach((part) => controller.enqueue(part)), controller.close()) });
    const model = { doStream: async () => ({ stream: streamOf([{ type: "text-delta", id: "x", delta: continuation.shift() }, { type: "finish", finishReason: "stop", usage: { inputTokens: 1 } }]) }) };
    const doStream = async () => ({ stream: streamOf(parts) });
    const { stream } = await createEndmark().middleware.wrapStream({ doStream, params: { prompt: [], ...params }, model });
    return Array.fromAsync ? Array.fromAsync(stream) : (async () => { const found = []; for await (const part of stream) found.push(part); return found; })();
  };
  const finish = (finishReason) => ({ type: "finish", finishReason, usage: { inputTokens: 1 } });
  const call = (id, input) => [
    { type: "tool-input-start", id, toolName: "t" },
    { type: "tool-input-delta", id, delta: input },
  ];

  test("the parts of a whole reply pass unchanged and in order", async () => {
    const parts = [
      { type: "stream-start", warnings: [] },
      { type: "reasoning-start", id: "r" },
      { type: "reasoning-end", id: "r" },
      { type: "text-start", id: "1" },
      { type: "text-delta", id: "1", delta: "Hello" },
      { type: "text-end", id: "1" },
      { type: "source", id: "s", sourceType: "url" },
      { type: "text-start", id: "2" },
      { type: "text-delta", id: "2", delta: "you." },
      { type: "text-end", id: "2" },
      { type: "file", mediaType: "image/png" },
      ...call("a", "{}"),
      { type: "tool-input-end", id: "a" },
      { type: "tool-call", toolCallId: "a", toolName: "t", input: "{}" },
      { type: "tool-call", toolCallId: "b", toolName: "t", input: "[]" },
      { type: "tool-call", toolCallId: "c", toolName: "own", input: "", providerExecuted: true },
      { type: "raw", rawValue: 1 },
      finish("tool-calls"),
    ];
    assert.deepEqual(await parted(parts, []), parts);
  });

  test("parallel calls are all completed, and a whole one passes immediately", async () => {
    const ends = (id, input) => [{ type: "tool-input-end", id }, { type: "tool-call", toolCallId: id, toolName: "t", input }];
    const parts = [...call("a", '{"n": [1, '), ...call("b", '{"n": 2}'), ...call("c", '{"n": "th'), ...ends("a", '{"n": [1, '), ...ends("b", '{"n": 2}'), ...ends("c", '{"n": "th'), finish("length")];
    const found = await parted(parts, ["1]}", '"three"}']);
    const calls = found.filter((part) => part.type === "tool-call").map((part) => [part.toolCallId, part.input]);
    assert.deepEqual(calls, [["b", '{"n": 2}'], ["a", '{"n": [1, 1]}'], ["c", '{"n": "three"}']]);
    for (const id of ["a", "b", "c"]) {
      const own = found.filter((part) => (part.id ?? part.toolCallId) === id);
      assert.deepEqual(own.map((part) => part.type).filter((type) => !type.endsWith("delta")), ["tool-input-start", "tool-input-end", "tool-call"]);
      assert.equal(own.map((part) => part.delta ?? "").join(""), own.at(-1).input);
    }
    assert.equal(found.at(-1).usage.inputTokens, 3);
  });

  test("a text is continued before the parts after it", async () => {
    const parts = [
      { type: "text-start", id: "1" },
      { type: "text-delta", id: "1", delta: "The harbour was built in 1904 by the" },
      { type: "text-end", id: "1" },
      { type: "source", id: "s", sourceType: "url" },
      finish("length"),
    ];
    const found = await parted(parts, ["by the city."]);
    assert.deepEqual(found.map((part) => part.type), ["text-start", "text-delta", "text-delta", "text-end", "source", "finish"]);
    assert.equal(found.map((part) => part.delta ?? "").join(""), "The harbour was built in 1904 by the city.");
  });

  test("an aborted reply rejects without further requests", async () => {
    const controller = new AbortController();
    const result = streamText({ ...options("text drop", createEndmark()), abortSignal: controller.signal, onError: () => {} });
    const parts = [];
    for await (const part of result.fullStream) {
      parts.push(part.type);
      if (part.type === "text-delta") controller.abort();
    }
    assert.ok(!parts.includes("finish"));
    assert.equal(server.requests.length, 1);
  });

  test("a slow reader slows the model down and may cancel", async () => {
    let made = 0;
    let isCancelled = false;
    const stream = new ReadableStream(
      {
        pull(controller) {
          made += 1;
          controller.enqueue(made === 1 ? { type: "text-start", id: "1" } : { type: "text-delta", id: "1", delta: `${made} ` });
        },
        cancel: () => void (isCancelled = true),
      },
      { highWaterMark: 0 },
    );
    const params = { prompt: [] };
    const wrapped = await createEndmark().middleware.wrapStream({ doStream: async () => ({ stream }), params, model: {} });
    const reader = wrapped.stream.getReader();
    for (let count = 0; count < 100; count += 1) await reader.read();
    await new Promise((resolve) => setTimeout(resolve, 20));
    assert.ok(made <= 102, `${made} parts for 100`);
    await reader.cancel();
    await new Promise((resolve) => setTimeout(resolve, 20));
    assert.ok(isCancelled);
  });
});
