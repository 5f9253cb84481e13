// What users of the other frameworks write, checked by the compiler alone.
import * as ai6 from "ai-6";
import * as ai7 from "ai-7";
import { createAgent } from "langchain";
import { createOpenAI as openai6 } from "openai-6";
import { createOpenAI as openai7 } from "openai-7";
import { createEndmark } from "endmark/ai-sdk";
import { endmarkMiddleware } from "endmark/langchain";

export async function models(): Promise<string[]> {
  const endmark = createEndmark();
  const six = ai6.wrapLanguageModel({ model: openai6().chat("gpt-5"), middleware: [endmark.middleware] });
  const seven = ai7.wrapLanguageModel({ model: openai7().chat("gpt-5"), middleware: endmark.middleware });
  const prompt = "Hello";
  const first = await ai6.generateText({ model: six, tools: { ...endmark.tools }, experimental_repairToolCall: endmark.repairToolCall(six), prompt });
  const second = await ai7.generateText({ model: seven, tools: { ...endmark.tools }, repairToolCall: endmark.repairToolCall(seven), prompt });
  const agent = createAgent({ model: "openai:gpt-5", tools: [], middleware: [endmarkMiddleware({ maxResultChars: 10_000 })] });
  return [first.text, second.text, typeof agent];
}
