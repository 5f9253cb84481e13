// The openai library for JavaScript, Responses.

import OpenAI from "openai";
import { serve, told } from "./lines.mjs";

function of(reply) {
  const calls = reply.output.filter((item) => item.type === "function_call").map((item) => [item.name, item.arguments]);
  const parts = reply.output.filter((item) => item.type === "message").flatMap((item) => item.content);
  const text = parts.map((part) => part.text ?? "").join("");
  return { text, calls, finish: reply.incomplete_details?.reason ?? reply.status, output: reply.usage?.output_tokens };
}

async function ask({ base_url, body, headers, stream, timeout, cancel_after }) {
  const client = new OpenAI({ baseURL: base_url, apiKey: "not-needed", maxRetries: 0, timeout: timeout * 1000 });
  if (!stream) {
    const reply = await client.responses.create(body, { headers });
    return { ...of(reply), whole: told(reply) };
  }
  let answer = { text: "", calls: [], finish: null, output: null, whole: [] };
  let events = 0;
  for await (const event of await client.responses.create({ ...body, stream: true }, { headers })) {
    events += 1;
    if (events === cancel_after) break;
    answer.whole.push(told(event));
    if (event.type === "response.output_text.delta") answer.text += event.delta;
    if (event.type === "response.output_item.done" && event.item.type === "function_call") {
      answer.calls.push([event.item.name, event.item.arguments]);
    }
    if (["response.completed", "response.incomplete", "response.failed"].includes(event.type)) {
      answer = { ...answer, ...of(event.response) };
    }
  }
  return answer;
}

await serve(ask, (error) => error instanceof OpenAI.OpenAIError);
