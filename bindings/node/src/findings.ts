/**
 * Handles the findings of a team of agents: instructions for prompts, estimates, checks, plans and reports that disclose gaps. Results
 * have the field names of the JSON that the command writes.
 */

import { makeSync, type Request } from "./core.js";
import type { Input } from "./native.js";

/** The size of results before and after compression, in tokens. */
export interface Receipt {
  budget_left: number;
  /** 40 % of `budget_left`. */
  limit_tokens: number;
  findings_before: number;
  estimated_tokens_before: number;
  compressed: boolean;
  findings: number;
  estimated_tokens: number;
  /** The number of findings that were merged with another one of the same weakness and file. */
  joined: number;
  /** The number of parts that the compressions removed. */
  dropped: { titles: number; evidence_lines: number; flow_steps: number };
  /** The counted tokens of the text; null for an estimate. */
  tokens: number | null;
  tokenizer: string;
  fits: boolean;
}

export interface Place {
  /** From 1. */
  line: number;
  /** From 1, in characters. */
  column: number;
  /** From 0, in UTF-8 bytes. */
  byte: number;
}

export interface CheckedFinding {
  id: string;
  state: "complete" | "truncated" | "needs_reaudit";
  originally_truncated: boolean;
  missing: string[];
  position: Place;
  finding: any;
}

export interface CheckedResult {
  agent_id: string | null;
  dimensions: string[];
  declared_findings: number | null;
  cut: "whole" | "mild" | "severe";
  truncated: boolean;
  begins: Place | null;
  ends: Place;
  complete: number;
  truncated_findings: number;
  needs_reaudit: number;
  discarded: number;
  /** The number of findings to expect, and what it is based on; null if nothing states it. */
  expected: { findings: number; basis: "checkpoint" | "declared_findings" | "highest_id" } | null;
  lost: number;
  findings: CheckedFinding[];
}

export interface Transcript {
  results: CheckedResult[];
  checkpoints: any[];
  /** Text that was ignored or not understood: `position`, `kind`, `text`, `message`. */
  remarks: any[];
  remarks_omitted: number;
}

export interface Plan {
  /** Whether nothing is left to do. */
  done: boolean;
  /** The runs to start now: `agent_id`, `kind`, `round`, `dimensions`, `max_turns`, `max_findings`. */
  runs: any[];
  agents: any[];
  /** The names of results whose agent is unknown. */
  not_attributed: string[];
}

export interface MergedFindings {
  /** The findings in the canonical form, with an end marker only if nothing is missing. */
  text: string;
  markdown: string;
  /** The findings, and the disclosure of everything that was cut, lost or not examined. */
  report: any;
}

export interface ProtocolOptions {
  agentId?: string;
  dimensions?: readonly string[];
  form?: "text" | "jsonl";
  /** In tokens. */
  budgetLeft?: number;
  maxTurns?: number;
  maxFindings?: number;
}

const request = <T>(name: string, inputs: Input[], options: object): Request<T> => ({
  function: `findings_${name}`,
  inputs,
  options,
  read: (answer) => answer,
});

/** Returns the instructions for an agent's prompt: markers, estimate, compression and checkpoints. */
export const protocol = makeSync((options: ProtocolOptions = {}) => request<string>("protocol", [], options));

/** Estimates whether a result fits: 300 tokens per finding and 200 more must be at most 40 % of the remaining budget. */
export const estimate = makeSync((findings: number, budgetLeft: number) => request<Receipt>("estimate", [], { findings, budgetLeft }));

/** Rewrites a complete result, compressed if it would not fit. Throws `Malformed` for a cut one, which would look complete. */
export const fit = makeSync((draft: Input, budgetLeft: number) =>
  request<{ receipt: Receipt; text: string; findings: any[] }>("fit", [draft], { budgetLeft }),
);

/** Reads an agent's transcript: its results, how complete each finding is, its checkpoints, and the ignored text. */
export const check = makeSync((transcript: Input) => request<Transcript>("check", [transcript], {}));

/** Transcripts by name. The name may identify the agent. */
export type Results = Readonly<Record<string, Input>>;

/** A `team` is `{ agents: [{ agent_id, dimensions, max_turns }], rounds, emergency }`. */
export interface TeamOptions {
  team?: object;
  /** Whether agents without a result may still be running. Otherwise a missing result is a severe cut. */
  running?: boolean;
}

const ofTeam = <T>(name: string, results: Results, options: TeamOptions): Request<T> =>
  request(name, Object.values(results), { origins: Object.keys(results), ...options });

/** Plans which agents run again, and with which dimensions. Throws `InvalidInput` for an invalid team. */
export const plan = makeSync((results: Results, options: TeamOptions = {}) => ofTeam<Plan>("plan", results, options));

/** Merges the results of all agents and rounds into one list, with its report. */
export const merge = makeSync((results: Results, options: TeamOptions = {}) => ofTeam<MergedFindings>("merge", results, options));

/** Returns the final report in Markdown. It discloses all cut agents, the gaps that may remain, and the lost findings. */
export function report(results: Results, options: TeamOptions = {}): string {
  return merge(results, options).markdown;
}
