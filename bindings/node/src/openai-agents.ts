/**
 * OpenAI Agents SDK: returns complete replies and tool calls or throws, and caps tool results.
 *
 *     const endmark = createEndmark({ meter: new Meter({ maxTokens: 850_000 }) });
 *     const agent = new Agent({ name: "sre", model: "gpt-5", tools: [readLog, endmark.readTool] });
 *     const runner = new Runner({ modelProvider: endmark.wrap(new OpenAIProvider()) });
 *
 * It works with the Responses and the Chat Completions API, and imports nothing from the SDK.
 */

import { Outputs, type Admitted, type Tokens } from "./context.js";
import { NotResumed } from "./errors.js";
import {
  Budget, CLOSING, MAX_COMPONENT_CHARS, addUsage, checkOptions, createReadTool, createShortener, isCutStop, isNotCut, isWhole, recover, shownText,
  withMethods, type BudgetOptions, type ComponentOptions,
} from "./frameworks.js";
import { AskFailed, type Ask, type Outcome, type Reply } from "./recovery.js";

export interface EndmarkOptions extends ComponentOptions, BudgetOptions {
  /** The minimum output limit of a continuation, if the first call has a limit; by default 4,096. */
  continuationTokens?: number | undefined;
}

export interface Endmark {
  /** Wraps a model, or a provider with all its models. `name` is the name of the model, for its tokenizer and prices. */
  wrap<M extends object>(modelOrProvider: M, name?: string): M;
  readonly outputs: Outputs;
  /** The tool with which a model reads omitted parts of a result. Results are also capped if it is not in `tools`. */
  readonly readTool: any;
}

// The SDK's own types are not needed to build this package.
type Model = any;
type ModelRequest = any;
type Item = any;

/** One answer of the model. `stop` is the provider's stop reason. */
interface ModelAnswer extends Pick<Reply, "ending"> {
  output: Item[];
  usage: any;
  responseId?: string;
  providerData?: any;
  stop: string | undefined;
}

const NO_USAGE = { requests: 1, inputTokens: 0, outputTokens: 0, totalTokens: 0, inputTokensDetails: [], outputTokensDetails: [] };

export function createEndmark(options: EndmarkOptions = {}): Endmark {
  checkOptions(options, "continuationTokens", "meter", "assumeOutputTokens");
  const outputs = options.outputs ?? new Outputs();
  const { execute, name: readName, schema, ...described } = createReadTool(outputs, options.maxResultChars ?? MAX_COMPONENT_CHARS);
  const wrapped = new WeakMap<object, object>();
  const wrapModel = (model: Model, name: string): Model => {
    if (!wrapped.has(model)) {
      const made = new WholeModel(model, name, { ...options, outputs }, readName);
      const methods = { getResponse: made.getResponse.bind(made), getStreamedResponse: made.getStreamedResponse.bind(made) };
      wrapped.set(model, withMethods(model, methods));
    }
    return wrapped.get(model);
  };
  return {
    outputs,
    wrap(given, name) {
      const provider: any = given;
      if (!("getModel" in given)) return wrapModel(given, name ?? provider._model ?? "");
      return withMethods(given, { getModel: async (asked?: string) => wrapModel(await provider.getModel(asked), name ?? asked ?? "") });
    },
    readTool: {
      ...described,
      type: "function",
      name: readName,
      parameters: schema,
      strict: false,
      invoke: (_: unknown, given: string) => execute(given),
      needsApproval: async () => false,
      isEnabled: async () => true,
    },
  };
}

class WholeModel {
  /** The stop reasons of replies of the Responses API, by request. */
  readonly #stops = new WeakMap<ModelRequest, string>();

  constructor(
    readonly inner: Model,
    readonly name: string,
    readonly options: EndmarkOptions & { outputs: Outputs },
    readonly readName: string,
    readonly budget = new Budget(options),
  ) {
    if (typeof inner._fetchResponse === "function") this.#noteStops(inner._fetchResponse.bind(inner));
  }

