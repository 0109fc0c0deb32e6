// Counts the memory traffic of Metal's kernels on the software device, per call: bytes of device memory relative to the
// operands and results once, threadgroup memory, barriers, matrix products, constants, and the number of threadgroups,
// to compare with the cores of a GPU. The counts don't depend on caches, time or the machine. It fails if a count is
// above that of bench/support/kernels/stored.json; `--store` rewrites that file. Arguments select calls by name.
// `--peers FOLDER` also counts MLX's kernels, from a checkout of MLX, after checking that their results agree with
// Orchard's.

import { join } from "node:path";
import { Command } from "commander";
import { isMetalOpen, metalContext } from "../src/backend/metal/context.ts";
import { withBackend, withStrict } from "../src/backend/policy.ts";
import { besidePeers, peerColumns } from "./support/kernels/beside.ts";
import { makeCases } from "./support/kernels/cases.ts";
import { bounded, type Counts, count } from "./support/kernels/count.ts";
import { occupancyColumns, occupancyRows } from "./support/kernels/occupancy.ts";
import { table } from "./support/measure.ts";

const STORED = join(import.meta.dir, "support/kernels/stored.json");
/** Threadgroups per core, for the smallest and the largest GPU. */
const CORES = [80, 8] as const;

const command = new Command("bun run bench kernels")
  .argument("[words...]", "counts the calls whose names contain these words")
  .option("--store", "writes the counts as those that must not rise")
  .option("--occupancy", "says on paper how many SIMD-groups of tiled kernels and rows a core has room for")
  .option("--peers <folder>", "counts MLX's kernels too, from a checkout of it")
  .parse();
const { store = false, peers, occupancy } = command.opts<{ store?: boolean; peers?: string; occupancy?: boolean }>();

type Stored = Record<string, Pick<Counts, (typeof bounded)[number]>>;
const stored: Stored = (await Bun.file(STORED).exists()) ? await Bun.file(STORED).json() : {};
const kibibytes = (bytes: number): string => (bytes / 1024).toFixed(bytes < 10240 ? 1 : 0);

function main(): void {
  const rows: string[][] = [];
  const compared: string[][] = [];
  for (const counted of makeCases()) {
    const { name, ideal, run } = counted;
    if (!command.args.every((word) => name.includes(word))) continue;
    const counts = count(run);
    if (peers) compared.push(...besidePeers(peers, counted, counts));
    const before = stored[name];
    const risen = bounded.filter((figure) => before && counts[figure] > before[figure]);
    if (!before && !store) risen.push(...bounded);
    if (risen.length > 0 && !store) process.exitCode = 1;
    stored[name] = Object.fromEntries(bounded.map((figure) => [figure, counts[figure]])) as Stored[string];
    rows.push([
      name,
      kibibytes(counts.bytes),
      (counts.bytes / ideal).toFixed(2),
      kibibytes(counts.threadgroupBytes),
      String(counts.barriers),
      (counts.matrixWork / 1e6).toFixed(2),
      kibibytes(counts.constantBytes),
      `${counts.threadgroups} x ${counts.threads}`,
      CORES.map((cores) => (counts.threadgroups / cores).toFixed(1)).join(" to "),
      store ? "" : risen.map((figure) => `${figure} over ${before?.[figure] ?? "nothing stored"}`).join(", "),
    ]);
  }
  const groupsOf = `groups a core, ${CORES[0]} to ${CORES[1]} cores`;
  const head = ["", "device KiB", "x ideal", "threadgroup KiB", "barriers", "M mac", "constant KiB", "groups"];
  console.log(table([...head, groupsOf, ""], rows));
  if (peers) console.log(table(["ours over MLX's, and both", ...peerColumns], compared));
}

if (occupancy) {
  console.log(table(["", ...occupancyColumns], occupancyRows()));
} else if (!metalContext().isSoftware) {
  console.log("Apple's device has no counters: run this with the software device.");
} else {
  withStrict(true, () => withBackend("metal", main));
  if (store) await Bun.write(STORED, `${JSON.stringify(stored, null, 2)}\n`);
}
if (isMetalOpen()) metalContext().close();
