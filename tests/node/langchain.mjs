// Tests the middleware in the real LangChain with its OpenAI model: `node --test langchain.mjs`.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { ChatOpenAI } from "@langchain/openai";
import { createAgent, providerStrategy, tool, toolStrategy } from "langchain";
import { ResumeExhausted } from "endmark";
import { endmarkMiddleware } from "endmark/langchain";
import { z } from "zod";
import { DOCUMENT, FINAL, TEXT, note, scripted } from "./scripted.mjs";

let server;
let executed;
before(async () => (server = await scripted()));
after(() => server.close());
beforeEach(() => ((executed = []), (server.requests.length = 0)));

const schema = z.object({ path: z.string(), text: z.string() });
function agent({ isPlain = false, result = "saved", responseFormat, hasTools = true } = {}) {
  const save = tool(async (input) => (executed.push(JSON.stringify(input)), result), { name: "save_note", description: "Saves a note.", schema });
  const model = new ChatOpenAI({ model: "scripted-1", apiKey: "none", maxRetries: 0, configuration: { baseURL: server.url } });
  return createAgent({ model, tools: hasTools ? [save] : [], middleware: isPlain ? [] : [endmarkMiddleware()], responseFormat });
}
/** Returns the final messages. LangChain streams its model if a stream of messages is requested. */
async function run(prompt, { isStream = false, ...more } = {}) {
  if (!isStream) return (await agent(more).invoke(ask(prompt))).messages;
  let messages;
  for await (const [mode, part] of await agent(more).stream(ask(prompt), { streamMode: ["messages", "values"] })) {
    if (mode === "values") messages = part.messages;
  }
  return messages;
}
const ask = (prompt) => ({ messages: [{ role: "user", content: prompt }] });
const why = (error) => (error instanceof ResumeExhausted ? error : error.cause ? why(error.cause) : error);

describe("LangChain", () => {
  test("without the middleware, a cut reply counts as complete", async () => {
    const { messages } = await agent({ isPlain: true }).invoke(ask("text limit"));
    assert.ok(TEXT.startsWith(messages.at(-1).text) && messages.at(-1).text.length < TEXT.length);
    await agent({ isPlain: true }).invoke(ask("call limit")).catch(() => {});
    assert.deepEqual(executed, []);
  });

  for (const isStream of [false, true]) {
    test(`a text is completed, and usage is summed (stream: ${isStream})`, async () => {
      const messages = await run("text limit", { isStream });
      const reply = messages.at(-1);
      assert.equal(reply.text, TEXT);
      assert.deepEqual([reply.usage_metadata.input_tokens, reply.usage_metadata.output_tokens], [100, 40]);
      assert.deepEqual(reply.response_metadata.endmark, { outcome: "resumed", attempts: 1 });
      assert.equal(reply.response_metadata.finish_reason, "stop");
    });

    test(`cut calls run once, with whole arguments (stream: ${isStream})`, async () => {
      for (const [kind, calls] of [["call", [note(1)]], ["calls", [note(1), note(2)]]]) {
        executed = [];
        const messages = await run(`${kind} limit`, { isStream });
        assert.deepEqual(executed.sort(), calls);
        assert.equal(messages.at(-1).text, FINAL);
        assert.equal(messages[1].tool_calls.length, calls.length);
      }
    });

    test(`a reply that stays cut rejects with everything received (stream: ${isStream})`, async () => {
      for (const [kind, whole] of [["text", TEXT], ["call", note(1)]]) {
        for (const harm of ["never", "fails"]) {
          const error = why(await run(`${kind} ${harm}`, { isStream }).catch((error) => error));
          assert.ok(error instanceof ResumeExhausted, String(error));
          assert.ok(whole.startsWith(error.mergedRaw) && error.mergedRaw.length > 20);
        }
      }
      assert.deepEqual(executed, []);
    });
  }

  test("a whole reply stays unchanged", async () => {
    const { messages } = await agent().invoke(ask("text whole"));
    assert.equal(messages.at(-1).text, TEXT);
    assert.equal(messages.at(-1).response_metadata.endmark, undefined);
    assert.equal(server.requests.length, 1);
    assert.equal((await agent().invoke(ask("refused limit"))).messages.at(-1).response_metadata.finish_reason, "content_filter");
  });

  test("a structured output is completed and parsed", async () => {
    const cat = z.object({ name: z.string(), age: z.number(), likes: z.array(z.string()) });
    const responseFormat = providerStrategy(cat);
    await assert.rejects(agent({ isPlain: true, hasTools: false, responseFormat }).invoke(ask("document limit")));
    const { structuredResponse } = await agent({ hasTools: false, responseFormat }).invoke(ask("document limit"));
    assert.deepEqual(structuredResponse, JSON.parse(DOCUMENT));
    const found = await agent({ hasTools: false, responseFormat: toolStrategy(schema.meta({ title: "save_note" })) }).invoke(ask("call limit"));
    assert.deepEqual(found.structuredResponse, JSON.parse(note(1)));
  });

  test("a stream of messages contains the first part and then the continuation, unchanged", async () => {
    let text = "";
    for await (const [chunk] of await agent().stream(ask("text limit"), { streamMode: "messages" })) {
      if (chunk.getType() === "ai") text += chunk.text;
    }
    assert.ok(text.startsWith(TEXT.slice(0, 100)) && text.endsWith(TEXT.slice(-70)), text);
  });

  test("a tool result of 2 MB is capped, keeps its error row, and can be read", async () => {
    const rows = Array.from({ length: 40_000 }, (_, row) => `row ${row} ${row === 20_000 ? "ERROR: disk full" : "all is well"} ${"-".repeat(30)}`);
    const { messages } = await agent({ result: rows.join("\n") }).invoke(ask("log whole"));
    assert.equal(messages.at(-1).text, FINAL);
    const [first, second] = messages.filter((message) => message.getType() === "tool");
    assert.ok(first.content.length < 25_000 && first.content.includes("ERROR: disk full"));
    assert.match(second.content, /row 31234 /);
  });
});
