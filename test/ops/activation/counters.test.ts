/**
 * The memory traffic of activations and rotary embeddings on metal, forward and backward: one kernel, each element read
 * once and written once, and no other buffer.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { metalContext } from "../../../src/backend/metal/context.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { dropout } from "../../../src/ops/activation/dropout.ts";
import { gelu } from "../../../src/ops/activation/gelu.ts";
import { silu } from "../../../src/ops/activation/silu.ts";
import { swiglu } from "../../../src/ops/activation/swiglu.ts";
import { ones } from "../../../src/ops/creation/full.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import { rope } from "../../../src/ops/position/rope.ts";
import { transpose } from "../../../src/ops/view/permute.ts";
import { slice } from "../../../src/ops/view/slice.ts";
import { chunk } from "../../../src/ops/view/split.ts";
import { bytesOf, type DType } from "../../../src/tensor/dtype.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { tested } from "../run.ts";

const onMetal = <Result>(body: () => Result): Result => withStrict(true, () => withBackend("metal", body));

const watch = (isOn: boolean): void => {
  for (const setting of ["check", "count"]) metalContext().configure(setting, isOn);
};

/**
 * Runs the body, which must launch one kernel, and returns its result with the numbers of elements that the kernel read
 * and wrote.
 */
function watched<Result>(dtype: DType, body: () => Result) {
  const context = metalContext();
  context.wait();
  watch(true);
  context.report({ clear: true });
  const result = onMetal(body);
  context.wait();
  const { dispatches, findings } = context.report({ clear: true });
  watch(false);
  expect(findings).toEqual([]);
  expect(dispatches.map(({ count }) => count)).toEqual([1]);
  const { device_bytes_read: read, device_bytes_written: written } = dispatches[0].counters;
  return { result, read: read / bytesOf(dtype), written: written / bytesOf(dtype) };
}

const filled = (shape: readonly number[], dtype: DType): Tensor => onMetal(() => ones(shape, { dtype }));

const leaf = (x: Tensor): Tensor => {
  x.requiresGrad = true;
  return x;
};

describe.skipIf(!tested.includes("metal"))("activations on metal access memory once", () => {
  afterAll(() => watch(false));

  const activations: readonly (readonly [string, (x: Tensor) => Tensor])[] = [
    ["gelu", (x) => gelu(x)],
    ["gelu by tanh", (x) => gelu(x, { approximate: "tanh" })],
    ["silu", (x) => silu(x)],
  ];
  test.each(activations)("%s and its gradient access each element once", (_name, compute) => {
    for (const dtype of ["float32", "bfloat16"] as const) {
      const x = leaf(onMetal(() => transpose(filled([33, 31], dtype), 0, 1)));
      const forward = watched(dtype, () => compute(x));
      expect([forward.read, forward.written]).toEqual([x.size, x.size]);
      const gradOutputs = [filled([31, 33], dtype)];
      const backward = watched(dtype, () => grad([forward.result], [x], { gradOutputs }));
      expect([backward.read, backward.written]).toEqual([2 * x.size, x.size]);
    }
  });

  // The operands are parts of one projection, and are read in place.
  test.each([
    ["halves", (x: Tensor) => chunk(x, 2, { dim: -1 })],
    ["pairs", (x: Tensor) => [slice(x, { dim: -1, step: 2 }), slice(x, { dim: -1, start: 1, step: 2 })]],
  ] as const)("swiglu of %s, and both its gradients, access each element once", (_name, parts) => {
    for (const dtype of ["float32", "float16"] as const) {
      const [gate, up] = onMetal(() => parts(filled([9, 46], dtype))).map(leaf) as [Tensor, Tensor];
      const { size } = gate;
      const forward = watched(dtype, () => swiglu(gate, up));
      expect([forward.read, forward.written]).toEqual([2 * size, size]);
      const gradOutputs = [filled([9, 23], dtype)];
      const backward = watched(dtype, () => grad([forward.result], [gate, up], { gradOutputs }));
      expect([backward.read, backward.written]).toEqual([3 * size, 2 * size]);
    }
  });

  test("dropout accesses each element once", () => {
    for (const dtype of ["float32", "float16"] as const) {
      const x = leaf(filled([64, 33], dtype));
      const gradOutputs = [filled([64, 33], dtype)];
      const forward = watched(dtype, () => dropout(x, { p: 0.25 }));
      expect([forward.read, forward.written]).toEqual([x.size, x.size]);
      const backward = watched(dtype, () => grad([forward.result], [x], { gradOutputs }));
      expect([backward.read, backward.written]).toEqual([x.size, x.size]);
    }
  });

  test("rope accesses each element once for heads that are a transposed view", () => {
    const x = leaf(onMetal(() => transpose(filled([2, 4, 3, 16], "float32"), 1, 2)));
    const forward = watched("float32", () => rope(x, { dim: 12 }));
    expect([forward.read, forward.written]).toEqual([x.size, x.size]);
    const gradOutputs = [filled([2, 3, 4, 16], "float32")];
    const backward = watched("float32", () => grad([forward.result], [x], { gradOutputs }));
    expect([backward.read, backward.written]).toEqual([x.size, x.size]);
  });
});
