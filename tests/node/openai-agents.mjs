// Tests a wrapped provider in the real OpenAI Agents SDK: `node --test openai-agents.mjs`, with Node 22.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { Agent, OpenAIProvider, Runner, setTracingDisabled, tool } from "@openai/agents";
import { Meter, NotAdmitted, ResumeExhausted } from "endmark";
import { createEndmark } from "endmark/openai-agents";
import { z } from "zod";
import { DOCUMENT, FINAL, TEXT, note, scripted } from "./scripted.mjs";

setTracingDisabled(true);
let server;
let executed;
before(async () => (server = await scripted()));
after(() => server.close());
beforeEach(() => ((executed = []), (server.requests.length = 0)));

const parameters = z.object({ path: z.string(), text: z.string() });

function set({ prompt, isPlain, useResponses, endmark, result = "saved", outputType }) {
  const save = tool({ name: "save_note", description: "Saves a note.", parameters, execute: async (input) => (executed.push(JSON.stringify(input)), result) });
  const tools = /^(call|log|empty)/.test(prompt) ? [save, ...(isPlain ? [] : [endmark.readTool])] : [];
  const agent = new Agent({ name: "scribe", instructions: "Help.", model: "scripted-1", tools, ...(outputType && { outputType }) });
  const provider = new OpenAIProvider({ apiKey: "none", baseURL: server.url, useResponses });
  return [new Runner({ modelProvider: isPlain ? provider : endmark.wrap(provider) }), agent];
}

async function ask(prompt, { isStream = false, endmark = createEndmark(), signal, ...given } = {}) {
  const [runner, agent] = set({ prompt, endmark, ...given });
  const result = await runner.run(agent, prompt, { stream: isStream, maxTurns: 5, signal });
  let text = "";
  const events = [];
  if (isStream) {
    result.completed.catch(() => {});
    for await (const event of result) {
      events.push(event);
      if (event.data?.type === "output_text_delta") text += event.data.delta;
    }
    await result.completed;
  }
  const { usage } = result.state;
  return { final: result.finalOutput, text, events, usage: [usage.requests, usage.inputTokens, usage.outputTokens], responses: result.rawResponses };
}

