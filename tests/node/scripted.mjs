// A model with scripted replies in Chat Completions and Responses. It cuts the first reply of a conversation, and rejects a
// request with a cut tool call. A continuation request gets the text after the shown part.
import { createServer } from "node:http";

export const TEXT =
  "Marie Curie was a Polish-French chemist who made groundbreaking discoveries in physics. She won two Nobel Prizes, and the second one was for the discovery of radium and polonium.";
export const DOCUMENT = '{"name": "Tom the cat", "age": 12, "likes": ["fresh fish", "warm blankets"]}';
export const note = (number) => JSON.stringify({ path: `horses-${number}.txt`, text: `Horse ${number} is a large animal that eats grass and can run for hours.` });
export const FINAL = "The notes are saved, and nothing else is left to do.";
const USAGE = [50, 20];

/** The replies by the kind of conversation, which is in the user's message. */
const TURNS = {
  text: [{ text: TEXT }],
  document: [{ text: DOCUMENT }],
  call: [{ calls: [note(1)] }, { text: FINAL }],
  calls: [{ text: "I save two notes.", calls: [note(1), note(2)] }, { text: FINAL }],
  invalid: [{ calls: ['{"path": 5, "text": "x"}'] }, { text: FINAL }],
  empty: [{ calls: [""] }, { text: FINAL }],
  refused: [{ text: "I cannot help with that." }],
  log: [{ calls: [note(1)] }, { read: true }, { text: FINAL }],
};

/** The finish reason of a cut reply. With `undefined` the connection breaks, and with null the stream ends. */
const HARMS = { limit: "length", never: "length", fails: "length", drop: undefined, ends: null };

function reply(server, body) {
  const texts = body.messages.filter((message) => message.role === "user").map((message) => contentOf(message));
  const [kind, harm] = texts.find((text) => /^\w+ \w+$/.test(text))?.split(" ") ?? ["correct"];
  const asked = texts.at(-1) ?? "";
  const last = body.messages.at(-1);
  if (kind === "correct") return { text: '{"path": "5", "text": "x"}', finish: "stop" };
  const step = body.messages.filter((message) => message.role === "tool").length > 0 ? body.messages.filter((message) => message.tool_calls).length : 0;
  const turn = TURNS[kind][step];
  if (/cut off/.test(asked)) {
    if (harm === "never") return { text: "", finish: "length" };
    if (harm === "fails") return { status: 400 };
    const shown = contentOf(body.messages.at(-2)).split("\n").at(-1);
    const whole = turn.calls?.at(-1) ?? turn.text;
    return { text: whole.slice(whole.indexOf(shown) + shown.length), finish: "stop" };
  }
  if (turn.read) {
    const handle = /endmark_read ([0-9a-f]{16})|handle[^0-9a-f]{1,6}([0-9a-f]{16})/.exec(contentOf(last));
    if (!handle) return { text: "there is no handle", finish: "stop" };
    const part = contentOf(last).includes('"row":') ? { pointer: "/31234" } : { grep: "row 31234 " };
    return { calls: [JSON.stringify({ handle: handle[1] ?? handle[2], ...part })], name: "endmark_read", finish: "tool_calls" };
  }
  const finish = turn.calls ? "tool_calls" : "stop";
  if (step > 0 || harm === "whole") return { ...turn, finish };
  if (kind === "refused") return { ...turn, finish: "content_filter" };
  const cut = (text) => text.slice(0, Math.floor(text.length * 0.6));
  const calls = turn.calls?.map((text, index) => (index === turn.calls.length - 1 ? cut(text) : text));
  return { text: calls ? turn.text : cut(turn.text), calls, finish: HARMS[harm] };
}

const contentOf = (message) =>
  typeof message.content === "string" ? message.content : (message.content ?? []).map((part) => part.text ?? "").join("");

/** Converts the input of a Responses request to messages of Chat Completions. */
function messagesOf({ input }) {
  const messages = [];
  for (const item of typeof input === "string" ? [{ role: "user", content: input }] : input) {
    if (item.type === "function_call") {
      const call = { function: { name: item.name, arguments: item.arguments } };
      if (messages.at(-1)?.tool_calls) messages.at(-1).tool_calls.push(call);
      else messages.push({ role: "assistant", content: "", tool_calls: [call] });
    } else if (item.type === "function_call_output") {
      messages.push({ role: "tool", content: item.output });
    } else messages.push(item);
  }
  return messages;
}

