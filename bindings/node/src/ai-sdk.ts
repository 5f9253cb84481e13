/**
 * AI SDK 5, 6 and 7: returns complete replies and tool calls or throws, and caps tool results.
 *
 *     const endmark = createEndmark();
 *     const model = wrapLanguageModel({ model: openai("gpt-5"), middleware: endmark.middleware });
 *     await generateText({ model, tools: { ...tools, ...endmark.tools }, experimental_repairToolCall: endmark.repairToolCall(model), prompt });
 *
 * It imports nothing from the SDK. The versions differ only in the form of finish reasons and usage.
 */

import { Outputs } from "./context.js";
import { json } from "./core.js";
import { EndmarkError } from "./errors.js";
import {
  MAX_COMPONENT_CHARS, addUsage, checkOptions, createReadTool, createShortener, isNotCut, isWhole, recover, shownText, textOf, withMethods, type ComponentOptions,
} from "./frameworks.js";
import { AskFailed, Pipeline, type Ask, type Correction, type Outcome, type Reply } from "./recovery.js";
import { detect } from "./texts.js";

export interface EndmarkOptions extends ComponentOptions {
  /** The minimum output limit of a continuation, if the first call has a limit. */
  continuationTokens?: number | undefined;
}

// Each version of the SDK has its own types for these.
type Params = any;
type Model = any;
type Content = any;
type Part = any;

/** A middleware for `wrapLanguageModel` of any version. */
export interface EndmarkMiddleware {
  middlewareVersion: any;
  specificationVersion: any;
  transformParams(options: { params: Params }): Promise<Params>;
  wrapGenerate(options: { doGenerate: () => PromiseLike<any>; params: Params; model: Model }): Promise<any>;
  wrapStream(options: { doStream: () => PromiseLike<any>; params: Params; model: Model }): Promise<any>;
}

export interface Endmark {
  readonly middleware: EndmarkMiddleware;
  /** Wraps a model with the middleware, for frameworks that accept a model of the SDK, such as Mastra. */
  wrap<M extends object>(model: M): M;
  readonly outputs: Outputs;
  /** The tool with which a model reads omitted parts of a result. Results are also capped if it is not in `tools`. */
  readonly tools: { readonly endmark_read: any };
  /**
   * Returns a function for the option `experimental_repairToolCall` (`repairToolCall` in version 7), which lets the model correct
   * arguments that violate their schema. Cut arguments are not corrected, because the model would invent the missing part.
   */
  repairToolCall(model: Model): (options: any) => Promise<any>;
}

/** The complete answer of one call of the model. */
interface ModelAnswer {
  text: string;
  finishReason: any;
  usage: any;
  ending?: Reply["ending"];
}

/** The part of a reply that may be cut: a text, or the arguments of a tool call. */
interface Block {
  id: string;
  text: string;
  /** The name of the tool, if the part is a tool call. */
  toolName?: string;
  /** Whether the start of the block was sent to the stream. */
  isStarted?: boolean;
  /** Whether the tool call was sent to the stream. */
  isCalled?: boolean;
}

/** A recovered reply, and the usage of all its calls. Blocks without an outcome are unchanged. */
interface RecoveredReply {
  outcomes: Map<Block, Outcome>;
  usage: any;
  finishReason: any;
}

