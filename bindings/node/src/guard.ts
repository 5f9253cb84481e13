/** Checks whether an artifact is finished, and supervises runs of agents. */

import { camelNames, makeAsync, makeSync, snakeNames, Stateful, type Request } from "./core.js";
import type { Input } from "./native.js";

export interface GuardFinding {
  /** The check, such as `section_missing`, `placeholder` or `mid_sentence`. */
  readonly check: string;
  /** From 1. */
  readonly line: number;
  /** From 1, in characters. */
  readonly column: number;
  readonly text: string;
  readonly why: string;
  readonly fix: string;
}

export interface GuardReport {
  readonly verdict: "whole" | "wrapped_up" | "truncated";
  /** In the order of the text, at most 1,000. */
  readonly findings: readonly GuardFinding[];
  readonly unlisted: number;
}

/** The criteria for an artifact. */
export interface GuardCriteria {
  /** The minimum number of lines, without blank lines and front matter. */
  minLines?: number | undefined;
  /** Required headings, at any level unless they are written with `#`. */
  requiredSections?: readonly string[] | undefined;
  forbiddenPhrases?: readonly string[] | undefined;
  /** Whether only these phrases are forbidden, and not the built-in ones. */
  forbiddenPhrasesOnly?: boolean | undefined;
}

export interface GuardOptions extends GuardCriteria {
  /** The artifact's file name, which shows whether it is code. */
  name?: string | undefined;
  /** A Markdown, YAML, TOML or JSON file with the criteria. */
  template?: { name: string; text: string } | undefined;
}

const toReport = (report: any): GuardReport => ({ ...camelNames(report), findings: report.findings.map(camelNames) });

const judging = (artifact: string, options: GuardOptions = {}): Request<GuardReport> => ({
  function: "guard",
  inputs: [artifact],
  options,
  read: toReport,
});

/**
 * Checks an artifact for placeholders, missing or empty sections, postponed parts, omitted code and text that breaks off. Throws
 * `InvalidInput` for invalid criteria.
 */
export const guard = makeSync(judging);

/** Does the same as `guard` on a thread of Node's pool. */
export const guardLater = makeAsync(judging);

/** The criteria for an agent's artifacts, and the share of the model's context above which a run is at risk. */
export interface ContextWindowGuardConfig extends GuardOptions {
  /** The share of the context, by default 0.85. */
  tokenUsageWarningThreshold?: number | undefined;
}

export type AgentRunState = "queued" | "running" | "retry-queued" | "succeeded" | "released" | "failed";
export type AgentRunEvent =
  | "agent_run.started"
  | "agent_run.context_risk"
  | "agent_run.retry_queued"
  | "agent_run.context_exhausted"
  | "agent_run.succeeded"
  | "agent_run.released"
  | "agent_run.failed";

export interface RunOptions {
  /** The agent whose output is read: `claude` (with `--output-format stream-json`), `codex`, `gemini`, `opencode`; `plain` for any other command. */
  agent?: "claude" | "codex" | "gemini" | "opencode" | "plain" | undefined;
  /** The maximum number of attempts, by default 3. */
  maxAttempts?: number | undefined;
  maxSeconds?: number | undefined;
  /** The context limit of the model, which overrides the agent's own information and the table of models. */
  limitTokens?: number | undefined;
}

/** The usage of your own agent in its current attempt. */
export interface AttemptUsage {
  input?: number | undefined;
  output?: number | undefined;
  /** The largest single call, input and output together, because the sum of all calls does not show how full the context is. */
  largestCall?: number | undefined;
  model?: string | undefined;
}

export interface Progress {
  /** The duration of the run with all its attempts. */
  seconds?: number | undefined;
  usage?: AttemptUsage | undefined;
}

export interface AttemptEnd extends Progress {
  /** The artifact's text. Leave it out if there is no artifact. */
  artifact?: string | undefined;
  exitCode?: number | undefined;
  signal?: number | undefined;
  /** The reason for which the agent was stopped. */
  stopped?: "silence" | "time" | "ceiling" | "lingering" | undefined;
  /** The artifact's path, as the agent sees it. */
  path?: string | undefined;
  /** The task, for an agent that does not remember its last attempt. */
  task?: string | undefined;
}

/** The current state of a run. */
export interface AgentRunSnapshot {
  readonly state: AgentRunState;
  /** The error, such as `CONTEXT_GUARD_FAIL`, `CONTEXT_EXHAUSTION`, `BUDGET`, `STALLED` or `AGENT_CRASH`. */
  readonly reason: string | null;
  /** The next action; `stop` means: end the agent, because the run exceeds its time limit. */
  readonly step: "start" | "wait" | "stop" | "done";
  /** The current attempt, from 1; 0 before the first. */
  readonly attempt: number;
  /** The events that the call caused. */
  readonly events: readonly AgentRunEvent[];
  readonly tokenUsage: { readonly input: number; readonly output: number; readonly total: number };
  readonly usd: string | null;
  /** Whether a call used more of the model's context than the threshold; null if unknown. */
  readonly contextExhaustionRisk: boolean | null;
  /** The agent's own session id, with which the session can be continued. */
  readonly session: string | null;
}

export interface EndedAttempt extends AgentRunSnapshot {
  /** How the attempt ended, regardless of what the agent reports: `whole`, `truncated`, `wrapped_up`, `context_exhausted`, `crashed`, … */
  readonly verdict: string;
  readonly evidence: readonly string[];
  readonly report: GuardReport;
  /** The prompt of the next attempt, if there is one. */
  readonly retryPrompt: string | null;
}

/** Checks the artifacts of agents against a config. */
export class ContextWindowGuard {
  constructor(readonly config: ContextWindowGuardConfig) {}

  /** Starts a supervised run for your own scheduler. The run decides what follows each attempt. */
  run(options: RunOptions = {}): AgentRun {
    return new AgentRun(this.config, options);
  }
}

/** One supervised run. It starts no process: report what happens, and follow `step`. */
export class AgentRun {
  readonly #run: Stateful;

  /** Throws `InvalidInput` for an invalid config. */
  constructor(config: ContextWindowGuardConfig, { maxAttempts = 3, ...options }: RunOptions = {}) {
    this.#run = new Stateful("agent_run", [], { criteria: snakeNames(config), maxAttempts, ...options });
  }

  /** Reports that an attempt begins. */
  started(): AgentRunSnapshot {
    return snapshot(this.#run.call("started"));
  }

  /** Reports the agent's output, in parts of any size. */
  output(part: Input = "", { usage, ...options }: Progress = {}): AgentRunSnapshot {
    return snapshot(this.#run.call("output", [part], { ...options, usage: usage && snakeNames(usage) }));
  }

  /** Reports that the attempt has ended. */
  ended({ artifact, usage, ...options }: AttemptEnd = {}): EndedAttempt {
    const inputs = artifact === undefined ? [] : [artifact];
    const { ended, ...shown } = this.#run.call("ended", inputs, { ...options, usage: usage && snakeNames(usage) });
    return { ...snapshot(shown), ...camelNames(ended), report: toReport(ended.report) };
  }

  /** Reports that the agent could not be started. */
  notStarted(): AgentRunSnapshot {
    return snapshot(this.#run.call("not_started"));
  }

  /** Reports that the run was cancelled. */
  interrupted(): AgentRunSnapshot {
    return snapshot(this.#run.call("interrupted"));
  }
}

function snapshot({ ended: _, ...shown }: any): AgentRunSnapshot {
  return camelNames(shown);
}
