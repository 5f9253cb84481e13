/**
 * OpenAI Agents SDK: replies and tool calls come out whole or throw, and tool results are capped with a way to read the rest.
 *
 *     const endmark = createEndmark({ meter: new Meter({ maxTokens: 850_000 }) });
 *     const agent = new Agent({ name: "sre", model: "gpt-5", tools: [readLog, endmark.readTool] });
 *     const runner = new Runner({ modelProvider: endmark.wrap(new OpenAIProvider()) });
 *
 * It works with the Responses and the Chat Completions API, and imports nothing of the SDK.
 */

import { Outputs, type Admitted, type Tokens } from "./context.js";
import { NotResumed } from "./errors.js";
import {
  Budget, CLOSING, MAX_COMPONENT_CHARS, checkOptions, isCutStop, isNotCut, isWhole, reader, recover, shortener, shownFor, sum,
  withMethods, type BudgetOptions, type ComponentOptions,
} from "./frameworks.js";
import { AskFailed, type Ask, type Outcome, type Reply } from "./recovery.js";

export interface EndmarkOptions extends ComponentOptions, BudgetOptions {
  /** The output limit of a continuation whose first call had a lower one, by default 4,096. */
  continuationTokens?: number | undefined;
}

export interface Endmark {
  /** The same model, or the same provider with all its models. `name` is the model's, for its tokens and prices. */
  wrap<M extends object>(modelOrProvider: M, name?: string): M;
  readonly outputs: Outputs;
  /** The tool by which a model reads what was left out of a result: without it in `tools`, results are capped all the same. */
  readonly readTool: any;
}

// The SDK's own types are not needed to build this package.
type Model = any;
type ModelRequest = any;
type Item = any;

/** One answer of the model. `stop` is its provider's word. */
interface Received extends Pick<Reply, "ending"> {
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
  const { execute, name: readName, schema, ...described } = reader(outputs, options.maxResultChars ?? MAX_COMPONENT_CHARS);
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
  /** Why the provider ended the replies of the Responses API, by their requests. */
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

  /** The SDK throws away an incomplete response of the Responses API. It gets a completed one, and the stop reason is noted. */
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
    const request = await this.#capped(given);
    const { stop, ...response } = await this.#answered(request, false);
    return (await this.#recovered(request, { ...response, stop }, false)) ?? response;
  }

  /** The events as they come. The end of a reply is held until the reply is whole. */
  async *getStreamedResponse(given: ModelRequest): AsyncGenerator<any> {
    const request = await this.#capped(given);
    const { admitted, asked } = this.#admitted(request, false);
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
      this.budget.settle(admitted, tokensOf(done?.usage), done ? written(done.output) : text || undefined);
    }
    const ending = failure && text ? "upstream_error" : isChat && stop === undefined ? "dropped" : undefined;
    const first = { ...done, responseId: done?.id, stop: ending ? undefined : (stop ?? "stop"), ending };
    const whole = await this.#recovered(request, first, true);
    if (!whole && failure) throw failure;
    if (!whole) return yield* held;
    const { output, usage, responseId: id, providerData } = whole;
    const delta = textOf(output).slice(text.length);
    const itemId = output.findLast((item: Item) => item.type === "message")?.id;
    if (delta) yield { type: "output_text_delta", delta, ...(itemId && { itemId }) };
    yield { type: "response_done", response: { ...done, id: id ?? "", output, usage, providerData } };
  }

  /** The reply made whole, or nothing if it needs nothing. */
  async #recovered(request: ModelRequest, first: Received, isSent: boolean): Promise<any> {
    const { output, stop } = first;
    const call: Item = output.findLast((item) => item.type === "function_call");
    const isCut = call !== undefined && !isWhole(call.arguments) && (call.arguments !== "" || isCutStop(stop));
    if (call !== undefined && !isCut) return undefined;
    const answers: Received[] = [];
    const ask = async (asked: Ask): Promise<Reply> => {
      const answer = await this.#answered(this.#continuation(request, asked, call?.name), true);
      answers.push(answer);
      return replyOf(answer, asked, call);
    };
    const isStop = () => request.signal?.aborted === true;
    const reply = call ? { ...replied(first, call.arguments), stop: stop ?? "length" } : replied(first, textOf(output));
    const turnNumber = [request.input].flat().filter((item: Item) => item.role === "assistant").length + 1;
    try {
      const isJson = isCut || request.outputType !== "text";
      const outcome = await recover(this.options, ask, { reply, isJson, isSent, turnNumber, isStop });
      return answers.length || first.ending ? mended(first, { call, outcome, answers }) : undefined;
    } catch (error) {
      // The SDK handles refusals.
      const isRefusal = error instanceof NotResumed && !isCut && partsOf(output).some((part) => part.type === "refusal");
      if (isRefusal || (!(error instanceof NotResumed) && isNotCut(error, isCut))) return undefined;
      throw error;
    }
  }

  /** One call within the budget, read to its end. */
  async #answered(request: ModelRequest, isContinuation: boolean): Promise<Received> {
    const { admitted, asked } = this.#admitted(request, isContinuation);
    let response: any;
    try {
      response = await this.inner.getResponse(asked).catch((error: unknown) => {
        if (!isEmptyAtLimit(error)) throw error;
        return { usage: NO_USAGE, output: [], stop: "length" };
      });
    } finally {
      this.budget.settle(admitted, tokensOf(response?.usage), response && written(response.output));
    }
    return { stop: this.#stops.get(asked) ?? response.providerData?.choices?.[0]?.finish_reason ?? "stop", ...response };
  }

  /** What the budget admits, if there is one, and the request to make. */
  #admitted(request: ModelRequest, isContinuation: boolean): { admitted: Admitted | undefined; asked: ModelRequest } {
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
    const added = [message("assistant", shownFor(asked, toolName)), message("user", asked.prompt)];
    return { ...withoutTools(request, added, maxTokens), outputType: "text" };
  }

  /** The same result is capped the same way in every request. */
  async #capped(request: ModelRequest): Promise<ModelRequest> {
    if (!Array.isArray(request.input)) return request;
    const canRead = request.tools.some((tool: any) => tool.name === this.readName);
    const shortened = shortener(this.options.maxResultChars ?? MAX_COMPONENT_CHARS, canRead ? this.options.outputs : undefined);
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

