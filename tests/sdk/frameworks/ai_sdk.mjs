// The AI SDK, version 5, 6 or 7, on Chat Completions or on Responses (which refers to stored items by their ids).

import { z } from "zod";
import { serve } from "./lines.mjs";

const [version, api] = process.argv.slice(2);
const suffix = version === "7" ? "" : `-${version}`;
const { generateObject, generateText, stepCountIs, streamObject, streamText, tool } = await import(`ai${suffix}`);
const { createOpenAI } = await import(suffix ? `openai${suffix}` : "@ai-sdk/openai");
const schema = z.object({ name: z.string(), age: z.number(), friendly: z.boolean(), likes: z.array(z.string()) });
const inputSchema = z.object({ path: z.string(), text: z.string() });

// The SDK reports an error within a stream as an event.
async function text(parts) {
  let all = "";
  for await (const part of parts) {
    if (part.type === "error") throw part.error;
    if (part.type === "start-step") all = "";
    if (part.type === "text-delta") all += part.text;
  }
  return all;
}

async function ask({ base_url, model: name, kind, prompt, stream, steps, result }) {
  const provider = createOpenAI({ baseURL: base_url, apiKey: "not-needed" });
  const model = api === "chat" ? provider.chat(name) : provider.responses(name);
  const common = { model, prompt, maxRetries: 0, onError: () => {} };
  const calls = [];
  if (kind === "document") {
    if (!stream) return { text: "", calls, value: (await generateObject({ ...common, schema })).object };
    const answer = streamObject({ ...common, schema });
    // Without an early listener the rejection of this promise ends the process.
    const value = answer.object;
    value.catch(() => {});
    for await (const part of answer.fullStream) if (part.type === "error") throw part.error;
    return { text: "", calls, value: await value };
  }
  const execute = (input) => {
    calls.push(["save_note", input]);
    return `${input.path} ${result}`;
  };
  const tools = kind === "text" ? undefined : { save_note: tool({ description: "Saves a note.", inputSchema, execute }) };
  const options = { ...common, tools, stopWhen: stepCountIs(steps) };
  if (!stream) return { text: (await generateText(options)).text, calls };
  return { text: await text(streamText(options).fullStream), calls };
}

await serve(ask, (error) => error.name?.startsWith("AI_"));
