// The Google Gen AI library for JavaScript.

import { ApiError, GoogleGenAI } from "@google/genai";
import { serve, told } from "./lines.mjs";

function parts(reply) {
  const all = reply.candidates?.[0]?.content?.parts ?? [];
  const called = all.filter((part) => part.functionCall).map(({ functionCall }) => functionCall);
  const text = all.map((part) => part.text ?? "").join("");
  return { text, calls: called.map(({ name, args }) => [name, JSON.stringify(args)]) };
}

const finish = (reply) => reply.candidates?.[0]?.finishReason ?? null;

const seen = ({ sdkHttpResponse, ...reply }) => told(reply);

async function ask({ base_url, body, headers, stream, timeout, cancel_after }) {
  const httpOptions = { baseUrl: base_url, headers, timeout: timeout * 1000, retryOptions: { attempts: 1 } };
  const client = new GoogleGenAI({ apiKey: "not-needed", httpOptions });
  if (!stream) {
    const reply = await client.models.generateContent(body);
    const output = reply.usageMetadata?.candidatesTokenCount;
    return { ...parts(reply), finish: finish(reply), output, whole: seen(reply) };
  }
  const stop = new AbortController();
  const answer = { text: "", calls: [], finish: null, output: null, whole: [] };
  let events = 0;
  const config = { ...body.config, abortSignal: stop.signal };
  for await (const chunk of await client.models.generateContentStream({ ...body, config })) {
    events += 1;
    if (events === cancel_after) {
      stop.abort();
      break;
    }
    const { text, calls } = parts(chunk);
    answer.text += text;
    answer.calls.push(...calls);
    answer.finish = finish(chunk) ?? answer.finish;
    answer.output = chunk.usageMetadata?.candidatesTokenCount ?? answer.output;
    answer.whole.push(seen(chunk));
  }
  return answer;
}

await serve(ask, (error) => error instanceof ApiError);
