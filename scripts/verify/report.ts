/** The report of `bun run verify:apple`, as Markdown to paste. */

import type { Machine } from "./machine.ts";
import { type Outcome, verdicts } from "./outcome.ts";
import type { Assumption } from "./page.ts";

/** A part of the command, such as the suite. */
export interface Part {
  readonly name: string;
  readonly passed: boolean;
  readonly detail: string;
}

export interface Verified {
  readonly assumption: Assumption;
  readonly outcome: Outcome;
}

export const softwareNotice =
  "**This ran on the software device: it tests the command, and confirms nothing about Apple's hardware.**";

export function formatReport(machine: Machine, parts: readonly Part[], verified: readonly Verified[]): string {
  const words = verdicts[machine.device.isSoftware ? "software" : "apple"];
  const facts = machine.facts.map(([what, is]) => `- ${what}: ${is}`);
  const lines = ["# `bun run verify:apple`", "", ...(machine.device.isSoftware ? [softwareNotice, ""] : []), ...facts];
  if (parts.length > 0) {
    lines.push("", "| part | | |", "|---|---|---|");
    for (const { name, passed, detail } of parts) lines.push(row(name, passed ? "passed" : "failed", detail));
  }
  if (verified.length > 0) {
    lines.push("", "| assumption | risk | | evidence |", "|---|---|---|---|");
    for (const { assumption, outcome } of verified)
      lines.push(row(`\`${assumption.identifier}\``, assumption.risk, words[outcome.state], outcome.evidence));
    lines.push("", summary(verified, words));
  }
  return `${lines.join("\n")}\n`;
}

const row = (...cells: readonly string[]): string =>
  `| ${cells.map((cell) => cell.replaceAll(/\s*\n\s*/g, " ").replaceAll("|", "\\|")).join(" | ")} |`;

function summary(verified: readonly Verified[], words: Readonly<Record<Outcome["state"], string>>): string {
  const count = (state: Outcome["state"]) => verified.filter(({ outcome }) => outcome.state === state).length;
  return (["holds", "fails", "unknown"] as const).map((state) => `${count(state)} ${words[state]}`).join(", ");
}
