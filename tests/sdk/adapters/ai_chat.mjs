// The AI SDK, with its provider for servers that speak Chat Completions.

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { AISDKError, Output, generateText, jsonSchema, streamText, tool } from "ai";
import { serve } from "./lines.mjs";

// The SDK reports errors of the provider as parts of the stream, and does not throw them.
class ErrorPart extends Error {}

const parsed = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};

// The AI SDK uses the same message type for all formats.
function message({ role, content, tool_calls, tool_call_id }) {
  if (role === "tool") {
    const output = { type: "text", value: content };
    return { role, content: [{ type: "tool-result", toolCallId: tool_call_id, toolName: "write_file", output }] };
  }
  if (!tool_calls) return { role, content };
  const calls = tool_calls.map(({ id, function: { name, arguments: input } }) => {
    return { type: "tool-call", toolCallId: id, toolName: name, input: parsed(input) };
  });
  return { role, content: calls };
}

function request({ base_url, body, headers, timeout }) {
  const provider = createOpenAICompatible({
    name: "endmark", baseURL: base_url, apiKey: "not-needed", headers, includeUsage: true, supportsStructuredOutputs: true,
  });
  const schema = body.response_format?.json_schema.schema;
  const tools = (body.tools ?? []).map(({ function: { name, description, parameters } }) => {
    return [name, tool({ description, inputSchema: jsonSchema(parameters) })];
  });
  return {
    model: provider(body.model),
    messages: body.messages.map(message),
    maxOutputTokens: body.max_tokens,
    temperature: body.temperature,
    maxRetries: 0,
    abortSignal: AbortSignal.timeout(timeout * 1000),
    ...(tools.length && { tools: Object.fromEntries(tools) }),
    ...(schema && { output: Output.object({ schema: jsonSchema(schema) }) }),
  };
}

const calls = (toolCalls) => toolCalls.map((call) => [call.toolName, JSON.stringify(call.input)]);

async function ask(given) {
  if (!given.stream) {
    const { text, toolCalls, finishReason, usage } = await generateText(request(given));
    const whole = { text, calls: calls(toolCalls), finishReason, usage };
    return { text, calls: calls(toolCalls), finish: finishReason, output: usage.outputTokens, whole };
  }
  const answer = { text: "", calls: [], finish: null, output: null, whole: [] };
  const stop = new AbortController();
  const asked = request(given);
  const abortSignal = AbortSignal.any([stop.signal, asked.abortSignal]);
  const { fullStream } = streamText({ ...asked, abortSignal, onError: () => {} });
  let events = 0;
  for await (const part of fullStream) {
    if (part.type === "error") throw AISDKError.isInstance(part.error) ? part.error : new ErrorPart(JSON.stringify(part.error));
    if (part.type === "text-delta") {
      events += 1;
      if (events === given.cancel_after) {
        stop.abort();
        break;
      }
      answer.text += part.text;
      answer.whole.push(part.text);
    }
    if (part.type === "tool-call") answer.calls.push(...calls([part]));
    if (part.type === "abort") throw new Error("aborted");
    if (part.type === "finish") {
      answer.finish = part.finishReason;
      answer.output = part.totalUsage.outputTokens;
    }
  }
  return answer;
}

await serve(ask, (error) => AISDKError.isInstance(error) || error instanceof ErrorPart);
