// Code of users with the other frameworks, which is only type-checked.
import * as ai6 from "ai-6";
import * as ai7 from "ai-7";
import { createAgent } from "langchain";
import { createOpenAI as openai6 } from "openai-6";
import { createOpenAI as openai7 } from "openai-7";
import { createEndmark } from "endmark/ai-sdk";
import { Agent, OpenAIProvider, Runner } from "@openai/agents";
import { Meter } from "endmark";
import { endmarkMiddleware } from "endmark/langchain";
import { createEndmark as forAgents } from "endmark/openai-agents";

export async function models(): Promise<string[]> {
  const endmark = createEndmark();
  const six = ai6.wrapLanguageModel({ model: openai6().chat("gpt-5"), middleware: [endmark.middleware] });
  const seven = ai7.wrapLanguageModel({ model: openai7().chat("gpt-5"), middleware: endmark.middleware });
  const prompt = "Hello";
  const first = await ai6.generateText({ model: six, tools: { ...endmark.tools }, experimental_repairToolCall: endmark.repairToolCall(six), prompt });
  const second = await ai7.generateText({ model: seven, tools: { ...endmark.tools }, repairToolCall: endmark.repairToolCall(seven), prompt });
  const agent = createAgent({ model: "openai:gpt-5", tools: [], middleware: [endmarkMiddleware({ maxResultChars: 10_000 })] });
  const agents = forAgents({ meter: new Meter({ maxTokens: 850_000 }), maxResultChars: 10_000 });
  const runner = new Runner({ modelProvider: agents.wrap(new OpenAIProvider()) });
  await runner.run(new Agent({ name: "sre", tools: [agents.readTool] }), prompt);
  return [first.text, second.text, typeof agent];
}
