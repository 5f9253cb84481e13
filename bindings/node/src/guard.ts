/** Whether an artifact is finished, or its author just stopped. */

import { camel, later, now, type Request } from "./core.js";

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

const judging = (artifact: string, options: GuardOptions = {}): Request<GuardReport> => ({
  function: "guard",
  inputs: [artifact],
  options,
  read: (answer) => ({ ...camel(answer), findings: answer.findings.map(camel) }),
});

/**
 * Checks an artifact: placeholders, missing or empty sections, announced rests, omitted code, text that breaks off. Throws
 * `InvalidInput` for criteria that cannot be read.
 */
export const guard = now(judging);

/** The same on a thread of Node's pool. */
export const guardLater = later(judging);
