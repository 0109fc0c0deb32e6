/**
 * Measures weak scaling of training by ranks, compared with the machine's limit (the same number of ranks without an
 * exchange) and, if a Python with PyTorch is given, with gloo:
 *
 *     bun bench/scaling.ts --ranks 1,2,4,8 --python python3
 *
 * `ORCHARD_CPU_THREADS` sets the threads per rank for all of them.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";

const { values } = parseArgs({
  options: { ranks: { type: "string", default: "1,2" }, python: { type: "string" }, mpirun: { type: "string" } },
});
const launcher = values.mpirun ?? "mpirun";

/** Returns the tokens per second that a benchmark prints. */
function tokensOf(words: readonly string[]): number {
  const { stdout, stderr, exitCode } = Bun.spawnSync([...words], { stdout: "pipe", stderr: "pipe" });
  const [, tokens] = /([\d.]+) tokens\/s/.exec(stdout.toString()) ?? [];
  if (tokens === undefined) throw new Error(`${words.join(" ")} ended with ${exitCode}: ${stderr}`);
  return Number(tokens);
}

const orchard = (ranks: number, mode: string): number => {
  const program = join(import.meta.dir, "distributed.ts");
  return tokensOf([launcher, "-n", String(ranks), process.execPath, program, "--train", mode]);
};
const gloo = (ranks: number): number => {
  const program = join(import.meta.dir, "support/distributed_torch.py");
  const run = ["-m", "torch.distributed.run", "--nproc-per-node", String(ranks), program];
  return values.python === undefined ? Number.NaN : tokensOf([values.python, ...run]);
};

const counts = values.ranks.split(",").map(Number);
const rows: readonly [string, (ranks: number) => number][] = [
  ["overlapped", (ranks) => orchard(ranks, "overlapped")],
  ["after backward", (ranks) => orchard(ranks, "late")],
  ["in shares", (ranks) => orchard(ranks, "shares")],
  ["no exchange: the limit", (ranks) => orchard(ranks, "apart")],
  ...(values.python === undefined ? [] : [["gloo", gloo] as [string, typeof gloo]]),
];
console.log(`| ranks | ${rows.map(([name]) => `${name}, tokens/s | efficiency`).join(" | ")} |`);
console.log(`|---|${rows.map(() => "---|---").join("|")}|`);
const first = rows.map(([, measure]) => measure(1));
for (const ranks of counts) {
  const cells = rows.map(([, measure], at) => {
    const tokens = ranks === 1 ? first[at] : measure(ranks);
    return `${tokens.toFixed(0)} | ${(tokens / (ranks * first[at])).toFixed(2)}`;
  });
  console.log(`| ${ranks} | ${cells.join(" | ")} |`);
}
