/**
 * LangChain: returns complete replies, structured outputs and tool calls or rejects, and caps tool results.
 *
 *     const agent = createAgent({ model, tools, middleware: [endmarkMiddleware()] });
 *
 * A reply is recovered before LangChain processes it, so that a structured output is parsed from the whole reply.
 */

import { Outputs } from "./context.js";
import {
  MAX_COMPONENT_CHARS, addUsage, checkOptions, createReadTool, createShortener, isNotCut, isWhole, recover, shownText, textOf, withMethods, type ComponentOptions,
} from "./frameworks.js";
import type { Ask, Outcome, Reply } from "./recovery.js";

// LangChain's own types are not needed to build this package.
type Message = any;
type Model = any;

/** The cut part of a reply: its text, or the arguments of its last tool call. */
interface Cut {
  text: string;
  call?: { id?: string; name: string };
}

export function endmarkMiddleware(options: ComponentOptions = {}): any {
  // Loaded on demand, because the package also works without LangChain.
  const { tool } = require("@langchain/core/tools");
  checkOptions(options);
  const outputs = options.outputs ?? new Outputs();
  const maxChars = options.maxResultChars ?? MAX_COMPONENT_CHARS;
  const { execute, ...described } = createReadTool(outputs, maxChars);
  const shortened = createShortener(maxChars, outputs);
  return {
    [Symbol.for("AgentMiddleware")]: true,
    name: "EndmarkMiddleware",
    tools: [tool(execute, described)],
    wrapModelCall: (request: any, handler: any) => handler({ ...request, model: withRecovery(request.model, request, options) }),
    async wrapToolCall(request: any, handler: any) {
      const result = await handler(request);
      if (request.toolCall.name === described.name || typeof result?.tool_call_id !== "string") return result;
      const block = async (part: any) => (typeof part?.text === "string" ? { ...part, text: await shortened(part.text) } : part);
      const { content } = result;
      return copyMessage(result, { content: typeof content === "string" ? await shortened(content) : await Promise.all(content.map(block)) });
    },
  };
}

/** Wraps a model, or a model with bound tools, so that its replies are recovered. `bare` is the model without tools. */
function withRecovery(model: Model, request: any, options: ComponentOptions, bare: Model = model): Model {
  const derived = (name: string) => (...given: unknown[]) => withRecovery(model[name](...given), request, options, bare);
  return withMethods(model, {
    invoke: async (input, config) => whole(await callModel(model, input, config), { input, config, request, options, bare }),
    withConfig: derived("withConfig"),
    // A model that does not support tools has no such method.
    ...(model.bindTools && { bindTools: derived("bindTools") }),
  });
}

/** Calls the model once. Adds the stop reason, which LangChain reports only to callbacks if the reply is streamed. */
async function callModel(model: Model, input: any, config: any): Promise<Message> {
  const { CallbackManager } = require("@langchain/core/callbacks/manager");
  let stop: string | undefined;
  const handleLLMEnd = (output: any) => void (stop = output.generations?.[0]?.[0]?.generationInfo?.finish_reason ?? stop);
  const callbacks = await CallbackManager.configure(config?.callbacks, [{ handleLLMEnd, awaitHandlers: true }]);
  let message: Message = undefined;
  try {
    message = await model.invoke(input, { ...config, callbacks });
  } catch (error) {
    if ((error as Error)?.constructor?.name !== "LengthFinishReasonError") throw error;
    // OpenAI's library discards a document that reached its limit, unless the reply is streamed.
    for await (const chunk of await model.stream(input, { ...config, callbacks })) message = message ? message.concat(chunk) : chunk;
  }
  if (stop !== undefined) message.response_metadata.finish_reason ??= stop;
  return message;
}

interface Call {
  input: Message[];
  config: any;
  request: any;
  options: ComponentOptions;
  bare: Model;
}