  /** Records the stop reason of an incomplete response and marks the response as completed, because the SDK discards incomplete ones. */
  #noteStops(fetch: (request: ModelRequest, ...rest: unknown[]) => Promise<any>): void {
    const noted = (request: ModelRequest, response: any) => {
      const reason = response?.incomplete_details?.reason;
      if (response?.status !== "incomplete" || reason == null) return false;
      this.#stops.set(request, reason);
      response.status = "completed";
      return true;
    };
    const events = async function* (request: ModelRequest, stream: AsyncIterable<any>) {
      for await (const event of stream) yield noted(request, event.response) ? { ...event, type: "response.completed" } : event;
    };
    this.inner._fetchResponse = async (request: ModelRequest, isStream: boolean, ...rest: unknown[]) => {
      const response = await fetch(request, isStream, ...rest);
      if (isStream) return events(request, response);
      noted(request, response);
      return response;
    };
  }

  async getResponse(given: ModelRequest): Promise<any> {
    const request = await this.#capResults(given);
    const { stop, ...response } = await this.#callModel(request, false);
    return (await this.#recover(request, { ...response, stop }, false)) ?? response;
  }

  /** Yields the events as they arrive. The end of a reply is held until the reply is complete. */
  async *getStreamedResponse(given: ModelRequest): AsyncGenerator<any> {
    const request = await this.#capResults(given);
    const { admitted, asked } = this.#admit(request, false);
    const held: any[] = [];
    let [text, isChat, hasCall] = ["", false, false];
    let [stop, done, failure]: [string | undefined, any, unknown] = [undefined, undefined, undefined];
    try {
      for await (const event of this.inner.getStreamedResponse(asked)) {
        const raw = event.type === "model" ? event.event : undefined;
        const choice = raw?.choices?.[0];
        stop = choice?.finish_reason ?? this.#stops.get(asked) ?? stop;
        isChat ||= choice !== undefined;
        hasCall ||= choice?.delta?.tool_calls !== undefined || raw?.item?.type === "function_call";
        if (event.type === "response_done") done = event.response;
        if (event.type === "output_text_delta") text += event.delta;
        if (event.type !== "output_text_delta" && (done || stop !== undefined)) held.push(event);
        else yield event;
      }
    } catch (error) {
      if (!isEmptyAtLimit(error) && (text === "" || hasCall || request.signal?.aborted)) throw error;
      failure = error;
      done = { output: text ? [message("assistant", text)] : [], usage: NO_USAGE };
    } finally {
      this.budget.settle(admitted, tokensOf(done?.usage), done ? writtenText(done.output) : text || undefined);
    }
    const ending = failure && text ? "upstream_error" : isChat && stop === undefined ? "dropped" : undefined;
    const first = { ...done, responseId: done?.id, stop: ending ? undefined : (stop ?? "stop"), ending };
    const whole = await this.#recover(request, first, true);
    if (!whole && failure) throw failure;
    if (!whole) return yield* held;
    const { output, usage, responseId: id, providerData } = whole;
    const delta = textOf(output).slice(text.length);
    const itemId = output.findLast((item: Item) => item.type === "message")?.id;
    if (delta) yield { type: "output_text_delta", delta, ...(itemId && { itemId }) };
    yield { type: "response_done", response: { ...done, id: id ?? "", output, usage, providerData } };
  }

  /** Recovers the reply. Returns undefined if it is not cut. */
  async #recover(request: ModelRequest, first: ModelAnswer, isSent: boolean): Promise<any> {
    const { output, stop } = first;
    const call: Item = output.findLast((item) => item.type === "function_call");
    const isCut = call !== undefined && !isWhole(call.arguments) && (call.arguments !== "" || isCutStop(stop));
    if (call !== undefined && !isCut) return undefined;
    const answers: ModelAnswer[] = [];
    const ask = async (asked: Ask): Promise<Reply> => {
      const answer = await this.#callModel(this.#continuation(request, asked, call?.name), true);
      answers.push(answer);
      return replyOf(answer, asked, call);
    };
    const isStop = () => request.signal?.aborted === true;
    const reply = call ? { ...toReply(first, call.arguments), stop: stop ?? "length" } : toReply(first, textOf(output));
    const turnNumber = [request.input].flat().filter((item: Item) => item.role === "assistant").length + 1;
    try {
      const isJson = isCut || request.outputType !== "text";
      const outcome = await recover(this.options, ask, { reply, isJson, isSent, turnNumber, isStop });
      return answers.length || first.ending ? completedReply(first, { call, outcome, answers }) : undefined;
    } catch (error) {
      // The SDK handles refusals itself.
      const isRefusal = error instanceof NotResumed && !isCut && partsOf(output).some((part) => part.type === "refusal");
      if (isRefusal || (!(error instanceof NotResumed) && isNotCut(error, isCut))) return undefined;
      throw error;
    }
  }

  /** Makes one call within the budget, and reads the answer to its end. */
  async #callModel(request: ModelRequest, isContinuation: boolean): Promise<ModelAnswer> {
    const { admitted, asked } = this.#admit(request, isContinuation);
    let response: any;
    try {
      response = await this.inner.getResponse(asked).catch((error: unknown) => {
        if (!isEmptyAtLimit(error)) throw error;
        return { usage: NO_USAGE, output: [], stop: "length" };
      });
    } finally {
      this.budget.settle(admitted, tokensOf(response?.usage), response && writtenText(response.output));
    }
    return { stop: this.#stops.get(asked) ?? response.providerData?.choices?.[0]?.finish_reason ?? "stop", ...response };
  }

  /** Holds the call in the budget, if there is one. Also returns the request to make. */
  #admit(request: ModelRequest, isContinuation: boolean): { admitted: Admitted | undefined; asked: ModelRequest } {
    const { systemInstructions, input, tools, modelSettings } = request;
    const admitted = this.budget.admit(this.name, [systemInstructions, input, tools], { limit: modelSettings.maxTokens, isContinuation });
    const asked = admitted?.isClosing ? withoutTools(request, [message("user", CLOSING)], admitted.maxOutputTokens) : { ...request };
    return { admitted, asked };
  }

  #continuation(request: ModelRequest, asked: Ask, toolName: string | undefined): ModelRequest {
    const { continuationTokens = 4_096 } = this.options;
    const limit = request.modelSettings.maxTokens;
    const maxTokens = limit && Math.max(limit, continuationTokens);
    if (asked.wanted !== "rest") return { ...request, modelSettings: { ...request.modelSettings, maxTokens } };
    const added = [message("assistant", shownText(asked, toolName)), message("user", asked.prompt)];
    return { ...withoutTools(request, added, maxTokens), outputType: "text" };
  }

  /** Caps the tool results of a request. The same result is capped in the same way in every request. */
  async #capResults(request: ModelRequest): Promise<ModelRequest> {
    if (!Array.isArray(request.input)) return request;
    const canRead = request.tools.some((tool: any) => tool.name === this.readName);
    const shortened = createShortener(this.options.maxResultChars ?? MAX_COMPONENT_CHARS, canRead ? this.options.outputs : undefined);
    const ofOutput = async (output: any): Promise<any> => {
      if (typeof output === "string") return shortened(output);
      if (Array.isArray(output)) return Promise.all(output.map(ofOutput));
      return typeof output?.text === "string" ? { ...output, text: await shortened(output.text) } : output;
    };
    const ofItem = async (item: Item) =>
      item.type === "function_call_result" && item.name !== this.readName ? { ...item, output: await ofOutput(item.output) } : item;
    return { ...request, input: await Promise.all(request.input.map(ofItem)) };
  }
}

