// A model with scripted replies, as Chat Completions. It cuts the first reply of a conversation, and checks that no call of a tool in a
// request is cut. A request for the rest of a text gets what follows the part that it shows.
import { createServer } from "node:http";

export const TEXT =
  "Marie Curie was a Polish-French chemist who made groundbreaking discoveries in physics. She won two Nobel Prizes, and the second one was for the discovery of radium and polonium.";
export const DOCUMENT = '{"name": "Tom the cat", "age": 12, "likes": ["fresh fish", "warm blankets"]}';
export const note = (number) => JSON.stringify({ path: `horses-${number}.txt`, text: `Horse ${number} is a large animal that eats grass and can run for hours.` });
export const FINAL = "The notes are saved, and nothing else is left to do.";
const USAGE = [50, 20];

/** The replies by the kind of conversation, which the user's message names. */
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

/** The finish reason of a cut reply: its connection breaks with `undefined`, and its stream just ends with null. */
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

/** Starts the server; `requests` has the bodies that it received. */
export async function scripted() {
  const requests = [];
  const server = createServer(async (request, response) => {
    let raw = "";
    for await (const part of request) raw += part;
    const body = JSON.parse(raw);
    requests.push(body);
    for (const call of body.messages.flatMap((message) => message.tool_calls ?? [])) JSON.parse(call.function.arguments || "{}");
    const { text, calls, name = "save_note", finish, status } = reply(server, body);
    if (status) {
      response.writeHead(status, { "content-type": "application/json" });
      return response.end('{"error": {"message": "refused", "type": "invalid_request_error"}}');
    }
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
