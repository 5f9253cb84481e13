/** What the components for frameworks have in common. */

import { detect } from "./texts.js";

export function isWhole(json: string): boolean {
  return detect(json, "json").verdict === "whole";
}

/** The sum of two usages, number by number, in whatever form they have. */
export function sum(first: any, second: any): any {
  if (typeof first === "number" && typeof second === "number") return first + second;
  if (first === null || second === null || typeof first !== "object" || typeof second !== "object") return first ?? second;
  const names = [...new Set([...Object.keys(first), ...Object.keys(second)])];
  return Object.fromEntries(names.map((name) => [name, sum(first[name], second[name])]));
}
