/** Calls of every operation with tensors of 2⁵² elements that occupy no memory. */
import { packageRoot } from "../../src/core/paths.ts";
import { bunWords } from "../support/program.ts";

export interface Ended {
  readonly ends: string;
  readonly outcome: string;
  readonly seconds: number;
}

/** Ends a call that computes instead of rejecting its operands, which would take forever. */
const TIMEOUT = 500_000;

/** Runs the operations in a separate process; `last` is its last complete line, and `problem` the mistake in it. */
export function virtualCalls(backend: string) {
  const { stdout, stderr, exitCode } = Bun.spawnSync([...bunWords, "test/support/virtual-calls.ts", backend], {
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