export function createEndmark(options: EndmarkOptions = {}): Endmark {
  checkOptions(options, "continuationTokens");
  const outputs = options.outputs ?? new Outputs();
  const maxChars = options.maxResultChars ?? MAX_COMPONENT_CHARS;
  const recovery = new Recovery(options);
  const tool = createReadTool(outputs, maxChars);
  const middleware: EndmarkMiddleware = {
    middlewareVersion: "v2",
    specificationVersion: "v3",
    transformParams: async ({ params }) => {
      const canRead = params.tools?.some((given: any) => given.name === tool.name);
      return { ...params, prompt: await capPrompt(params.prompt, { maxChars, outputs: canRead ? outputs : undefined }, tool.name) };
    },
    wrapGenerate: async ({ doGenerate, params, model }) => recovery.generate(await doGenerate(), params, model),
    wrapStream: async ({ doStream, params, model }) => {
      const { stream, ...result } = await doStream();
      return { ...result, stream: toStream(recovery.stream(stream, params, model)) };
    },
  };
  return {
    middleware,
    wrap: (model) => wrapModel(model, middleware),
    outputs,
    tools: {
      endmark_read: {
        description: tool.description,
        inputSchema: createSchema(tool.schema),
        execute: tool.execute,
      },
    },
    repairToolCall: (model) => (asked) => repairCall(model, asked),
  };
}

/** Wraps a model as `wrapLanguageModel` of the SDK does. */
function wrapModel<M extends object>(model: M, middleware: EndmarkMiddleware): M {
  const inner: Model = model;
  const calling = (wrap: (call: any) => Promise<any>) => async (given: Params) => {
    const params = await middleware.transformParams({ params: given });
    return wrap({ doGenerate: () => inner.doGenerate(params), doStream: () => inner.doStream(params), params, model: inner });
  };
  return withMethods(model, { doGenerate: calling(middleware.wrapGenerate), doStream: calling(middleware.wrapStream) });
}

/** Creates a schema as `jsonSchema` of the SDK does. Version 5 requires both symbols. */
function createSchema(jsonSchema: object): object {
  const symbols = ["vercel.ai.schema", "vercel.ai.validator"].map((name) => [Symbol.for(name), true]);
  return { ...Object.fromEntries(symbols), _type: undefined, jsonSchema, validate: undefined };
}

