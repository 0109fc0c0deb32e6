/** Ranks whose calls differ: each gets a typed error, and the next call works. */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { distributed as d, ones, zeros } from "../../../src/index.ts";
import { waitFor } from "../../support/wait.ts";
import { toJson } from "../json.ts";

const folder = process.argv[2];
const { pids, rank } = await d.init();
const odd = rank === 1;
const results: Record<string, unknown> = {};

async function outcomeOf(name: string, call: () => unknown): Promise<void> {
  try {
    await call();
    results[name] = "no error";
  } catch (error) {
    const { code, message, ranks } = error as d.DistributedError;
    results[name] = { isTyped: error instanceof d.DistributedError, code, message, ranks };
  }
  results[`after ${name}`] = d.allReduce(ones([1])).item();
}

await outcomeOf("shapes", () => d.allReduce(zeros(odd ? [3, 2] : [2, 3])));
await outcomeOf("dtypes", () => d.allGather(zeros([2], { dtype: odd ? "float16" : "int8" })));
await outcomeOf("options", () => d.allReduce(zeros([2]), { op: odd ? "max" : "sum" }));
await outcomeOf("roots", () => d.broadcastAsync(zeros([2]), { src: rank % 2 }));
await outcomeOf("calls", () => (odd ? d.barrier() : d.reduceScatter(zeros([12, 2]))));
const long = Array.from({ length: 8 }, (_, at) => (at === 7 && odd ? 2 : 1));
await outcomeOf("late sizes", () => d.allToAllAsync(zeros([12, ...long.slice(1)])));

// The event loop continues while a rank waits: rank 1 joins once each other rank has had four turns.
let turns = 0;
const signOf = (other: number) => join(folder, `turned-${pids[0]}-${other}`);
const timer = setInterval(() => {
  if (++turns === 4) writeFileSync(signOf(rank), "");
}, 1);
const others = pids.map((_, other) => other).filter((other) => other !== rank);
if (odd) await waitFor("turns of the other ranks", () => others.every((other) => existsSync(signOf(other))));
await d.barrierAsync();
clearInterval(timer);
results["turns"] = turns;

await Bun.write(join(folder, `rank-${rank}.json`), JSON.stringify(results, toJson));
await d.finalize();
