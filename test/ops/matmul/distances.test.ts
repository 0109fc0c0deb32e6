/** Distances of drawn points against the formula in float64: sizes, layouts, batches, dtypes and orders of the norm. */
import { describe, expect, test } from "bun:test";
import { withBackend } from "../../../src/backend/policy.ts";
import { tensor } from "../../../src/ops/creation/tensor.ts";
import { pdist } from "../../../src/ops/distance/dist.ts";
import { detach, grad } from "../../../src/ops/gradient/backward.ts";
import { cdist } from "../../../src/ops/matmul/cdist.ts";
import { expand } from "../../../src/ops/view/expand.ts";
import { transpose } from "../../../src/ops/view/permute.ts";
import { reshape } from "../../../src/ops/view/reshape.ts";
import { slice } from "../../../src/ops/view/slice.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { repeats } from "../../support/repeats.ts";
import { Random } from "../samples.ts";

const dtypes = ["float32", "float64"] as const;
const orders = [1, 2, Number.POSITIVE_INFINITY, 1.5] as const;
const roundings = { float32: 2 ** -24, float64: 2 ** -53 } as const;
const pick = <Item>(random: Random, items: readonly Item[]): Item => items[random.integer(0, items.length - 1)]!;

/** Points [batch, count, k] in a drawn layout. */
function points(random: Random, [batch, count, k]: readonly [number, number, number], dtype: "float32" | "float64") {
  const numbers = (shape: readonly number[]): Tensor => {
    const size = shape.reduce((all, each) => all * each, 1);
    return reshape(
      tensor(
        Array.from({ length: size }, () => random.next() * 4 - 2),
        { dtype },
      ),
      [...shape],
    );
  };
  const layouts: (() => Tensor)[] = [
    () => numbers([batch, count, k]),
    () => transpose(numbers([batch, k, count]), 1, 2),
    () => slice(numbers([batch, count, 2 * k]), { dim: 2, step: 2 }),
    () => expand(numbers([1, count, k]), [batch, count, k]),
  ];
  return pick(random, layouts)();
}

const flat = (x: Tensor): number[] => (x.toArray() as number[][][]).flat(2);

/** The distance of two points and the derivative of its k-th coordinate. */
function formula(p: number, differences: readonly number[]) {
  const sizes = differences.map(Math.abs);
  const distance =
    p === Number.POSITIVE_INFINITY ? Math.max(0, ...sizes) : sizes.reduce((all, size) => all + size ** p, 0) ** (1 / p);
  const derivative = (at: number): number => {
    if (distance === 0) return 0;
    if (p === Number.POSITIVE_INFINITY) return sizes[at] === distance ? Math.sign(differences[at]) : 0;
    return Math.sign(differences[at]) * (sizes[at] / distance) ** (p - 1);
  };
  return { distance, derivative };
}

function drawnSizes(random: Random): [m: number, n: number, k: number] {
  for (;;) {
    const [m, n, k] = [200, 200, 300].map((most) => Math.floor(most ** random.next())) as [number, number, number];
    if (m * n * k <= 100_000) return [m, n, k];
  }
}

