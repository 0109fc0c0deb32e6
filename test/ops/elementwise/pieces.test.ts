/**
 * Operations and casts that are divided among threads in equal pieces: at sizes around the bounds of the pieces, every
 * element has the bits that it has in a short tensor, which one thread computes.
 */
import { describe, expect, test } from "bun:test";
import { withBackend } from "../../../src/backend/policy.ts";
import * as orchard from "../../../src/index.ts";
import type { DType } from "../../../src/tensor/dtype.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { Random } from "../samples.ts";

const PART = 1000;
const sizes = [8191, 8193, 24_577, 32_767, 32_769, 40_001, 65_537, 98_305];
const random = new Random(2026);
const values = Float64Array.from({ length: Math.max(...sizes) }, () => 0.1 + 8 * random.next());

const operations: Readonly<Record<string, (x: Tensor) => Tensor>> = {
  neg: (x) => orchard.neg(x) as Tensor,
  exp: (x) => orchard.exp(x),
  lgamma: (x) => orchard.lgamma(x),
  besselJ0: (x) => orchard.besselJ0(x),
  besselY1: (x) => orchard.besselY1(x),
  scaledModifiedBesselK1: (x) => orchard.scaledModifiedBesselK1(x),
  logit: (x) => orchard.logit(x),
  "the mantissa of frexp": (x) => orchard.frexp(x).mantissa,
  "the cast to bfloat16": (x) => orchard.toDType(x, "bfloat16"),
  "a broadcast sum": (x) => orchard.add(x, orchard.tensor([2])) as Tensor,
};

describe.each(["float32", "float64", "bfloat16"] as const satisfies readonly DType[])(
  "pieces of large operands are correct, %s",
  (dtype) => {
    test.each(Object.keys(operations))("%s is the same in pieces", (name) => {
      withBackend("cpu", () => {
        const compute = operations[name];
        const x = orchard.toDType(orchard.tensor(values), dtype) as Tensor;
        const whole = sizes.map((size) => compute(orchard.narrow(x, 0, 0, size)).toArray() as number[]);
        const parts = Array.from({ length: Math.ceil(values.length / PART) }, (_, at) =>
          compute(orchard.narrow(x, 0, at * PART, Math.min(PART, x.size - at * PART))).toArray(),
        ).flat() as number[];
        for (const [at, size] of sizes.entries()) {
          const wrong = whole[at].findIndex((value, element) => !Object.is(value, parts[element]));
          expect({ size, wrong, length: whole[at].length }).toEqual({ size, wrong: -1, length: size });
        }
      });
    });
  },
);

describe("operands with runs of a few elements", () => {
  test.each([2, 3, 4, 5])("runs of %d elements are correct", (width) => {
    withBackend("cpu", () => {
      const [planes, rows] = [3, 701]; // tiles begin inside runs
      const drawn = (count: number) => Float32Array.from({ length: count }, () => random.next());
      const [a, b] = [drawn(planes * (rows + 1) * (width + 1)), drawn(planes * rows)];
      const wide = orchard.tensor(a).reshape([planes, rows + 1, width + 1]); // planes and rows can't be merged
      const column = orchard.tensor(b).reshape([planes, rows, 1]);
      const numbers = Array.from({ length: planes * rows * width }, (_, at) => {
        const [row, element] = [Math.floor(at / width), at % width];
        const from = row + Math.floor(row / rows); // each plane uses a different row
        return Math.fround(a[from * (width + 1) + element + 1] + b[row]);
      });
      const sum = orchard.add(orchard.narrow(orchard.narrow(wide, 1, 0, rows), 2, 1, width), column) as Tensor;
      expect([...sum.dataSync()]).toEqual(numbers);
      const products = orchard.kron(
        orchard.tensor([[...b.subarray(0, rows)]]),
        orchard.tensor([[...a.subarray(0, width)]]),
      );
      const expected = Array.from({ length: rows * width }, (_, at) =>
        Math.fround(b[Math.floor(at / width)] * a[at % width]),
      );
      expect([...(products as Tensor).dataSync()]).toEqual(expected);
    });
  });
});