/** Answers in the format of the Responses API. */
function respond(response, { id, model, text, calls, name, finish, isStream }) {
  const output = [];
  if (text !== undefined) output.push({ type: "message", id: `msg-${id}`, role: "assistant", status: "completed", content: [{ type: "output_text", text, annotations: [] }] });
  for (const [index, call] of (calls ?? []).entries()) output.push({ type: "function_call", id: `fc-${id}-${index}`, call_id: `call-${id}-${index}`, name, arguments: call, status: "completed" });
  const reason = { length: "max_output_tokens", content_filter: "content_filter" }[finish];
  if (reason) output.at(-1).status = "incomplete";
  const usage = { input_tokens: USAGE[0], output_tokens: USAGE[1], total_tokens: USAGE[0] + USAGE[1], input_tokens_details: { cached_tokens: 0 }, output_tokens_details: { reasoning_tokens: 0 } };
  const status = reason ? "incomplete" : "completed";
  const body = { id, object: "response", created_at: 1_780_000_000, model, output, usage, status, incomplete_details: reason ? { reason } : null };
  if (!isStream) {
    response.writeHead(200, { "content-type": "application/json" });
    return response.end(JSON.stringify(body));
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  const send = (type, more) => response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`);
  send("response.created", { response: { ...body, output: [], status: "in_progress" } });
  for (const [output_index, item] of output.entries()) {
    const isText = item.type === "message";
    send("response.output_item.added", { output_index, item: { ...item, ...(isText ? { content: [] } : { arguments: "" }) } });
    const type = isText ? "response.output_text.delta" : "response.function_call_arguments.delta";
    for (const delta of (isText ? item.content[0].text : item.arguments).match(/.{1,7}/gs) ?? []) send(type, { item_id: item.id, output_index, content_index: 0, delta });
    if (finish === undefined) return setTimeout(() => response.destroy(), 20);
    send("response.output_item.done", { output_index, item });
  }
  if (finish !== null) send(`response.${status}`, { response: body });
  response.end();
}

function isJson(text) {
  try {
    return JSON.parse(text) !== undefined;
  } catch {
    return false;
  }
}

/** Starts the server. `requests` contains the received bodies. */
export async function scripted() {
  const requests = [];
  const server = createServer(async (request, response) => {
    let raw = "";
    for await (const part of request) raw += part;
    const body = JSON.parse(raw);
    const isResponses = request.url.endsWith("/responses");
    if (isResponses) body.messages = messagesOf(body);
    requests.push(body);
    const isCut = body.messages.flatMap((message) => message.tool_calls ?? []).some((call) => !isJson(call.function.arguments || "{}"));
    const { text, calls, name = "save_note", finish, status } = isCut ? { status: 400 } : reply(server, body);
    if (status) {
      response.writeHead(status, { "content-type": "application/json" });
      return response.end('{"error": {"message": "refused", "type": "invalid_request_error"}}');
    }
    if (isResponses) return respond(response, { id: `resp-${requests.length}`, model: body.model, text, calls, name, finish, isStream: body.stream });
    const usage = { prompt_tokens: USAGE[0], completion_tokens: USAGE[1], total_tokens: USAGE[0] + USAGE[1] };
    const common = { id: `chatcmpl-${requests.length}`, created: 1_780_000_000, model: body.model };
    const tool_calls = calls?.map((text, index) => ({ index, id: `call-${requests.length}-${index}`, type: "function", function: { name, arguments: text } }));
    if (!body.stream) {
      const message = { role: "assistant", content: text ?? null, tool_calls };
      response.writeHead(200, { "content-type": "application/json" });
      return response.end(JSON.stringify({ ...common, object: "chat.completion", choices: [{ index: 0, message, finish_reason: finish }], usage }));
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    const send = (delta, finish_reason = null, more = {}) =>
      response.write(`data: ${JSON.stringify({ ...common, object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason }], ...more })}\n\n`);
    send({ role: "assistant", content: "" });
    for (const piece of text?.match(/.{1,7}/gs) ?? []) send({ content: piece });
    for (const call of tool_calls ?? []) {
      send({ tool_calls: [{ ...call, function: { name, arguments: "" } }] });
      for (const piece of call.function.arguments.match(/.{1,7}/gs) ?? []) send({ tool_calls: [{ index: call.index, function: { arguments: piece } }] });
    }
    if (finish === undefined) return setTimeout(() => response.destroy(), 20);
    if (finish === null) return response.end();
    send({}, finish);
    response.write(`data: ${JSON.stringify({ ...common, object: "chat.completion.chunk", choices: [], usage })}\n\n`);
    response.end("data: [DONE]\n\n");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { requests, url: `http://127.0.0.1:${server.address().port}/v1`, close: () => server.close() };
}
