/** Whether an artifact is finished, or its author just stopped. */

import { camel, later, now, snake, Stateful, type Request } from "./core.js";
import type { Input } from "./native.js";

export interface GuardFinding {
  /** What was looked for, such as `section_missing`, `placeholder` or `mid_sentence`. */
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

/** What an artifact must have. */
export interface GuardCriteria {
  /** Lines that are not blank, without front matter. */
  minLines?: number | undefined;
  /** Headings, at any level unless they are written with `#`. */
  requiredSections?: readonly string[] | undefined;
  forbiddenPhrases?: readonly string[] | undefined;
  /** Replaces the known phrases of a handoff instead of adding to them. */
  forbiddenPhrasesOnly?: boolean | undefined;
}

export interface GuardOptions extends GuardCriteria {
  /** The artifact's file name, by which code is recognised. */
  name?: string | undefined;
  /** A Markdown, YAML, TOML or JSON file with the criteria. */
  template?: { name: string; text: string } | undefined;
}

const reported = (report: any): GuardReport => ({ ...camel(report), findings: report.findings.map(camel) });

const judging = (artifact: string, options: GuardOptions = {}): Request<GuardReport> => ({
  function: "guard",
  inputs: [artifact],
  options,
  read: reported,
});

/**
 * Checks an artifact: placeholders, missing or empty sections, announced rests, omitted code, text that breaks off. Throws
 * `InvalidInput` for criteria that cannot be read.
 */
export const guard = now(judging);

/** The same on a thread of Node's pool. */
export const guardLater = later(judging);

/** What the artifacts of an agent must have, and from which share of its model's context on a run is at risk. */
export interface ContextWindowGuardConfig extends GuardOptions {
  /** By default 0.85. */
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
  /** Whose stream is read: `claude` (with `--output-format stream-json`), `codex`, `gemini`, `opencode`; `plain` for any other command. */
  agent?: "claude" | "codex" | "gemini" | "opencode" | "plain" | undefined;
  /** How often the agent is started at most, by default 3. */
  maxAttempts?: number | undefined;
  maxSeconds?: number | undefined;
  /** The model's limit, if it is known better than from the agent or the table of models. */
  limitTokens?: number | undefined;
}

/** What an agent of your own used in its attempt so far. */
export interface AttemptUsage {
  input?: number | undefined;
  output?: number | undefined;
  /** The largest single call, input and output together: the sum of all says nothing about the context. */
  largestCall?: number | undefined;
  model?: string | undefined;
}

export interface Progress {
  /** How long the run has taken, with all its attempts. */
  seconds?: number | undefined;
  usage?: AttemptUsage | undefined;
}

export interface AttemptEnd extends Progress {
  /** The artifact's text; without it there is none. */
  artifact?: string | undefined;
  exitCode?: number | undefined;
  signal?: number | undefined;
  /** Why the agent was made to end. */
  stopped?: "silence" | "time" | "ceiling" | "lingering" | undefined;
  /** The artifact's path, as the agent knows it. */
  path?: string | undefined;
  /** The task, for an agent that knows nothing of its last attempt any more. */
  task?: string | undefined;
}

/** A run as it is now. */
export interface AgentRunSnapshot {
  readonly state: AgentRunState;
  /** Such as `CONTEXT_GUARD_FAIL`, `CONTEXT_EXHAUSTION`, `BUDGET`, `STALLED` or `AGENT_CRASH`. */
  readonly reason: string | null;
  /** What to do next; `stop` ends the agent, because the run is over its time. */
  readonly step: "start" | "wait" | "stop" | "done";
  /** From 1; 0 before the first. */
  readonly attempt: number;
  /** What the call brought about. */
  readonly events: readonly AgentRunEvent[];
  readonly tokenUsage: { readonly input: number; readonly output: number; readonly total: number };
  readonly usd: string | null;
  /** Whether a call used more of the model's context than the threshold; null if that is not known. */
  readonly contextExhaustionRisk: boolean | null;
  /** The agent's own session, by which it can be continued. */
  readonly session: string | null;
}

export interface EndedAttempt extends AgentRunSnapshot {
  /** How the attempt ended, whatever the agent says: `whole`, `truncated`, `wrapped_up`, `context_exhausted`, `crashed`, … */
  readonly verdict: string;
  readonly evidence: readonly string[];
  readonly report: GuardReport;
  /** The prompt of the next attempt, if there is one. */
  readonly retryPrompt: string | null;
}

/** Holds the artifacts of agents to a config. */
export class ContextWindowGuard {
  constructor(readonly config: ContextWindowGuardConfig) {}

  /** A supervised run for a scheduler of your own: it decides what follows each attempt. */
  run(options: RunOptions = {}): AgentRun {
    return new AgentRun(this.config, options);
  }
}

/** One run. It starts no process: report what happens, and do what `step` says. */
export class AgentRun {
  readonly #run: Stateful;

  /** Throws `InvalidInput` for a config that cannot be read. */
  constructor(config: ContextWindowGuardConfig, { maxAttempts = 3, ...options }: RunOptions = {}) {
    this.#run = new Stateful("agent_run", [], { criteria: snake(config), maxAttempts, ...options });
  }

  /** An attempt begins. */
  started(): AgentRunSnapshot {
    return snapshot(this.#run.call("started"));
  }

  /** Takes what the agent printed, in parts of any size. */
  output(part: Input = "", { usage, ...options }: Progress = {}): AgentRunSnapshot {
    return snapshot(this.#run.call("output", [part], { ...options, usage: usage && snake(usage) }));
  }

  /** The attempt is over. */
  ended({ artifact, usage, ...options }: AttemptEnd = {}): EndedAttempt {
    const inputs = artifact === undefined ? [] : [artifact];
    const { ended, ...shown } = this.#run.call("ended", inputs, { ...options, usage: usage && snake(usage) });
    return { ...snapshot(shown), ...camel(ended), report: reported(ended.report) };
  }

  /** The agent could not be started. */
  notStarted(): AgentRunSnapshot {
    return snapshot(this.#run.call("not_started"));
  }

  /** The run is given up from outside. */
  interrupted(): AgentRunSnapshot {
    return snapshot(this.#run.call("interrupted"));
  }
}

function snapshot({ ended: _, ...shown }: any): AgentRunSnapshot {
  return camel(shown);
}
