/**
 * LangChain: replies, structured outputs and calls of tools come out whole or reject, and results of tools are capped with a way to read
 * the rest.
 *
 *     const agent = createAgent({ model, tools, middleware: [endmarkMiddleware()] });
 *
 * A reply is resumed between the model and what LangChain makes of it, so that a structured output is parsed from the whole reply.
 */

import { Outputs } from "./context.js";
import {
  MAX_COMPONENT_CHARS, checkOptions, isNotCut, isWhole, reader, recover, shortener, shownFor, sum, textOf, withMethods, type ComponentOptions,
} from "./frameworks.js";
import type { Ask, Outcome, Reply } from "./recovery.js";

// LangChain's own types are not needed to build this package.
type Message = any;
type Model = any;

/** The part of a reply that is cut: its text, or the arguments of its last call of a tool. */
interface Cut {
  text: string;
  call?: { id?: string; name: string };
}

export function endmarkMiddleware(options: ComponentOptions = {}): any {
  // Not an import: the package works without LangChain.
  const { tool } = require("@langchain/core/tools");
  checkOptions(options);
  const outputs = options.outputs ?? new Outputs();
  const maxChars = options.maxResultChars ?? MAX_COMPONENT_CHARS;
  const { execute, ...described } = reader(outputs, maxChars);
  const shortened = shortener(maxChars, outputs);
  return {
    [Symbol.for("AgentMiddleware")]: true,
    name: "EndmarkMiddleware",
    tools: [tool(execute, described)],
    wrapModelCall: (request: any, handler: any) => handler({ ...request, model: resuming(request.model, request, options) }),
    async wrapToolCall(request: any, handler: any) {
      const result = await handler(request);
      if (request.toolCall.name === described.name || typeof result?.tool_call_id !== "string") return result;
      const block = async (part: any) => (typeof part?.text === "string" ? { ...part, text: await shortened(part.text) } : part);
      const { content } = result;
      return copied(result, { content: typeof content === "string" ? await shortened(content) : await Promise.all(content.map(block)) });
    },
  };
}

/** The same model, or one with tools bound to it, whose replies are made whole. `bare` is the model without tools. */
function resuming(model: Model, request: any, options: ComponentOptions, bare: Model = model): Model {
  const derived = (name: string) => (...given: unknown[]) => resuming(model[name](...given), request, options, bare);
  return withMethods(model, {
    invoke: async (input, config) => whole(await answered(model, input, config), { input, config, request, options, bare }),
    withConfig: derived("withConfig"),
    // A model without tools has no such method.
    ...(model.bindTools && { bindTools: derived("bindTools") }),
  });
}

/** One reply, with why it ended: of a streamed one LangChain tells that to its callbacks alone. */
async function answered(model: Model, input: any, config: any): Promise<Message> {
  const { CallbackManager } = require("@langchain/core/callbacks/manager");
  let stop: string | undefined;
  const handleLLMEnd = (output: any) => void (stop = output.generations?.[0]?.[0]?.generationInfo?.finish_reason ?? stop);
  const callbacks = await CallbackManager.configure(config?.callbacks, [{ handleLLMEnd, awaitHandlers: true }]);
  let message: Message = undefined;
  try {
    message = await model.invoke(input, { ...config, callbacks });
  } catch (error) {
    if ((error as Error)?.constructor?.name !== "LengthFinishReasonError") throw error;
    // OpenAI's library throws away a document that reached its limit, unless it is streamed.
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
    last = await continued(cut, asked, call);
    usage = sum(usage, last.usage_metadata);
    return received(last, textOf(last.content));
  };
  const isStop = (error: any) => Boolean(config?.signal?.aborted || error?.is_bubble_up);
  const isJson = cut.call !== undefined || (request.responseFormat != null && /^\s*[[{]/.test(cut.text));
  const turnNumber = request.messages.filter((given: Message) => given.getType() === "ai").length + 1;
  try {
    const outcome = await recover(options, ask, { reply: received(message, cut.text), isJson, turnNumber, isStop });
    return outcome.result === "whole" && !cut.call ? message : mended(message, { cut, outcome, usage, last });
  } catch (error) {
    if (isNotCut(error, cut.call !== undefined)) return message;
    throw error;
  }
}

function cutPart(message: Message): Cut | undefined {
  // Of a streamed call LangChain guesses the arguments that have not come; what came is in the chunk.
  const chunk = message.tool_call_chunks?.at(-1) ?? message.invalid_tool_calls?.at(-1);
  if (chunk) {
    const text = chunk.args ?? "";
    return isWhole(text) ? undefined : { text, call: { id: chunk.id, name: chunk.name } };
  }
  return message.tool_calls?.length ? undefined : { text: textOf(message.content) };
}

/** The answer to the request for the rest. No tool can be called in it. */
async function continued(cut: Cut, asked: Ask, { input, config, request, bare }: Call): Promise<Message> {
  if (asked.wanted !== "rest") return answered(bare, input, config);
  const shown = shownFor(asked, cut.call?.name);
  const messages = [...input, ...(shown ? [{ role: "assistant", content: shown }] : []), { role: "user", content: asked.prompt }];
  // Some providers refuse a conversation with calls of tools that are not there.
  const hasCalls = input.some((message) => message.tool_calls?.length);
  const model = hasCalls && request.tools?.length ? bare.bindTools(request.tools, { tool_choice: "none" }) : bare;
  return answered(model, messages, config);
}

function received(message: Message, text: string): Reply {
  const metadata = message.response_metadata ?? {};
  const stop = metadata.finish_reason ?? metadata.stop_reason ?? metadata.finishReason ?? metadata.incomplete_details?.reason ?? metadata.status;
  const tokens = message.usage_metadata;
  return { text, stop, outputTokens: tokens?.output_tokens, reasoned: tokens?.output_token_details?.reasoning > 0 };
}

function mended(message: Message, made: { cut: Cut; outcome: Outcome; usage: any; last: Message }): Message {
  const { cut, outcome, usage, last } = made;
  const { result, attempts } = outcome;
  const response_metadata = { ...message.response_metadata, ...last.response_metadata, endmark: { outcome: result, attempts } };
  // With the arguments as they came.
  const { tool_calls: _, ...additional_kwargs } = message.additional_kwargs ?? {};
  const common = { response_metadata, additional_kwargs, usage_metadata: usage, tool_call_chunks: [] };
  if (!cut.call) {
    const others = typeof message.content === "string" ? [] : message.content.filter((block: any) => block.type !== "text");
    return copied(message, { ...common, content: others.length ? [...others, { type: "text", text: outcome.text }] : outcome.text });
  }
  const args = JSON.parse(outcome.text);
  const others = (calls: any[] = []) => calls.filter((call) => call.id !== cut.call?.id);
  const tool_calls = [...others(message.tool_calls), { type: "tool_call", ...cut.call, args }];
  return copied(message, { ...common, tool_calls, invalid_tool_calls: others(message.invalid_tool_calls) });
}

/** A message of the same class: LangChain may be loaded twice, as ES modules and as CommonJS. */
function copied(message: Message, changed: object): Message {
  const names = [
    "content", "name", "id", "additional_kwargs", "response_metadata", "usage_metadata", "tool_calls", "invalid_tool_calls",
    "tool_call_id", "status", "artifact", "metadata",
  ];
  const fields = names.filter((name) => message[name] !== undefined).map((name) => [name, message[name]]);
  return new message.constructor({ ...Object.fromEntries(fields), ...changed });
}
