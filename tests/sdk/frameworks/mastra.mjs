// Mastra with a model of the AI SDK, which uses Responses by default.

import { Agent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { createOpenAI } from "openai-6";
import { z } from "zod";
import { serve } from "./lines.mjs";

const schema = z.object({ name: z.string(), age: z.number(), friendly: z.boolean(), likes: z.array(z.string()) });
const inputSchema = z.object({ path: z.string(), text: z.string() });

async function ask({ base_url, model: name, kind, prompt, stream, steps, result }) {
  const model = createOpenAI({ baseURL: base_url, apiKey: "not-needed" })(name);
  const calls = [];
  const execute = async (input) => {
    calls.push(["save_note", { path: input.path, text: input.text }]);
    return `${input.path} ${result}`;
  };
  const save_note = createTool({ id: "save_note", description: "Saves a note.", inputSchema, execute });
  const tools = kind === "text" || kind === "document" ? {} : { save_note };
  const agent = new Agent({ id: "scribe", name: "scribe", instructions: "Help.", model, tools, maxRetries: 0 });
  const options = { maxSteps: steps, modelSettings: { maxRetries: 0 }, ...(kind === "document" && { structuredOutput: { schema } }) };
  const answer = stream ? await agent.stream(prompt, options) : await agent.generate(prompt, options);
  let failure;
  if (stream) {
    for await (const part of answer.fullStream) if (part.type === "error") failure = part.payload?.error ?? part;
  }
  failure ??= answer.error;
  if (failure) throw failure instanceof Error ? failure : Object.assign(new Error(JSON.stringify(failure)), failure);
  if (kind === "document") return { text: "", calls, value: await answer.object };
  const steps_made = await answer.steps;
  return { text: steps_made.at(-1)?.text ?? (await answer.text), calls };
}

await serve(ask, () => true);
