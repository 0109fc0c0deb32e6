/** Calls of every operation with tensors of 2⁵² elements that take no memory. */
import { packageRoot } from "../../src/core/paths.ts";

export interface Ended {
  readonly ends: string;
  readonly outcome: string;
  readonly seconds: number;
}

/** What ends a call that works instead of refusing, which would take for ever. */
const TIMEOUT = 500_000;

/** Runs them in a process of their own; `last` is the line before it broke off, and `problem` what it said then. */
export function virtualCalls(backend: string) {
  const { stdout, stderr, exitCode } = Bun.spawnSync([process.execPath, "test/support/virtual-calls.ts", backend], {
    cwd: packageRoot,
    timeout: TIMEOUT,
  });
  const lines = stdout.toString().trim().split("\n");
  const outcomes = lines.map((line) => JSON.parse(line)).filter((line): line is Ended => "ends" in line);
  const isWhole = exitCode === 0;
  return {
    outcomes,
    last: isWhole ? "" : lines.at(-1),
    problem: isWhole ? "" : `exit status ${exitCode}: ${stderr}`,
  };
}
