/** A model of two attention layers learns, and learns the same for every way of computing attention. */
import { expect, test } from "bun:test";
import { withBackend } from "../../../src/backend/policy.ts";
import { trainAttention } from "../../support/attention-model.ts";
import { repeats } from "../../support/repeats.ts";
import { on, ways } from "./run.ts";

const [steps, seed] = [50, 7];
const expected = withBackend("reference", () => trainAttention(steps, seed, "fused"));

test("the loss falls to less than half", () => {
  expect(expected.at(-1)!).toBeLessThan(expected[0] / 2);
});

test.each(ways)("the curve of losses is the same on $name", (way) => {
  const count = way.backend === "metal" ? repeats({ usual: 15, all: steps }) : steps; // metal's software device is slow
  const losses = on(way, () => trainAttention(count, seed, way.path));
  for (const [step, loss] of losses.entries()) expect(Math.abs(loss - expected[step])).toBeLessThan(2e-5);
});
