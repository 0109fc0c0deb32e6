/** Elementwise operations on operands in drawn layouts: the values, and the layout of the result. */
import { describe, expect, test } from "bun:test";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { add, clamp, contiguous, isnan, lerp, neg, permute, slice, tensor, toDType } from "../../../src/ops/index.ts";
import { denseStrides, isRowMajor } from "../../../src/tensor/shape.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { repeats } from "../../support/repeats.ts";
import { tested } from "../run.ts";
import { hash, Random } from "../samples.ts";

/** The size, in elements, from which the order of memory is kept: see `src/ops/copy/layout.ts`. */
const FEWEST = 512;

const numbers = (x: Tensor): number[] => Array.from(x.dataSync(), Number);

/** A permuted tensor of rank 2 to 4; sometimes a part of a larger one. */
function draw(random: Random): { readonly x: Tensor; readonly order: readonly number[] } {
  const rank = random.integer(2, 4);
  const sizes = Array.from({ length: rank }, () => random.integer(1, rank === 2 ? 40 : 12));
  const order = sizes.map((_, axis) => axis);
  for (let axis = rank - 1; axis > 0; axis--) {
    const other = random.integer(0, axis);
    [order[axis], order[other]] = [order[other], order[axis]];
  }
  const isPart = random.integer(0, 3) === 0;
  const whole = isPart ? sizes.with(0, sizes[0] + 2) : sizes;
  const count = whole.reduce((product, size) => product * size, 1);
  const dense = tensor(
    Array.from({ length: count }, () => random.integer(-20, 20) / 4),
    { shape: whole },
  );
  return { x: permute(isPart ? slice(dense, { dim: 0, start: 1, end: -1 }) : dense, order), order };
}

const operations: Readonly<Record<string, (x: Tensor, other: Tensor) => Tensor>> = {
  neg: (x) => neg(x),
  isnan: (x) => isnan(x),
  "toDType int32": (x) => toDType(x, "int32"),
  "add of the same layout": (x) => add(x, neg(x)) as Tensor,
  "add of a row-major operand": (x, other) => add(x, other) as Tensor,
  "add of a row": (x, other) => add(x, slice(other, { dim: 0, end: 1 })) as Tensor,
  "add of a number": (x) => add(x, 2) as Tensor,
  clamp: (x) => clamp(x, { min: -1, max: 2 }),
  lerp: (x, other) => lerp(x, other, 0.25) as Tensor,
};
const mixesLayouts = new Set(["add of a row-major operand", "lerp"]);

describe.each(tested)("layouts of operands on %s", (backend) => {
  test.each(Object.entries(operations))("%s equals its result for row-major operands", (name, operation) => {
    const random = new Random(hash(name));
    for (let round = 0; round < repeats({ usual: backend === "cpu" ? 60 : 12, all: 400 }); round++) {
      withStrict(true, () =>
        withBackend(backend, () => {
          const { x } = draw(random);
          const other = contiguous(neg(x));
          const result = operation(x, other);
          const plain = operation(contiguous(x), other);
          expect({ x: x.describe(), strides: x.strides, values: numbers(result) }).toEqual({
            x: x.describe(),
            strides: x.strides,
            values: numbers(plain),
          });
          const isKept = x.size >= FEWEST && !mixesLayouts.has(name);
          if (isKept) expect(result.strides).toEqual(denseStrides(x.shape, x.strides));
          else expect(isRowMajor(result.shape, result.strides)).toBe(true);
        }),
      );
    }
  });
});