/** Adds messages to a request, in which no tool may be called. It keeps its tools, because some providers reject calls of undefined tools. */
function withoutTools(request: ModelRequest, added: Item[], maxTokens: number | undefined): ModelRequest {
  const { parallelToolCalls: _, ...settings } = request.modelSettings;
  const input = typeof request.input === "string" ? [message("user", request.input)] : request.input;
  const hasTools = request.tools.length + request.handoffs.length > 0;
  const modelSettings = { ...settings, maxTokens, toolChoice: hasTools ? "none" : undefined };
  return { ...request, input: [...input, ...added], modelSettings };
}

const message = (role: "assistant" | "user", text: string): Item =>
  role === "user" ? { type: "message", role, content: text } : { type: "message", role, status: "completed", content: [{ type: "output_text", text }] };

/** Returns the tokens that the provider reported, if any. */
function tokensOf(usage: any): Tokens | undefined {
  if (!usage?.totalTokens) return undefined;
  const { inputTokens: prompt, outputTokens: completion, inputTokensDetails, outputTokensDetails } = withDetailLists(usage);
  const { cached_tokens: cached } = inputTokensDetails.reduce(addUsage, {});
  const { reasoning_tokens: reasoning } = outputTokensDetails.reduce(addUsage, {});
  return { prompt, completion, cached, reasoning };
}