/** The request with more messages, in which no tool may be called. It has its tools: some providers refuse calls of tools that are not there. */
function withoutTools(request: ModelRequest, added: Item[], maxTokens: number | undefined): ModelRequest {
  const { parallelToolCalls: _, ...settings } = request.modelSettings;
  const input = typeof request.input === "string" ? [message("user", request.input)] : request.input;
  const hasTools = request.tools.length + request.handoffs.length > 0;
  const modelSettings = { ...settings, maxTokens, toolChoice: hasTools ? "none" : undefined };
  return { ...request, input: [...input, ...added], modelSettings };
}

const message = (role: "assistant" | "user", text: string): Item =>
  role === "user" ? { type: "message", role, content: text } : { type: "message", role, status: "completed", content: [{ type: "output_text", text }] };

/** The tokens that a provider reported, if it did. */
function tokensOf(usage: any): Tokens | undefined {
  if (!usage?.totalTokens) return undefined;
  const { inputTokens: prompt, outputTokens: completion, inputTokensDetails, outputTokensDetails } = listed(usage);
  const { cached_tokens: cached } = inputTokensDetails.reduce(sum, {});
  const { reasoning_tokens: reasoning } = outputTokensDetails.reduce(sum, {});
  return { prompt, completion, cached, reasoning };
}

const partsOf = (output: Item[]): any[] => output.filter((item) => item.type === "message").flatMap((item) => item.content);
const textOf = (output: Item[]): string => partsOf(output).map((part) => (part.type === "output_text" ? part.text : "")).join("");
const written = (output: Item[]): string => textOf(output) + output.map((item) => item.arguments ?? "").join("");
/** The SDK refuses a reply that reached its limit without a text. */
const isEmptyAtLimit = (error: any): boolean => error?.name === "ModelBehaviorError" && /finish_reason='length'/.test(error.message);

function replied({ output, usage, stop, ending }: Received, text: string): Reply {
  return { text, stop, ending, outputTokens: usage.outputTokens || undefined, reasoned: output.length === 0 || output.some((item) => item.type === "reasoning") };
}

/** A usage with lists of details: in a stream the SDK has an object. */
function listed(usage: any): any {
  const [inputTokensDetails, outputTokensDetails] = [usage.inputTokensDetails, usage.outputTokensDetails].map((given) => [given ?? []].flat());
  return { requests: 1, ...usage, inputTokensDetails, outputTokensDetails };
}

/** What an answer adds. Of a reply that was made again, it is the last call. */
function replyOf(answer: Received, asked: Ask, call: Item): Reply {
  const made = answer.output.filter((item) => item.type === "function_call");
  const last = made.at(-1);
  if (asked.wanted === "rest" && last) throw new AskFailed("the answer makes a tool call instead of completing the reply");
  if (last && !isWhole(last.arguments || "{}")) throw new AskFailed("a tool call in the answer is cut");
  if (call && asked.wanted !== "rest" && last?.name !== call.name) throw new AskFailed("the answer does not make the same tool call again");
  return replied(answer, call && last ? last.arguments : textOf(answer.output));
}

/** The reply with the whole text or call, and the usage of all calls. Its other items stay. */
function mended(first: Received, made: { call: Item; outcome: Outcome; answers: Received[] }): any {
  const { call, outcome, answers } = made;
  const { stop: _, ending: __, ...response } = first;
  const { output, responseId } = answers.at(-1) ?? first;
  const usage = [first, ...answers].map((answer) => listed(answer.usage)).reduce(sum);
  const endmark = { outcome: outcome.result, attempts: outcome.attempts };
  const common = { ...response, usage: Object.assign(Object.create(Object.getPrototypeOf(first.usage)), usage), providerData: { ...response.providerData, endmark } };
  const whole = first.output.map((item) => (item.status === "incomplete" ? { ...item, status: "completed" } : item));
  if (call) return { ...common, output: whole.with(first.output.indexOf(call), { ...call, status: "completed", arguments: outcome.text }) };
  if (textOf(whole) === "") return { ...common, output, responseId };
  // The parts before the last one have their beginning of the text already.
  const place = whole.findLastIndex((item) => item.type === "message" && textOf([item]) !== "");
  const part = whole[place].content.findLastIndex((part: any) => part.type === "output_text");
  const text = outcome.text.slice(textOf(whole).length - whole[place].content[part].text.length);
  const content = whole[place].content.with(part, { ...whole[place].content[part], text });
  return { ...common, output: whole.with(place, { ...whole[place], content }), responseId };
}
