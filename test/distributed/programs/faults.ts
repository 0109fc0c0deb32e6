/** Ranks that exchange until something happens to one of them. Each writes what it learned of it. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { distributed as d, ones } from "../../../src/index.ts";

const folder = process.argv[2]!;
const timeout = Number(process.env["FAULT_TIMEOUT"] ?? 60);
const { rank, hosts, pids } = await d.init({ timeout });
/** It stays away from the turn on in which the others are known to exchange. */
const isAway = process.env["FAULT_AWAY"] === String(rank);
/** Whether the others learn it from a promise. */
const isAsync = rank % 2 === 0;
const [FIRST, MOST_SECONDS] = [20, 60];

try {
  for (let turn = 0; performance.now() < MOST_SECONDS * 1000; turn++) {
    if (turn === FIRST) writeFileSync(join(folder, `ready-${rank}.json`), JSON.stringify({ hosts, pids }));
    if (turn === FIRST && isAway) await Bun.sleep(MOST_SECONDS * 1000);
    if (isAsync) await d.allReduceAsync(ones([1000]));
    else d.allReduce(ones([1000]));
    await setImmediate();
  }
} catch (error) {
  const { code, message, ranks } = error as d.DistributedError;
  writeFileSync(join(folder, `rank-${rank}.json`), JSON.stringify({ code, message, ranks }));
  process.exit(3);
}