async function whole(message: Message, call: Call): Promise<Message> {
  const cut = cutPart(message);
  if (!cut) return message;
  const { options, config, request } = call;
  let usage = message.usage_metadata;
  let last = message;
  const ask = async (asked: Ask): Promise<Reply> => {
    last = await requestRest(cut, asked, call);
    usage = addUsage(usage, last.usage_metadata);
    return toReply(last, textOf(last.content));
  };
  const isStop = (error: any) => Boolean(config?.signal?.aborted || error?.is_bubble_up);
  const isJson = cut.call !== undefined || (request.responseFormat != null && /^\s*[[{]/.test(cut.text));
  const turnNumber = request.messages.filter((given: Message) => given.getType() === "ai").length + 1;
  try {
    const outcome = await recover(options, ask, { reply: toReply(message, cut.text), isJson, turnNumber, isStop });
    return outcome.result === "whole" && !cut.call ? message : completedMessage(message, { cut, outcome, usage, last });
  } catch (error) {
    if (isNotCut(error, cut.call !== undefined)) return message;
    throw error;
  }
}

function cutPart(message: Message): Cut | undefined {
  // LangChain guesses the missing arguments of a streamed call. The chunk contains the received ones.
  const chunk = message.tool_call_chunks?.at(-1) ?? message.invalid_tool_calls?.at(-1);
  if (chunk) {
    const text = chunk.args ?? "";
    return isWhole(text) ? undefined : { text, call: { id: chunk.id, name: chunk.name } };
  }
  return message.tool_calls?.length ? undefined : { text: textOf(message.content) };
}

/** Requests the rest. The answer cannot call tools. */
async function requestRest(cut: Cut, asked: Ask, { input, config, request, bare }: Call): Promise<Message> {
  if (asked.wanted !== "rest") return callModel(bare, input, config);
  const shown = shownText(asked, cut.call?.name);
  const messages = [...input, ...(shown ? [{ role: "assistant", content: shown }] : []), { role: "user", content: asked.prompt }];
  // Some providers reject a conversation with calls of undefined tools.
  const hasCalls = input.some((message) => message.tool_calls?.length);
  const model = hasCalls && request.tools?.length ? bare.bindTools(request.tools, { tool_choice: "none" }) : bare;
  return callModel(model, messages, config);
}

function toReply(message: Message, text: string): Reply {
  const metadata = message.response_metadata ?? {};
  const stop = metadata.finish_reason ?? metadata.stop_reason ?? metadata.finishReason ?? metadata.incomplete_details?.reason ?? metadata.status;
  const tokens = message.usage_metadata;
  return { text, stop, outputTokens: tokens?.output_tokens, reasoned: tokens?.output_token_details?.reasoning > 0 };
}

function completedMessage(message: Message, made: { cut: Cut; outcome: Outcome; usage: any; last: Message }): Message {
  const { cut, outcome, usage, last } = made;
  const { result, attempts } = outcome;
  const response_metadata = { ...message.response_metadata, ...last.response_metadata, endmark: { outcome: result, attempts } };
  // The arguments as they were received.
  const { tool_calls: _, ...additional_kwargs } = message.additional_kwargs ?? {};
  const common = { response_metadata, additional_kwargs, usage_metadata: usage, tool_call_chunks: [] };
  if (!cut.call) {
    const others = typeof message.content === "string" ? [] : message.content.filter((block: any) => block.type !== "text");
    return copyMessage(message, { ...common, content: others.length ? [...others, { type: "text", text: outcome.text }] : outcome.text });
  }
  const args = JSON.parse(outcome.text);
  const others = (calls: any[] = []) => calls.filter((call) => call.id !== cut.call?.id);
  const tool_calls = [...others(message.tool_calls), { type: "tool_call", ...cut.call, args }];
  return copyMessage(message, { ...common, tool_calls, invalid_tool_calls: others(message.invalid_tool_calls) });
}

/** Copies a message with its own class, because LangChain may be loaded twice, as ES modules and as CommonJS. */
function copyMessage(message: Message, changed: object): Message {
  const names = [
    "content", "name", "id", "additional_kwargs", "response_metadata", "usage_metadata", "tool_calls", "invalid_tool_calls",
    "tool_call_id", "status", "artifact", "metadata",
  ];
  const fields = names.filter((name) => message[name] !== undefined).map((name) => [name, message[name]]);
  return new message.constructor({ ...Object.fromEntries(fields), ...changed });
}
