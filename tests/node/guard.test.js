"use strict";
// Tests the context window guard for third-party schedulers.
const { ContextWindowGuard, guard } = require("endmark/guard");
const { InvalidInput } = require("endmark");

const WHOLE = "# Plan\n\nWe ship on Friday, after the last test.\n\n## Risks\n\nThe harbour may be closed for two days.\n";
const STUB = "# Plan\n\nWe ship on Friday.\n\n## Risks\n\nTBD\n";
const config = { minLines: 3, requiredSections: ["Risks"], forbiddenPhrases: ["we hope"], tokenUsageWarningThreshold: 0.85 };
const line = (event) => `${JSON.stringify(event)}\n`;
const used = (tokens) =>
  line({ type: "system", subtype: "init", session_id: "s1", model: "claude-sonnet-4-5" }) +
  line({ type: "assistant", session_id: "s1", message: { id: `m${tokens}`, model: "claude-sonnet-4-5", content: [], stop_reason: "end_turn", usage: { input_tokens: tokens, output_tokens: 100 } } });
const done = line({ type: "result", subtype: "success", is_error: false, result: "Done.", stop_reason: "end_turn", session_id: "s1" });

test("each outcome leads to the documented decision", () => {
  const outcome = (artifact, { tokens = 1_000, maxAttempts = 2, ...end } = {}) => {
    const run = new ContextWindowGuard(config).run({ agent: "claude", maxAttempts, limitTokens: 200_000 });
    expect(run.started().events).toEqual(["agent_run.started"]);
    const risk = run.output(used(tokens) + done).events;
    const ended = run.ended({ artifact, exitCode: 0, ...end });
    return [ended.state, ended.reason, ended.contextExhaustionRisk, [...risk, ...ended.events].map((name) => name.slice(10)).join()];
  };
  expect(outcome(WHOLE)).toEqual(["succeeded", null, false, "succeeded"]);
  expect(outcome(STUB)).toEqual(["retry-queued", "CONTEXT_GUARD_FAIL", false, "retry_queued"]);
  expect(outcome(undefined)).toEqual(["retry-queued", "CONTEXT_GUARD_FAIL", false, "retry_queued"]);
  expect(outcome(STUB, { maxAttempts: 1 })).toEqual(["released", "CONTEXT_EXHAUSTION", false, "context_exhausted,released"]);
  expect(outcome(WHOLE, { tokens: 180_000 })).toEqual(["succeeded", null, true, "context_risk,succeeded"]);
  expect(outcome(STUB, { tokens: 180_000 })).toEqual(["released", "CONTEXT_EXHAUSTION", true, "context_risk,context_exhausted,released"]);
});

test("the retry prompt lists what the artifact lacks, and tokens add up", () => {
  const run = new ContextWindowGuard({ ...config, name: "plan.md" }).run({ agent: "claude" });
  run.started();
  for (const byte of Buffer.from(used(1_000) + done)) run.output(Uint8Array.of(byte));
  const first = run.ended({ artifact: STUB, exitCode: 0 });
  expect([first.step, first.session, first.verdict]).toEqual(["start", "s1", "whole"]);
  expect(first.retryPrompt).toMatch(/`plan.md` is not finished \(attempt 1 of 3\)/);
  expect(first.report.findings[0].check).toBe("placeholder");
  run.started();
  run.output(used(2_000) + done);
  const second = run.ended({ artifact: WHOLE, exitCode: 0 });
  expect([second.state, second.step, second.attempt, second.retryPrompt]).toEqual(["succeeded", "done", 2, null]);
  expect(second.tokenUsage).toEqual({ input: 3_000, output: 200, total: 3_200 });
});

test("a custom agent reports its usage, and its own claims do not count", () => {
  const run = new ContextWindowGuard(config).run({ maxAttempts: 1 });
  run.started();
  const usage = { input: 400_000, output: 2_000, largestCall: 390_000, model: "gpt-5" };
  expect(run.output("", { usage })).toMatchObject({ contextExhaustionRisk: true, events: ["agent_run.context_risk"] });
  expect(run.ended({ artifact: WHOLE, exitCode: 0, usage })).toMatchObject({ state: "succeeded", tokenUsage: { total: 402_000 } });
  const cut = new ContextWindowGuard(config).run({ agent: "claude" });
  cut.started();
  cut.output(line({ type: "result", subtype: "success", is_error: false, result: "", stop_reason: "tool_use", session_id: "s1" }));
  expect(cut.ended({ artifact: WHOLE, exitCode: 0 })).toMatchObject({ verdict: "truncated", state: "retry-queued" });
  expect(cut.interrupted()).toMatchObject({ state: "released", reason: "INTERRUPTED" });
});

test("an agent over its time limit must be stopped", () => {
  const run = new ContextWindowGuard(config).run({ maxSeconds: 60 });
  run.started();
  expect(run.output("still at work\n", { seconds: 30 }).step).toBe("wait");
  expect(run.output("still at work\n", { seconds: 61 }).step).toBe("stop");
  expect(run.ended({ artifact: STUB, stopped: "ceiling", seconds: 61 })).toMatchObject({ state: "released", reason: "BUDGET" });
});

test("an invalid config is rejected", () => {
  expect(() => new ContextWindowGuard({ tokenUsageWarningThreshold: 2 }).run()).toThrow(InvalidInput);
  expect(() => new ContextWindowGuard({ template: { name: "t.md", text: "# T\n" } }).run()).toThrow(/successCriteria/);
  expect(() => new ContextWindowGuard(config).run({ agent: "other" })).toThrow(/claude/);
  expect(() => new ContextWindowGuard(config).run({ maxAttempts: 0 })).toThrow(InvalidInput);
  const template = { name: "t.md", text: "---\nsuccessCriteria:\n  minLines: 3\n  requiredSections: [Risks]\n---\n# Plan\n" };
  expect(guard(STUB, { template }).verdict).toBe("wrapped_up");
});
