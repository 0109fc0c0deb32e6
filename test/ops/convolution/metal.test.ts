/** The convolution kernels on metal, larger than one tile and in parts, under the checker and in numeric variants. */
import { expect, test } from "bun:test";
import { metalContext } from "../../../src/backend/metal/context.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { whyUnavailable } from "../../../src/backend/registry.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import { conv2d, ones } from "../../../src/ops/index.ts";
import { checked, testVariants } from "../../linalg/variants.ts";
import { type Case, checkCase } from "./cases.ts";

const cases: Readonly<Record<string, Case>> = {
  "several tiles, and the weight's gradient in parts": {
    ...({ x: [2, 5, 17, 16], weight: [37, 5, 3, 2] } as const),
    stride: 1,
    padding: 1,
    groups: 1,
  },
  "whole tiles whose rows are read by fours": {
    ...({ x: [1, 8, 8, 8], weight: [32, 8, 2, 2] } as const),
    stride: 1,
    padding: 0,
    groups: 1,
  },
  "whole tiles of positions that are read by fours": {
    ...({ x: [2, 8, 8, 8], weight: [32, 8, 3, 3] } as const),
    stride: 1,
    padding: 1,
    groups: 1,
  },
  "phases of a stride, some without a place": {
    ...({ x: [1, 9, 11, 12], weight: [10, 9, 2, 2] } as const),
    stride: 3,
    padding: 1,
    groups: 1,
  },
  "phases and dilation": {
    ...({ x: [1, 3, 12, 13], weight: [9, 3, 3, 3] } as const),
    stride: 4,
    padding: 3,
    groups: 1,
    dilation: 2,
  },
  "more remainders than launches": {
    ...({ x: [1, 2, 20, 19], weight: [3, 2, 2, 3] } as const),
    stride: 9,
    padding: 2,
    groups: 1,
  },
  "groups of several rows": {
    ...({ x: [1, 16, 5, 6], weight: [18, 8, 3, 3] } as const),
    stride: 1,
    padding: 1,
    groups: 2,
  },
  "one channel a group": {
    ...({ x: [2, 3, 9, 8], weight: [6, 1, 3, 3] } as const),
    stride: 2,
    padding: 1,
    groups: 3,
  },
};

const onMetal = <Result>(body: () => Result): Result => withStrict(true, () => withBackend("metal", body));

test.if(whyUnavailable("metal") === undefined).each(Object.entries(cases))("on metal: %s", (_, own) => {
  for (const dtype of ["float32", "float16", "bfloat16"] as const) checked(() => checkCase("metal", own, dtype));
});

test.if(whyUnavailable("metal") === undefined)("on metal: operands of two bytes are read in place", () => {
  const context = metalContext();
  const [x, weight] = onMetal(() => [
    ones([2, 9, 8, 8], { dtype: "float16" }),
    ones([8, 9, 3, 3], { dtype: "float16" }),
  ]);
  context.wait();
  context.configure("count", true);
  context.report({ clear: true });
  const y = onMetal(() => conv2d(x, weight));
  context.wait();
  const { dispatches } = context.report({ clear: true });
  context.configure("count", false);
  expect(dispatches.map(({ kernel }) => kernel)).toEqual(["convolution_matrices_half_half"]);
  expect(dispatches[0].counters.device_bytes_written).toBe(2 * y.size);
});

test.if(whyUnavailable("metal") === undefined)(
  "the cpu backend computes the gradient of a two-byte result of metal",
  () => {
    const shapes = [[1, 2, 5, 5] as const, [3, 2, 2, 2] as const];
    const gradientsOn = (forward: "metal" | "cpu") => {
      const leaves = shapes.map((shape) => withBackend(forward, () => ones(shape, { dtype: "float16" })));
      for (const leaf of leaves) leaf.requiresGrad = true;
      const y = withBackend(forward, () => conv2d(leaves[0], leaves[1], { bias: ones([3], { dtype: "float16" }) }));
      const gradOutputs = [ones(y.shape, { dtype: "float16" })];
      const found = withStrict(true, () => withBackend("cpu", () => grad([y], leaves, { gradOutputs })));
      return found.map((each) => each.toArray());
    };
    expect(gradientsOn("metal")).toEqual(gradientsOn("cpu"));
  },
);

testVariants(import.meta.path, "on metal: (several|one|phases and)");