const partsOf = (output: Item[]): any[] => output.filter((item) => item.type === "message").flatMap((item) => item.content);
const textOf = (output: Item[]): string => partsOf(output).map((part) => (part.type === "output_text" ? part.text : "")).join("");
const writtenText = (output: Item[]): string => textOf(output) + output.map((item) => item.arguments ?? "").join("");
/** Whether the SDK rejected a reply that reached its limit without any text. */
const isEmptyAtLimit = (error: any): boolean => error?.name === "ModelBehaviorError" && /finish_reason='length'/.test(error.message);

function toReply({ output, usage, stop, ending }: ModelAnswer, text: string): Reply {
  return { text, stop, ending, outputTokens: usage.outputTokens || undefined, reasoned: output.length === 0 || output.some((item) => item.type === "reasoning") };
}

/** Converts the details of a usage to lists, because the SDK has objects in streams. */
function withDetailLists(usage: any): any {
  const [inputTokensDetails, outputTokensDetails] = [usage.inputTokensDetails, usage.outputTokensDetails].map((given) => [given ?? []].flat());
  return { requests: 1, ...usage, inputTokensDetails, outputTokensDetails };
}

/** Returns the part of an answer that continues the reply. In a repeated reply, that is the last tool call. */
function replyOf(answer: ModelAnswer, asked: Ask, call: Item): Reply {
  const made = answer.output.filter((item) => item.type === "function_call");
  const last = made.at(-1);
  if (asked.wanted === "rest" && last) throw new AskFailed("the answer makes a tool call instead of completing the reply");
  if (last && !isWhole(last.arguments || "{}")) throw new AskFailed("a tool call in the answer is cut");
  if (call && asked.wanted !== "rest" && last?.name !== call.name) throw new AskFailed("the answer does not make the same tool call again");
  return toReply(answer, call && last ? last.arguments : textOf(answer.output));
}

/** Returns the reply with the whole text or call, and the usage of all calls. Its other items stay unchanged. */
function completedReply(first: ModelAnswer, made: { call: Item; outcome: Outcome; answers: ModelAnswer[] }): any {
  const { call, outcome, answers } = made;
  const { stop: _, ending: __, ...response } = first;
  const { output, responseId } = answers.at(-1) ?? first;
  const usage = [first, ...answers].map((answer) => withDetailLists(answer.usage)).reduce(addUsage);
  const endmark = { outcome: outcome.result, attempts: outcome.attempts };
  const common = { ...response, usage: Object.assign(Object.create(Object.getPrototypeOf(first.usage)), usage), providerData: { ...response.providerData, endmark } };
  const whole = first.output.map((item) => (item.status === "incomplete" ? { ...item, status: "completed" } : item));
  if (call) return { ...common, output: whole.with(first.output.indexOf(call), { ...call, status: "completed", arguments: outcome.text }) };
  if (textOf(whole) === "") return { ...common, output, responseId };
  // The parts before the last one already contain the start of the text.
  const place = whole.findLastIndex((item) => item.type === "message" && textOf([item]) !== "");
  const part = whole[place].content.findLastIndex((part: any) => part.type === "output_text");
  const text = outcome.text.slice(textOf(whole).length - whole[place].content[part].text.length);
  const content = whole[place].content.with(part, { ...whole[place].content[part], text });
  return { ...common, output: whole.with(place, { ...whole[place], content }), responseId };
}
