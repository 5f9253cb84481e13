// The openai library for JavaScript, Chat Completions.

import OpenAI from "openai";
import { serve, told } from "./lines.mjs";

async function ask({ base_url, body, headers, stream, timeout, cancel_after }) {
  const client = new OpenAI({ baseURL: base_url, apiKey: "not-needed", maxRetries: 0, timeout: timeout * 1000 });
  if (!stream) {
    const reply = await client.chat.completions.create(body, { headers });
    const choice = reply.choices[0];
    return {
      text: choice.message.content ?? "",
      calls: (choice.message.tool_calls ?? []).map((call) => [call.function.name, call.function.arguments]),
      finish: choice.finish_reason,
      output: reply.usage.completion_tokens,
      whole: told(reply),
    };
  }
  const answer = { text: "", calls: [], finish: null, output: null, whole: [] };
  const chunks = await client.chat.completions.create(
    { ...body, stream: true, stream_options: { include_usage: true } },
    { headers },
  );
  let events = 0;
  for await (const chunk of chunks) {
    events += 1;
    // Leaving the loop aborts the request.
    if (events === cancel_after) break;
    answer.whole.push(told(chunk));
    if (chunk.usage) answer.output = chunk.usage.completion_tokens;
    for (const choice of chunk.choices) {
      answer.text += choice.delta.content ?? "";
      for (const call of choice.delta.tool_calls ?? []) {
        answer.calls[call.index] ??= [call.function.name, ""];
        answer.calls[call.index][1] += call.function?.arguments ?? "";
      }
      answer.finish = choice.finish_reason ?? answer.finish;
    }
  }
  return answer;
}

await serve(ask, (error) => error instanceof OpenAI.OpenAIError);