function check(random: Random): void {
  const [m, n, k] = drawnSizes(random);
  const batch = m * n * k < 20_000 ? random.integer(1, 3) : 1;
  const [dtype, p] = [pick(random, dtypes), pick(random, orders)];
  const [x, y] = [points(random, [batch, m, k], dtype), points(random, [batch, n, k], dtype)];
  const leaves = [detach(x), detach(y)];
  const isGradient = random.next() < 0.5;
  for (const leaf of leaves) leaf.requiresGrad = isGradient;
  const output = cdist(leaves[0], leaves[1], { p });
  const cotangent = Array.from({ length: batch * m * n }, () => random.next() * 2 - 1);
  const [a, b] = [flat(x), flat(y)];
  const gradients = [a.map(() => 0), b.map(() => 0)];
  const sizes = [a.map(() => 0), b.map(() => 0)]; // the sum of the magnitudes of each gradient's terms
  const name = `${dtype} ${p}: ${x.describe()} and ${y.describe()}`;
  for (const [at, got] of flat(output).entries()) {
    const [i, j] = [Math.floor(at / n), Math.floor(at / n / m) * n + (at % n)];
    const { distance, derivative } = formula(
      p,
      Array.from({ length: k }, (_, c) => a[i * k + c] - b[j * k + c]),
    );
    const off = Math.abs(got - distance) / (distance * (k + 4) * roundings[dtype]);
    if (!(off <= 1)) expect([name, at, got]).toEqual([name, at, distance]);
    for (let c = 0; isGradient && c < k; c++) {
      const term = cotangent[at] * derivative(c);
      gradients[0][i * k + c] += term;
      gradients[1][j * k + c] -= term;
      sizes[0][i * k + c] += Math.abs(term);
      sizes[1][j * k + c] += Math.abs(term);
    }
  }
  if (!isGradient) return;
  const found = grad([output], leaves, { gradOutputs: [reshape(tensor(cotangent, { dtype }), [batch, m, n])] });
  for (const [side, own] of found.entries())
    for (const [at, got] of flat(own as Tensor).entries()) {
      const wanted = gradients[side][at];
      // Each term of the sum is a weight times a difference, with the same rounding error as the distance.
      const bound = (sizes[side][at] + Number.MIN_VALUE) * (n + m + k + 8) * roundings[dtype];
      if (!(Math.abs(got - wanted) <= bound)) expect([name, side, at, got]).toEqual([name, side, at, wanted]);
    }
}

describe.each([...Array(4).keys()])("distances of points equal the formula, seed %d", (seed) => {
  test("distances of two sets and their gradients equal the formula", () => {
    withBackend("cpu", () => {
      const random = new Random(seed);
      for (let count = 0; count < repeats({ usual: 12, all: 60 }); count++) check(random);
    });
  });

  test("distances of pairs match the set to itself, with the same gradient", () => {
    withBackend("cpu", () => {
      const random = new Random(50 + seed);
      for (const p of orders) {
        const [count, k] = [random.integer(0, 90), random.integer(1, 40)];
        const x = reshape(points(random, [1, count, k], pick(random, dtypes)), [count, k]);
        const [own, whole] = [detach(x), detach(x)];
        const square = cdist(whole, whole, { p }).toArray() as number[][];
        const above = square.flatMap((row, at) => row.slice(at + 1));
        expect(pdist(own, { p }).toArray()).toEqual(above);
        for (const leaf of [own, whole]) leaf.requiresGrad = true;
        const gradientOf = (leaf: Tensor, of: Tensor): number[] =>
          (grad([of.sum()], [leaf])[0].toArray() as number[][]).flat();
        const pairs = gradientOf(own, pdist(own, { p }));
        const both = gradientOf(whole, cdist(whole, whole, { p })).map((value) => value / 2);
        for (const [at, value] of pairs.entries()) expect(value).toBeCloseTo(both[at], 3);
      }
    });
  });
});

test("differences whose squares overflow or vanish in float32 keep their distance", () => {
  withBackend("cpu", () => {
    for (const scale of [1e-30, 1e-22, 1, 1e18, 1e25]) {
      const points = tensor([
        [0, 0, 0],
        [3 * scale, 0, 4 * scale],
      ]);
      const [[none, far]] = cdist(points, points).toArray() as [[number, number]];
      expect(none).toBe(0);
      expect(far / scale / 5).toBeCloseTo(1, 6);
    }
    const odd = tensor([
      [Number.NaN, 1],
      [Number.POSITIVE_INFINITY, 1],
      [1, 1],
    ]);
    for (const p of [1, 2, Number.POSITIVE_INFINITY]) {
      const [first, second] = cdist(odd, tensor([[1, 1]]), { p }).toArray() as [[number], [number]];
      expect([first, second]).toEqual([[Number.NaN], [Number.POSITIVE_INFINITY]]);
    }
  });
});
