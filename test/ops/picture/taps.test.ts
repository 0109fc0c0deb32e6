/** Weights of cubic interpolation, by R. Keys' definition (1981) with a = -3/4, as in PyTorch. */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { cubicWeights } from "../../../src/ops/picture/taps.ts";

test("a picture has known values on a tap, and halfway between two", () => {
  expect(cubicWeights(0).map((weight) => weight + 0)).toEqual([0, 1, 0, 0]);
  expect(cubicWeights(1).map((weight) => weight + 0)).toEqual([0, 0, 1, 0]);
  expect(cubicWeights(0.5)).toEqual([-0.09375, 0.59375, 0.59375, -0.09375]);
  expect(cubicWeights(0.25)).toEqual([-0.10546875, 0.87890625, 0.26171875, -0.03515625]);
});

test("weights between taps sum to 1, and are symmetric", () => {
  fc.assert(
    fc.property(fc.double({ min: 0, max: 1, noNaN: true }), (t) => {
      const weights = cubicWeights(t);
      expect(weights.reduce((sum, weight) => sum + weight, 0)).toBeCloseTo(1, 12);
      for (const [at, weight] of cubicWeights(1 - t)
        .toReversed()
        .entries())
        expect(weights[at]).toBeCloseTo(weight, 12);
    }),
  );
});
