/**
 * Differences, slopes and integrals of drawn shapes along every axis, in every layout and float dtype, compared with
 * loops in float64.
 */
import { describe, expect, test } from "bun:test";
import {
  cumulativeTrapezoid,
  type DType,
  diff,
  gradient,
  type Tensor,
  toDType,
  trapezoid,
  withBackend,
} from "../../../src/index.ts";
import { tested } from "../run.ts";
import { testSameBits } from "../same_bits.ts";
import { expandedBlock, hash, layouts, makeBlock, place, Random, rounder } from "../samples.ts";

const listOf = (x: Tensor): number[] => [...(toDType(x, "float64").dataSync() as Float64Array)];

/** One result of each slice along an axis, row-major. */
function along(
  { shape, values }: { shape: readonly number[]; values: readonly number[] },
  axis: number,
  of: (slice: readonly number[]) => readonly number[],
): number[] {
  const inner = shape.slice(axis + 1).reduce((product, size) => product * size, 1);
  const outer = shape.slice(0, axis).reduce((product, size) => product * size, 1);
  const blocks: number[] = [];
  for (let block = 0; block < outer; block++) {
    const columns = Array.from({ length: inner }, (_, column) =>
      of(Array.from({ length: shape[axis]! }, (_each, at) => values[(block * shape[axis]! + at) * inner + column]!)),
    );
    for (let at = 0; at < columns[0]!.length; at++) for (const column of columns) blocks.push(column[at]!);
  }
  return blocks;
}

const differences = (y: readonly number[]) => y.slice(1).map((value, at) => value - y[at]!);
function integrals(y: readonly number[]): number[] {
  let sum = 0;
  return y.slice(1).map((value, at) => {
    sum += (value + y[at]!) / 2;
    return sum;
  });
}

const DISTANCE = 0.75;
function slopes(y: readonly number[]): number[] {
  const last = y.length - 1;
  return y.map((_, at) => {
    const [before, after] = [Math.max(at - 1, 0), Math.min(at + 1, last)];
    return (y[after]! - y[before]!) / (DISTANCE * (after - before));
  });
}
const slopesOf = (x: Tensor, dim: number): Tensor => gradient(x, { dim, spacing: DISTANCE })[0]!;

const functions = [
  ["diff", (x: Tensor, dim: number) => diff(x, { dim }), differences],
  ["gradient", slopesOf, slopes],
  ["cumulativeTrapezoid", (x: Tensor, dim: number) => cumulativeTrapezoid(x, { dim }), integrals],
  ["trapezoid", (x: Tensor, dim: number) => trapezoid(x, { dim }), (y: readonly number[]) => integrals(y).slice(-1)],
] as const;

/** Rows of a vector and its rest, of two elements, and more slices than are computed together. */
function drawnShape(random: Random): number[] {
  const shape = [random.integer(1, 9), random.integer(1, 20), random.integer(1, 20)];
  const axis = random.integer(0, 2);
  return random.next() < 0.2 ? shape.with(axis, random.integer(257, 300)) : shape;
}

describe.each(tested)("functions of neighbors on %s", (backend) => {
  const dtypes: readonly DType[] = ["float64", "float32", "float16", "bfloat16"];
  const drawn = dtypes.filter((dtype) => backend !== "metal" || dtype !== "float64");
  test.each(drawn)("%s along every axis, in every layout", (dtype) =>
    withBackend(backend, () => {
      const random = new Random(hash(`neighbors ${dtype}`));
      const round = rounder(dtype);
      const relative = { float64: 1e-14, float32: 1e-6, float16: 2 ** -9, bfloat16: 2 ** -7 }[dtype as "float64"];
      for (const layout of layouts)
        for (let axis = 0; axis < 3; axis++) {
          const shape = drawnShape(random);
          shape[axis] = Math.max(2, shape[axis]!);
          const made = makeBlock({ shape, values: { low: 0.5, high: 2 } }, dtype, random);
          const block = layout === "expanded" ? expandedBlock(made) : made;
          const x = place(block, layout, backend, random);
          for (const [name, compute, exact] of functions) {
            const expected = along(block, axis, exact);
            for (const [at, value] of listOf(compute(x, axis)).entries())
              if (Math.abs(value - expected[at]!) > relative * Math.max(1, Math.abs(expected[at]!)))
                expect(`${name} [${shape}] ${axis} ${layout}: ${value}`).toBe(`${round(expected[at]!)}`);
          }
        }
    }),
  );
});

describe("neighbors have the same bits", () => {
  testSameBits((backend) => {
    const random = new Random(11);
    return [0, 1, 2].flatMap((axis) => {
      const most = backend === "cpu" ? 90 : 12;
      const shape = [0, 1, 2].map(() => random.integer(2, most));
      const x = place(makeBlock({ shape }, "float32", random), "contiguous", backend, random);
      return functions.map(([, compute]) => compute(x, axis).dataSync());
    });
  });
});

describe("integrals and slopes of long slices", () => {
  const lengths = [65_536, 65_537, 65_538, 100_003];
  const drawn = (length: number) => {
    const random = new Random(length);
    return makeBlock({ shape: [2, length], values: { low: -1, high: 2 } }, "float64", random);
  };
  test.each(lengths)("of %d samples are those of a loop", (length) =>
    withBackend("cpu", () => {
      const block = drawn(length);
      const x = place(block, "contiguous", "cpu", new Random(1));
      const expected = along(block, 1, integrals);
      const got = listOf(cumulativeTrapezoid(x));
      // the sum of magnitudes is at most 2 per sample, and a sum of n numbers has at most n roundings
      const worst = got.reduce((most, value, at) => Math.max(most, Math.abs(value - expected[at]!)), 0);
      expect([got.length, worst < length * 2 * length * 2 ** -53]).toEqual([2 * (length - 1), true]);
      expect(listOf(slopesOf(x, 1))).toEqual(along(block, 1, slopes));
    }),
  );
  testSameBits((backend) =>
    lengths.slice(backend === "cpu" ? 0 : lengths.length).flatMap((length) => {
      const x = place(drawn(length), "contiguous", backend, new Random(1));
      return [cumulativeTrapezoid(x).dataSync(), slopesOf(x, 1).dataSync()];
    }),
  );
});
