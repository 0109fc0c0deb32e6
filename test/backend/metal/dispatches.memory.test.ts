/** Resident memory stays flat over many dispatches. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { bunWords } from "../../support/program.ts";

const program = join(import.meta.dir, "..", "..", "support", "dispatches.ts");
const megabytes = (bytes: number) => Math.round(bytes / 1e5) / 10;

test("20,000 dispatches, each with new arrays, keep memory flat", () => {
  // Runs in a separate process, so that garbage of other tests does not count.
  const { stdout } = Bun.spawnSync([...bunWords, program]);
  const { resident, liveBuffers, dispatches } = JSON.parse(stdout.toString());
  console.log(`      resident MB over 20,000 dispatches: ${resident.map(megabytes).join(" ")}`);
  expect([liveBuffers, dispatches]).toEqual([0, 20_000]);
  // The first 4096 freed buffers keep their addresses, and JavaScript's engine compiles until about 8000 dispatches.
  expect(resident[19] - resident[9]).toBeLessThan(6e6);
});
