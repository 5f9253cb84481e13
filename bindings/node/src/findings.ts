/**
 * What a team of agents hands over: instructions for a prompt, estimates, checks, plans, and reports that disclose every gap. What is
 * answered has the names of its JSON form, as the command writes it.
 */

import { now, type Request } from "./core.js";
import type { Input } from "./native.js";

/** An estimate before a result is written, and what became of it. */
export interface Receipt {
  budget_left: number;
  /** 40 % of what is left. */
  limit_tokens: number;
  findings_before: number;
  estimated_tokens_before: number;
  compressed: boolean;
  findings: number;
  estimated_tokens: number;
  /** Findings joined with another one of the same weakness and file. */
  joined: number;
  /** The number of parts that the compressions left out. */
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
  /** How many findings there must have been, and how that is known. */
  expected: { findings: number; basis: "checkpoint" | "declared_findings" | "highest_id" } | null;
  lost: number;
  findings: CheckedFinding[];
}

export interface Transcript {
  results: CheckedResult[];
  checkpoints: any[];
  /** What was ignored or not understood: `position`, `kind`, `text`, `message`. */
  remarks: any[];
  remarks_omitted: number;
}

export interface Plan {
  /** Nothing is left to do. */
  done: boolean;
  /** What is to be done now: `agent_id`, `kind`, `round`, `dimensions`, `max_turns`, `max_findings`. */
  runs: any[];
  agents: any[];
  /** Results that do not say whose they are. */
  not_attributed: string[];
}

export interface MergedFindings {
  /** The findings in the canonical form, with an end marker only if nothing is missing. */
  text: string;
  markdown: string;
  /** The findings, and the disclosure of what was cut, lost and not looked into. */
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

/** The instructions for an agent's prompt: markers, estimate, compression and checkpoints. */
export const protocol = now((options: ProtocolOptions = {}) => request<string>("protocol", [], options));

/** Estimates a result before it is written: 300 tokens a finding and 200 more, against 40 % of what is left. */
export const estimate = now((findings: number, budgetLeft: number) => request<Receipt>("estimate", [], { findings, budgetLeft }));

/** Writes a whole result again, compressed if it would not fit. Throws `Malformed` for a cut one: it would look whole. */
export const fit = now((draft: Input, budgetLeft: number) =>
  request<{ receipt: Receipt; text: string; findings: any[] }>("fit", [draft], { budgetLeft }),
);

/** Reads an agent's transcript: its results, which findings are complete, its checkpoints, and what had to be ignored. */
export const check = now((transcript: Input) => request<Transcript>("check", [transcript], {}));

/** Transcripts by name; an agent is recognised by its own name in it, too. */
export type Results = Readonly<Record<string, Input>>;

/** A `team` is `{ agents: [{ agent_id, dimensions, max_turns }], rounds, emergency }`. */
export interface TeamOptions {
  team?: object;
  /** Agents that have handed over nothing may still be at work; otherwise that is a severe cut. */
  running?: boolean;
}

const ofTeam = <T>(name: string, results: Results, options: TeamOptions): Request<T> =>
  request(name, Object.values(results), { origins: Object.keys(results), ...options });

/** Says who does what again. Throws `InvalidInput` for a team that cannot be read. */
export const plan = now((results: Results, options: TeamOptions = {}) => ofTeam<Plan>("plan", results, options));

/** Merges the results of all agents and rounds into one list, with its report. */
export const merge = now((results: Results, options: TeamOptions = {}) => ofTeam<MergedFindings>("merge", results, options));

/** The final report in Markdown. After a cut it always lists who was cut, the gaps that may remain, and what was lost. */
export function report(results: Results, options: TeamOptions = {}): string {
  return merge(results, options).markdown;
}
