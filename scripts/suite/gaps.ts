import { readFile, rm } from "node:fs/promises";
import { gapsFile } from "./report.ts";

/** Forgets the gaps of an earlier run. */
export const forgetGaps = (): Promise<void> => rm(gapsFile(), { force: true });

/** The gaps of this run; empty where there are none. */
export async function readGaps(): Promise<string> {
  return readFile(gapsFile(), "utf8").catch(() => ""); // no test met a gap
}

/** A line for each backend and reason, with everything that it is the reason for. */
export function describeGaps(lines: string): string {
  const found = [...lines.matchAll(/^(.*) on (\w+): (.*)$/gm)].map(([, what, backend, reason]) => ({
    what: what!,
    why: `${backend}: ${reason}`,
  }));
  const groups = Map.groupBy(found, ({ why }) => why);
  const rows = [...groups]
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([why, gaps]) => {
      const names = [...new Set(gaps.map(({ what }) => what))].sort();
      return `  ${why} (${names.length})\n    ${names.join(", ")}`;
    });
  return rows.length === 0 ? "" : `\nWhat backends lack\n${rows.join("\n")}\n`;
}