/** Returns a stream of the parts of a generator, which are generated on demand. */
function toStream<T>(parts: AsyncGenerator<T>): ReadableStream<T> {
  return new ReadableStream<T>(
    {
      async pull(controller) {
        const { done, value } = await parts.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      // Not awaited, because the model's stream is cancelled only when its next part arrives.
      cancel: (reason) => void parts.return(reason).catch(() => {}),
    },
    { highWaterMark: 0 },
  );
}

class Recovery {
  readonly #options: EndmarkOptions;

  constructor(options: EndmarkOptions) {
    this.#options = options;
  }

  async generate(result: any, params: Params, model: Model): Promise<any> {
    const content: Content[] = result.content;
    const blocks = new Map<Content, Block>();
    for (const part of content) {
      const isCall = part.type === "tool-call" && !part.providerExecuted && !isWhole(part.input);
      if (isCall) blocks.set(part, { id: part.toolCallId, text: part.input, toolName: part.toolName });
    }
    const last = content.findLast((part) => part.type === "text" || part.type === "tool-call");
    if (last?.type === "text") blocks.set(last, { id: "endmark", text: last.text });
    const added: Block = { id: "endmark", text: "" };
    const ask = async (wanted: Params): Promise<ModelAnswer> => {
      const { content, finishReason, usage } = await model.doGenerate(wanted);
      return { text: textOf(content), finishReason, usage };
    };
    const isReasoned = content.some((part) => part.type === "reasoning");
    const targets = last ? [...blocks.values()] : [added];
    const recovered = await this.#recover(targets, result, { params, isReasoned, isSent: false, ask });
    if (!recovered) return result;
    const { outcomes, usage } = recovered;
    const whole = content.map((part) => {
      const text = outcomes.get(blocks.get(part) as Block)?.text;
      return text === undefined ? part : part.type === "text" ? { ...part, text } : { ...part, input: text };
    });
    const text = outcomes.get(added)?.text;
    return {
      ...result,
      content: text === undefined ? whole : [...whole, { type: "text", text }],
      usage,
      finishReason: finishReasonOf(recovered, content.some((part) => part.type === "tool-call")),
      providerMetadata: withDisclosure(result.providerMetadata, outcomes),
    };
  }

  /** Yields the parts of a stream as they arrive. Holds the end of the last text and of cut calls until these are complete. */
  async *stream(stream: ReadableStream<Part>, params: Params, model: Model): AsyncGenerator<Part> {
    const blocks = new Map<string, Block>();
    let last: Block | undefined;
    // The end of the last text with all later parts, and the ends of cut calls.
    const [held, heldOfCalls]: [Part[], Part[]] = [[], []];
    let finish: Part | undefined;
    let failure: { error: unknown } | undefined;
    let isReasoned = false;
    try {
      for await (const part of stream as any as AsyncIterable<Part>) {
        const block = blocks.get(part.id ?? part.toolCallId);
        isReasoned ||= part.type.startsWith("reasoning");
        switch (part.type) {
          case "finish":
            finish = part;
            continue;
          case "error":
            failure = part;
            continue;
          case "text-start":
          case "tool-input-start":
            yield* held.splice(0);
            last = { id: part.id, text: "", toolName: part.toolName, isStarted: true };
            if (!part.providerExecuted) blocks.set(part.id, last);
            break;
          case "text-delta":
          case "tool-input-delta":
            if (block) block.text += part.delta;
            break;
          case "tool-input-end":
            if (!block || isWhole(block.text)) break;
            heldOfCalls.push(part);
            continue;
          case "tool-call":
            if (part.providerExecuted) break;
            yield* held.splice(0);
            last = block ?? { id: part.toolCallId, text: part.input, toolName: part.toolName };
            blocks.set(last.id, last);
            last.isCalled = isWhole(part.input);
            if (last.isCalled) break;
            heldOfCalls.push(part);
            continue;
          default:
            if (held.length === 0 && !(part.type === "text-end" && block === last)) break;
            held.push(part);
            continue;
        }
        yield part;
      }
    } catch (error) {
      if (params.abortSignal?.aborted) throw error;
      failure = { error };
    }
    // If the reply never began, the SDK decides whether to repeat the request.
    if (failure && !last) {
      if (finish === undefined) throw failure.error;
      yield* [failure, finish];
      return;
    }
    const open = [...blocks.values()].filter((block) => block.toolName !== undefined && !block.isCalled);
    const isLastOpen = last === undefined || last.toolName === undefined || (open.length === 0 && !finish);
    const targets = isLastOpen ? [...open, last ?? { id: "endmark", text: "" }] : open;
    const ask = async (wanted: Params): Promise<ModelAnswer> => collectStream((await model.doStream(wanted)).stream);
    const first = { ...finish, ...(failure && { ending: "upstream_error" }) };
    const recovered = await this.#recover(targets, first, { params, isReasoned, isSent: true, ask });
    const outcomes = recovered?.outcomes ?? new Map<Block, Outcome>();
    for (const block of targets) {
      const outcome = outcomes.get(block);
      const ends = block.toolName === undefined ? held.splice(0) : heldOfCalls.filter((part) => (part.id ?? part.toolCallId) === block.id);
      yield* outcome ? blockEnd(block, outcome.text, ends) : ends;
    }
    yield* held;
    if (recovered) {
      const finishReason = finishReasonOf(recovered, [...blocks.values()].some((block) => block.toolName !== undefined));
      const providerMetadata = withDisclosure(finish?.providerMetadata, outcomes);
      yield { ...finish, type: "finish", usage: recovered.usage, finishReason, providerMetadata };
      return;
    }
    if (failure) yield { type: "error", error: failure.error };
    if (finish) yield finish;
  }

  /** Recovers the blocks that are cut. Returns undefined if none of them is. */
  async #recover(
    blocks: Block[],
    first: Omit<ModelAnswer, "text">,
    given: { params: Params; isReasoned: boolean; isSent: boolean; ask: (params: Params) => Promise<ModelAnswer> },
  ): Promise<RecoveredReply | undefined> {
    const { params, isSent, ask } = given;
    let { usage, finishReason } = first;
    const outcomes = new Map<Block, Outcome>();
    const turnNumber = params.prompt.filter((message: any) => message.role === "assistant").length + 1;
    for (const block of blocks) {
      // A call without arguments is complete: the SDK treats them as `{}`.
      if (block.toolName !== undefined && block.text.trim() === "" && finishReasonValue(first.finishReason) === "tool-calls" && !first.ending) continue;
      const client = async (request: Ask): Promise<Reply> => {
        const answer = await ask(this.#continuation(block, params, request));
        usage = usage === undefined ? answer.usage : addUsage(usage, answer.usage);
        finishReason = answer.finishReason ?? finishReason;
        return toReply(answer, params);
      };
      const isStop = () => params.abortSignal?.aborted === true;
      const isJson = block.toolName !== undefined || params.responseFormat?.type === "json";
      try {
        const reply = { ...toReply({ ...first, text: block.text } as ModelAnswer, params), reasoned: given.isReasoned };
        const outcome = await recover(this.#options, client, { reply, isJson, isSent, turnNumber, isStop });
        const isUnchanged = outcome.result === "whole" && outcome.text === block.text && !isMissing(first.finishReason);
        if (!isUnchanged) outcomes.set(block, outcome);
      } catch (error) {
        if (!isNotCut(error, block.toolName !== undefined && !isWhole(block.text))) throw error;
      }
    }
    return outcomes.size > 0 ? { outcomes, usage, finishReason: finishReason ?? "other" } : undefined;
  }

  /** Returns the continuation request. The model must not call tools, so that the answer is text. */
  #continuation(block: Block, params: Params, request: Ask): Params {
    const { continuationTokens = 4_096 } = this.#options;
    const limit = params.maxOutputTokens;
    const asked = { ...params, ...(limit && { maxOutputTokens: Math.max(limit, continuationTokens) }) };
    if (request.wanted !== "rest") return asked;
    const shown = shownText(request, block.toolName);
    const prompt = [...params.prompt, ...(shown ? [message("assistant", shown)] : []), message("user", request.prompt)];
    // Keep the tools, because some providers reject a conversation with calls of undefined tools.
    return { ...asked, prompt, responseFormat: undefined, ...(params.tools?.length && { toolChoice: { type: "none" } }) };
  }
}

/** Yields the rest of a recovered block, and then the held parts of its end. */
function* blockEnd(block: Block, text: string, ends: Part[]): Generator<Part> {
  const { id, toolName } = block;
  const kind = toolName === undefined ? "text" : "tool-input";
  const delta = text.slice(block.text.length);
  if (!block.isStarted && kind === "text") yield { type: "text-start", id };
  if (delta && (block.isStarted || kind === "text")) yield { type: `${kind}-delta`, id, delta };
  if ((block.isStarted || kind === "text") && !ends.some((part) => part.type === `${kind}-end`)) yield { type: `${kind}-end`, id };
  yield* ends.filter((part) => part.type !== "tool-call");
  if (toolName === undefined) return;
  yield { ...ends.find((part) => part.type === "tool-call"), type: "tool-call", toolCallId: id, toolName, input: text };
}

const message = (role: string, text: string) => ({ role, content: [{ type: "text", text }] });

const finishReasonValue = (finishReason: any): string => (typeof finishReason === "string" ? finishReason : (finishReason?.unified ?? "unknown"));

/** Returns the finish reason with another value, in the form of its version. */
function withFinishReason(finishReason: any, unified: string): any {
  return typeof finishReason === "string" ? unified : { ...finishReason, unified };
}

/**
 * Whether the provider sent no finish reason. AI SDK 5 has one value for a missing and an unknown one; later versions also contain the
 * provider's own value.
 */
function isMissing(finishReason: any): boolean {
  if (finishReason === undefined || finishReason === "unknown") return true;
  return typeof finishReason === "object" && finishReason.raw == null && ["other", "unknown"].includes(finishReason.unified);
}

function toReply({ text, finishReason, usage, ending }: ModelAnswer, params: Params): Reply {
  const unified = finishReasonValue(finishReason);
  const stop = unified === "other" && finishReason.raw != null ? finishReason.raw : unified.replaceAll("-", "_");
  const hasEnded = !isMissing(finishReason) && unified !== "interrupted";
  const tokens = usage?.outputTokens;
  return {
    text,
    stop: hasEnded ? stop : undefined,
    ending,
    outputTokens: typeof tokens === "object" ? tokens?.total : tokens,
    limit: params.maxOutputTokens,
  };
}

async function collectStream(stream: ReadableStream<Part>): Promise<ModelAnswer> {
  let text = "";
  let finish: Part;
  for await (const part of stream as any as AsyncIterable<Part>) {
    if (part.type === "text-delta") text += part.delta;
    if (part.type === "error") throw part.error;
    if (part.type === "finish") finish = part;
  }
  return { text, finishReason: finish?.finishReason, usage: finish?.usage };
}

function finishReasonOf({ finishReason }: RecoveredReply, hasCalls: boolean): any {
  return hasCalls ? withFinishReason(finishReason, "tool-calls") : finishReason;
}

function withDisclosure(metadata: any, outcomes: Map<Block, Outcome>): any {
  const all = [...outcomes.values()];
  return { ...metadata, endmark: { outcome: all.at(-1)?.result, attempts: all.reduce((sum, outcome) => sum + outcome.attempts, 0) } };
}

/** Caps the tool results in a prompt. The same result is capped in the same way in every request. */
async function capPrompt(prompt: any[], options: { maxChars: number; outputs: Outputs | undefined }, own: string): Promise<any[]> {
  const shortened = createShortener(options.maxChars, options.outputs);
  const ofOutput = async (output: any): Promise<any> => {
    switch (output.type) {
      case "text":
      case "error-text":
        return { ...output, value: await shortened(output.value) };
      case "json":
      case "error-json": {
        const whole = json(output.value);
        const text = await shortened(whole);
        if (text === whole) return output;
        return isWhole(text) ? { ...output, value: JSON.parse(text) } : { ...output, type: output.type.replace("json", "text"), value: text };
      }
      case "content": {
        const part = async (part: any) => (part.type === "text" ? { ...part, text: await shortened(part.text) } : part);
        return { ...output, value: await Promise.all(output.value.map(part)) };
      }
      default:
        return output;
    }
  };
  const ofPart = async (part: any) =>
    part.type === "tool-result" && part.toolName !== own ? { ...part, output: await ofOutput(part.output) } : part;
  const ofMessage = async (message: any) =>
    message.role === "tool" ? { ...message, content: await Promise.all(message.content.map(ofPart)) } : message;
  return Promise.all(prompt.map(ofMessage));
}

/** Returns the tool call with corrected arguments, or null if they could not be corrected. */
async function repairCall(model: Model, { toolCall, inputSchema, error, abortSignal }: any): Promise<any> {
  if (error?.name === "AI_NoSuchToolError" || detect(toolCall.input, "json").verdict === "truncated") return null;
  const schema = await inputSchema({ toolName: toolCall.toolName });
  const task = `Write the arguments of a call of the tool \`${toolCall.toolName}\` as JSON, by this JSON Schema:\n${json(schema)}`;
  const ask = async (request: Ask | Correction): Promise<Reply> => {
    if (request.step === "resume") throw new AskFailed("cut arguments are not corrected", "final");
    const prompt = [message("user", task), message("assistant", request.text), message("user", request.prompt)];
    const { content, finishReason } = await model.doGenerate({ prompt, abortSignal });
    return toReply({ text: textOf(content), finishReason, usage: undefined }, {});
  };
  try {
    const { text } = await new Pipeline({ schema, restart: "off" }).run(ask, { text: toolCall.input, stop: "stop" });
    return { ...toolCall, input: text };
  } catch (failure) {
    if (failure instanceof EndmarkError) return null;
    throw failure;
  }
}