for (const useResponses of [true, false]) {
  describe(`OpenAI Agents SDK, ${useResponses ? "Responses" : "Chat Completions"}`, () => {
    const run = (prompt, more = {}) => ask(prompt, { useResponses, ...more });

    test("without the wrapper, a cut reply counts as complete or ends the run", async () => {
      const found = await run("text limit", { isPlain: true }).catch((error) => error);
      if (useResponses) assert.equal(found.name, "ModelBehaviorError");
      else assert.ok(TEXT.startsWith(found.final) && found.final.length < TEXT.length);
      await run("call limit", { isPlain: true }).catch(() => {});
      assert.deepEqual(executed, []);
    });

    for (const isStream of [false, true]) {
      test(`a text is completed, and usage is summed (stream: ${isStream})`, async () => {
        const { final, text, usage, responses } = await run("text limit", { isStream });
        assert.equal(final, TEXT);
        if (isStream) assert.equal(text, TEXT);
        assert.deepEqual(usage, [2, 100, 40]);
        if (!isStream) assert.deepEqual(responses[0].providerData.endmark, { outcome: "resumed", attempts: 1 });
      });

      test(`cut calls run once, with whole arguments (stream: ${isStream})`, async () => {
        for (const [kind, calls] of [["call", [note(1)]], ["calls", [note(1), note(2)]]]) {
          executed = [];
          server.requests.length = 0;
          const { final, usage } = await run(`${kind} limit`, { isStream });
          assert.equal(final, FINAL);
          assert.deepEqual(executed.sort(), calls);
          assert.deepEqual(usage, [3, 150, 60]);
          assert.equal(server.requests[1].tool_choice, "none");
        }
      });

      test(`a structured output is completed and parsed (stream: ${isStream})`, async () => {
        const outputType = z.object({ name: z.string(), age: z.number(), likes: z.array(z.string()) });
        await assert.rejects(run("document limit", { isPlain: true, isStream, outputType }));
        assert.deepEqual((await run("document limit", { isStream, outputType })).final, JSON.parse(DOCUMENT));
        const { response_format, text } = server.requests.at(-1);
        assert.equal(response_format ?? text?.format, undefined);
      });

      for (const harm of ["never", "fails"]) {
        test(`a reply that stays cut rejects (${harm}, stream: ${isStream})`, async () => {
          for (const [kind, whole] of [["text", TEXT], ["call", note(1)]]) {
            server.requests.length = 0;
            const error = await run(`${kind} ${harm}`, { isStream }).catch((error) => error);
            assert.ok(error instanceof ResumeExhausted, String(error));
            assert.ok(whole.startsWith(error.mergedRaw) && error.mergedRaw.length > 20);
            // A request that the provider refuses is not repeated.
            if (harm === "fails") assert.equal(server.requests.length, 2);
          }
          assert.deepEqual(executed, []);
        });
      }

      test(`a whole reply stays unchanged (stream: ${isStream})`, async () => {
        const { final, responses, usage } = await run("text whole", { isStream });
        assert.equal(final, TEXT);
        assert.deepEqual(usage, [1, 50, 20]);
        assert.equal(responses[0].providerData?.endmark, undefined);
        assert.equal((await run("empty whole", { isStream })).final, FINAL);
        assert.equal(server.requests.length, 3);
      });

      test(`a filtered reply rejects (stream: ${isStream})`, async () => {
        await assert.rejects(run("refused limit", { isStream }), { name: "NotResumed" });
        assert.equal(server.requests.length, 1);
      });

      test(`a used up budget allows one closing call without tools, and then no more (stream: ${isStream})`, async () => {
        const meter = new Meter({ maxTokens: 2_300 });
        const endmark = createEndmark({ meter, assumeOutputTokens: 600 });
        assert.equal((await run("call whole", { isStream, endmark })).final, FINAL);
        server.requests.length = 0;
        const { final } = await run("log whole", { isStream, endmark, result: "word ".repeat(900) });
        assert.ok(final.length > 0);
        assert.match(JSON.stringify(server.requests.at(-1).messages.at(-1)), /token budget is used up/);
        assert.equal(server.requests.at(-1).tool_choice, "none");
        await assert.rejects(run("text whole", { isStream, endmark }), NotAdmitted);
        assert.equal(meter.usage().heldTokens, 0);
      });
    }

    test("a stream that breaks off is continued, or rejects if it contains a call", async () => {
      for (const harm of useResponses ? ["drop"] : ["drop", "ends"]) {
        const { final, text } = await run(`text ${harm}`, { isStream: true });
        assert.deepEqual([final, text], [TEXT, TEXT]);
      }
      await assert.rejects(run("call drop", { isStream: true }));
      assert.deepEqual(executed, []);
    });

    test("a tool result of 2 MB is capped, keeps its error row, and can be read", async () => {
      const rows = Array.from({ length: 40_000 }, (_, row) => `row ${row} ${row === 20_000 ? "ERROR: disk full" : "all is well"} ${"-".repeat(30)}`);
      for (const result of [rows.join("\n"), rows.map((line, row) => ({ row, line }))]) {
        server.requests.length = 0;
        assert.equal((await run("log whole", { result })).final, FINAL);
        const [, second, third] = server.requests;
        const { content } = second.messages.at(-1);
        assert.ok(content.length < 25_000 && content.includes("ERROR: disk full"), content.slice(0, 300));
        assert.match(third.messages.at(-1).content, /row 31234 /);
        assert.equal(third.messages.at(-3).content, content);
      }
    });

    test("an aborted reply rejects without further requests", async () => {
      const controller = new AbortController();
      const [runner, agent] = set({ prompt: "text drop", useResponses, endmark: createEndmark() });
      const result = await runner.run(agent, "text drop", { stream: true, signal: controller.signal });
      await (async () => { for await (const event of result) if (event.data?.type === "output_text_delta") controller.abort(); })().catch(() => {});
      await result.completed.catch(() => {});
      assert.equal(server.requests.length, 1);
    });
  });
}
