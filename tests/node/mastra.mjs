// Tests a wrapped model in the real Mastra: `node --test mastra.mjs`, with Node 22.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { Agent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { createOpenAI } from "openai-6";
import { createEndmark } from "endmark/ai-sdk";
import { z } from "zod";
import { DOCUMENT, FINAL, TEXT, note, scripted } from "./scripted.mjs";

let server;
let executed;
before(async () => (server = await scripted()));
after(() => server.close());
beforeEach(() => ((executed = []), (server.requests.length = 0)));

const inputSchema = z.object({ path: z.string(), text: z.string() });

async function ask(prompt, { isPlain = false, isStream = false, result = "saved", schema } = {}) {
  const endmark = createEndmark();
  const bare = createOpenAI({ baseURL: server.url, apiKey: "none" }).chat("scripted-1");
  const execute = async ({ path, text }) => (executed.push(JSON.stringify({ path, text })), result);
  const save_note = createTool({ id: "save_note", description: "Saves a note.", inputSchema, execute });
  const tools = /^(call|log)/.test(prompt) ? { save_note, ...(isPlain ? {} : endmark.tools) } : {};
  const agent = new Agent({ id: "scribe", name: "scribe", instructions: "Help.", model: isPlain ? bare : endmark.wrap(bare), tools, maxRetries: 0 });
  const options = { maxSteps: 5, modelSettings: { maxRetries: 0 }, ...(schema && { structuredOutput: { schema } }) };
  const answer = isStream ? await agent.stream(prompt, options) : await agent.generate(prompt, options);
  let failure;
  if (isStream) for await (const part of answer.fullStream) if (part.type === "error") failure = part.payload?.error ?? part;
  failure ??= answer.error;
  if (failure) throw failure;
  const steps = await answer.steps;
  return { text: steps.at(-1)?.text ?? (await answer.text), usage: await answer.totalUsage, object: await answer.object };
}

describe("Mastra", () => {
  test("without the wrapper, a cut reply counts as complete", async () => {
    const { text } = await ask("text limit", { isPlain: true });
    assert.ok(TEXT.startsWith(text) && text.length < TEXT.length);
  });

  for (const isStream of [false, true]) {
    test(`texts and tool calls are completed (stream: ${isStream})`, async () => {
      const { text, usage } = await ask("text limit", { isStream });
      assert.equal(text, TEXT);
      assert.deepEqual([usage.inputTokens, usage.outputTokens], [100, 40]);
      for (const [kind, calls] of [["call", [note(1)]], ["calls", [note(1), note(2)]]]) {
        executed = [];
        assert.equal((await ask(`${kind} limit`, { isStream })).text, FINAL);
        assert.deepEqual(executed.sort(), calls);
      }
    });

    test(`a reply that stays cut rejects (stream: ${isStream})`, async () => {
      for (const kind of ["text", "call"]) {
        await assert.rejects(ask(`${kind} never`, { isStream }), { name: "ResumeExhausted" });
      }
      assert.deepEqual(executed, []);
    });
  }

  test("a structured output is completed", async () => {
    const schema = z.object({ name: z.string(), age: z.number(), likes: z.array(z.string()) });
    assert.deepEqual((await ask("document limit", { schema })).object, JSON.parse(DOCUMENT));
  });

  test("a tool result of 2 MB is capped and can be read", async () => {
    const rows = Array.from({ length: 40_000 }, (_, row) => `row ${row} ${row === 20_000 ? "ERROR: disk full" : "all is well"} ${"-".repeat(30)}`);
    assert.equal((await ask("log whole", { result: rows.join("\n") })).text, FINAL);
    const [, second, third] = server.requests;
    assert.ok(second.messages.at(-1).content.length < 25_000 && second.messages.at(-1).content.includes("ERROR: disk full"));
    assert.match(third.messages.at(-1).content, /row 31234 /);
  });
});
