/** Ranks that exchange until one of them fails. Each writes the error that it received. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { distributed as d, ones } from "../../../src/index.ts";

const folder = process.argv[2];
const timeout = Number(process.env["FAULT_TIMEOUT"] ?? 300);
const { rank, hosts, pids } = await d.init({ timeout });
/** Whether this rank never joins, although the others are ready. */
const isAway = process.env["FAULT_AWAY"] === String(rank);
/** Whether the others receive the error from a promise. */
const isAsync = rank % 2 === 0;
/**
 * The number of rounds, the milliseconds in which each rank receives the others' heartbeats, and the longest run in
 * seconds. A rank that never sent a heartbeat would not be reported as lost.
 */
const [FIRST, HEARD, MOST_SECONDS] = [20, 500, 600];

const begun = performance.now();
let isReady = false;
try {
  for (let turn = 0; performance.now() < MOST_SECONDS * 1000; turn++) {
    const passed = performance.now() - begun;
    if (!isReady && turn >= FIRST && passed > HEARD) {
      isReady = true;
      writeFileSync(join(folder, `ready-${rank}.json`), JSON.stringify({ hosts, pids }));
    }
    if (isAway && isReady && passed > 2 * HEARD) await Bun.sleep(MOST_SECONDS * 1000);
    if (isAsync) await d.allReduceAsync(ones([1000]));
    else d.allReduce(ones([1000]));
    await setImmediate();
  }
} catch (error) {
  const { code, message, ranks } = error as d.DistributedError;
  writeFileSync(join(folder, `rank-${rank}.json`), JSON.stringify({ code, message, ranks }));
  process.exit(3);
}
