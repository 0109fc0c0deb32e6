/** The peak memory of a compiled step on cpu, with its arena, is at most that of the plain step. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { bunWords } from "../support/program.ts";

test("the peak of a compiled step is at most the plain step's", () => {
  const { stdout, stderr, exitCode } = Bun.spawnSync([...bunWords, join(import.meta.dir, "peaks.ts")], {
    env: { ...process.env, ORCHARD_CPU_THREADS: "1" }, // otherwise, peaks would include memory for each thread
  });
  expect([exitCode, stderr.toString()]).toEqual([0, ""]);
  const peaks = Object.entries<[number, number]>(JSON.parse(stdout.toString()));
  expect(peaks).toHaveLength(2);
  for (const [name, [plain, compiled]] of peaks) {
    expect(plain, name).toBeGreaterThan(1 << 20);
    expect(compiled, name).toBeLessThanOrEqual(plain);
  }
});
