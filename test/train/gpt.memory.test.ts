/** Training of a GPT that disposes of nothing: native bytes and the process stay flat. */
import { expect, test } from "bun:test";
import { checkFlat } from "../support/flat-memory.ts";
import { testFolder } from "../support/folder.ts";
import { repeats } from "../support/repeats.ts";

const folder = testFolder("gpt-memory");

async function checkTraining(mode: "loop" | "run", steps: number): Promise<void> {
  const points = await checkFlat("gpt-training.ts", mode, folder.path, String(steps));
  const live = points.map(({ liveBytes }) => liveBytes);
  const firstHalf = Math.max(...live.slice(0, 10));
  expect(firstHalf).toBeGreaterThan(0); // fails if no memory is counted
  // Weights and moments stay; the tensors of a step are released before the next step ends.
  expect(Math.max(...live.slice(10))).toBeLessThan(1.25 * firstHalf);
}

const steps = repeats({ usual: 1200, all: 10_000 });
test.concurrent(`memory stays flat over ${steps} steps of a loop that never waits`, () => checkTraining("loop", steps));
test.concurrent("memory stays flat over 1,200 steps of a run that is evaluated, sampled and saved meanwhile", () =>
  checkTraining("run", 1_200));
