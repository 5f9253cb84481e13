// The Anthropic library for JavaScript.

import Anthropic from "@anthropic-ai/sdk";
import { serve, told } from "./lines.mjs";

function of(reply) {
  const text = reply.content.filter((block) => block.type === "text").map((block) => block.text).join("");
  const calls = reply.content.filter((block) => block.type === "tool_use").map((block) => [block.name, JSON.stringify(block.input)]);
  return { text, calls, finish: reply.stop_reason, output: reply.usage.output_tokens };
}

async function ask({ base_url, body, headers, stream, timeout, cancel_after }) {
  const client = new Anthropic({ baseURL: base_url, apiKey: "not-needed", maxRetries: 0, timeout: timeout * 1000 });
  if (!stream) {
    const reply = await client.messages.create(body, { headers });
    return { ...of(reply), whole: told(reply) };
  }
  const whole = [];
  let events = 0;
  const asked = client.messages.stream(body, { headers });
  // Errors are thrown by the loop.
  asked.on("error", () => {});
  for await (const event of asked) {
    events += 1;
    if (events === cancel_after) {
      asked.abort();
      return { text: "", calls: [], finish: null, output: null, whole };
    }
    whole.push(told(event));
  }
  return { ...of(await asked.finalMessage()), whole };
}

await serve(ask, (error) => error instanceof Anthropic.AnthropicError);
