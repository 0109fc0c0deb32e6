import { readFile, rm } from "node:fs/promises";
import { gapsFile } from "./report.ts";

/** Deletes the list of unsupported features of an earlier run. */
export const forgetGaps = (): Promise<void> => rm(gapsFile(), { force: true });

/** Returns the unsupported features of this run; empty if there are none. */
export async function readGaps(): Promise<string> {
  return readFile(gapsFile(), "utf8").catch(() => ""); // no test found a gap
}

/** Returns a line for each backend and reason, with all operations that it affects. */
export function describeGaps(lines: string): string {
  const found = [...lines.matchAll(/^(.*) on (\w+): (.*)$/gm)].map(([, what, backend, reason]) => ({
    what: what,
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
