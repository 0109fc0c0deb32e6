import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { packageRoot } from "../../src/debug/paths.ts";

/** What the tests of operations write: one line for each thing that a backend lacks, `exp float64 on metal: why`. */
const file = join(packageRoot, "report", "gaps.txt");

/** Forgets the gaps of an earlier run. */
export const forgetGaps = (): Promise<void> => rm(file, { force: true });

/** The gaps of this run; empty where there are none. */
export async function readGaps(): Promise<string> {
  return readFile(file, "utf8").catch(() => ""); // no test met a gap
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
