// Code of users with the types of each framework, which is only type-checked.
import * as ai5 from "ai";
import { createOpenAI as openai5 } from "openai-5";
import {
  cap, count, detect, detectTruncation, findings, Log, Meter, Outputs, Pipeline, promises, resumeIfTruncated, type Ask, type Detection, type Reply,
} from "endmark";
import { createEndmark } from "endmark/ai-sdk";
import { answers, CommandFailed } from "endmark/envelope";
import { ContextWindowGuard, type ContextWindowGuardConfig } from "endmark/guard";
import { MAX_RESUME_ATTEMPTS, PartialCompletionLog, PartialCompletionResumeExhaustedError, PartialCompletionResumeProtocol } from "endmark/protocol";

export async function models(): Promise<string> {
  const endmark = createEndmark({ maxResultChars: 10_000, outputs: new Outputs("outputs.db") });
  const model = ai5.wrapLanguageModel({ model: openai5().chat("gpt-5"), middleware: endmark.middleware });
  const wrapped = endmark.wrap(openai5().chat("gpt-5"));
  await ai5.generateText({ model: wrapped, prompt: "Hello" });
  return (await ai5.generateText({ model, tools: { ...endmark.tools }, experimental_repairToolCall: endmark.repairToolCall(model), prompt: "Hello" })).text;
}

export async function functions(ask: (request: Ask) => Promise<Reply>): Promise<number> {
  const found: Detection = detect("[1", "json");
  const cut = detectTruncation(new Uint8Array([91]));
  const { text } = await resumeIfTruncated(ask, { text: "[1", stop: "length" }, { log: new Log("log.db"), format: null });
  const outcome = await new Pipeline({ schema: { type: "array" } }).run(() => ({ text: "2]", stop: "stop" }), { text: "[1, ", stop: "length" });
  const meter: Meter = Meter.fromEnvironment();
  const call = meter.beforeCall("gpt-5", { promptTokens: 1, maxOutputTokens: 2 });
  meter.afterCall(call, { tokens: { prompt: 1 } });
  const later: Detection = await promises.detect(text, "auto", { strict: true });
  const receipt = findings.estimate(1, 2);
  return (found.truncationIndex ?? 0) + (cut?.truncationIndex ?? 0) + outcome.attempts + cap("x").text.length + count("x", "gpt-5").tokens + (later.index ?? 0) + receipt.findings;
}

export async function protocol(client: { generate(prompt: string): Promise<string> }): Promise<string> {
  const found = PartialCompletionResumeProtocol.detectTruncation("[");
  if (found.truncated) console.log(found.lastValidToken, found.truncationIndex, MAX_RESUME_ATTEMPTS);
  const handler = { handle: async (raw: string): Promise<string> => raw };
  const named = { invoke: async (prompt: string): Promise<string> => prompt };
  await PartialCompletionResumeProtocol.resumeIfTruncated("[", named, { method: "invoke" });
  // @ts-expect-error a client without a known method needs the option
  await PartialCompletionResumeProtocol.resumeIfTruncated("[", { ask: 5 }).catch(() => {});
  try {
    return await PartialCompletionResumeProtocol.before(handler, client, { logger: new PartialCompletionLog("log.db") })("[");
  } catch (error) {
    return error instanceof PartialCompletionResumeExhaustedError ? `${error.attempts} ${error.mergedRaw}` : "";
  }
}

export function runs(): string {
  const config: ContextWindowGuardConfig = { minLines: 1, requiredSections: ["Risks"], forbiddenPhrases: ["x"], tokenUsageWarningThreshold: 0.85 };
  const run = new ContextWindowGuard(config).run({ agent: "codex" });
  const state: "queued" | "running" | "retry-queued" | "succeeded" | "released" | "failed" = run.started().state;
  return `${state} ${run.ended({ artifact: "# x" }).tokenUsage.total}`;
}

export const command = answers(
  (name: string, options: { body: string }) => {
    if (!options.body) throw new CommandFailed("no_body", "there is no body", { exitCode: 2, hint: "give --body" });
    return { name };
  },
  { maxBytes: { body: 100 } },
);

// @ts-expect-error an unknown format
detect("x", "yaml");
