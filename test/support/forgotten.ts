import { expect } from "bun:test";
import { join } from "node:path";
import { withoutAnnouncement } from "./child.ts";
import { bunWords } from "./program.ts";

/**
 * Runs {@link file://./forgetting.ts}, and checks that its peak of live bytes is at most a tenth of the bytes that it
 * allocated.
 */
export function checkForgotten(kind: "results" | "graphs"): void {
  const { stdout, stderr, exitCode } = Bun.spawnSync([...bunWords, join(import.meta.dir, "forgetting.ts"), kind]);
  expect([withoutAnnouncement(stderr.toString()), exitCode]).toEqual(["", 0]);
  const { made, most } = JSON.parse(stdout.toString()) as { made: number; most: number };
  expect(most).toBeGreaterThan(0);
  expect(most).toBeLessThan(made / 10);
}
