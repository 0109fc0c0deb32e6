/** Super-blocks of GGML: scales of the right sign, which another step of least squares hardly improves. */
import { describe, expect, test } from "bun:test";
import { fromArray, quantizeGgml } from "../../src/index.ts";
import type { GgmlFormat } from "../../src/quant/formats.ts";
import { fitRaisedBlock, type RaisedBlock, type RaisedRule } from "../../src/quant/ggml/super_fit.ts";
import { Random } from "../ops/samples.ts";
import { repeats } from "../support/repeats.ts";
import { seed } from "../support/some.ts";

const VALUES = 256;

const rules: readonly (readonly [name: string, rule: RaisedRule])[] = [
  ["q2_K", { size: 16, most: 3, scaleMost: 15 }],
  ["q4_K", { size: 32, most: 15, scaleMost: 63 }],
  ["q5_K", { size: 32, most: 31, scaleMost: 63 }],
];

/**
 * Numbers around an offset, with one below 0 in each sub-block: least squares alone would give them a minimum above 0,
 * which is a negative `dmin`.
 */
function drawn(random: Random, { size }: RaisedRule): Float32Array {
  const [offset, spread, below] = [random.next() * 2 - 0.5, 10 ** (random.next() * 3 - 2), 10 ** (-3 * random.next())];
  return Float32Array.from({ length: VALUES }, (_, at) =>
    at % size === 0 && offset > 0 ? -below : offset + spread * (random.next() - 0.5),
  );
}

const decoded = ({ size }: RaisedRule, { d, dmin, scales, minima }: RaisedBlock, at: number, level: number) => {
  const sub = Math.floor(at / size);
  return d * scales[sub] * level - dmin * minima[sub];
};

/** The error of the nearest levels, by trying all. */
function leastError(values: Float32Array, rule: RaisedRule, block: RaisedBlock): number {
  const levels = Array.from({ length: rule.most + 1 }, (_, level) => level);
  return values.reduce(
    (sum, value, at) => sum + Math.min(...levels.map((level) => (value - decoded(rule, block, at, level)) ** 2)),
    0,
  );
}

/** The same integers and levels with the scale and minimum of least squares, by the normal equations. */
function refit(values: Float32Array, { size }: RaisedRule, block: RaisedBlock): RaisedBlock | undefined {
  const rows = [...values].map((value, at) => {
    const sub = Math.floor(at / size);
    return { value, a: block.scales[sub] * block.levels[at], b: -block.minima[sub] };
  });
  const sum = (of: (row: (typeof rows)[number]) => number) => rows.reduce((total, row) => total + of(row), 0);
  const [aa, ab, bb] = [sum(({ a }) => a * a), sum(({ a, b }) => a * b), sum(({ b }) => b * b)];
  const [ax, bx] = [sum(({ a, value }) => a * value), sum(({ b, value }) => b * value)];
  const determinant = aa * bb - ab * ab;
  if (determinant <= 0) return undefined;
  const [d, dmin] = [(ax * bb - bx * ab) / determinant, (bx * aa - ax * ab) / determinant];
  return d > 0 && dmin >= 0 ? { ...block, d: Math.f16round(d), dmin: Math.f16round(dmin) } : undefined;
}

describe.each(rules)("the fit of super-blocks, %s", (_, rule) => {
  const random = new Random(seed);
  const cases = Array.from({ length: repeats({ usual: 100, all: 2000 }) }, () => drawn(random, rule));

  test("a scale or a minimum below 0 is never kept, though its error would be smaller", () => {
    for (const [at, values] of cases.entries()) {
      const { d, dmin } = fitRaisedBlock(values, rule);
      expect([at, d >= 0, dmin >= 0]).toEqual([at, true, true]);
    }
  });

  test("another step of least squares gains less than half a percent", () => {
    let [before, after] = [0, 0];
    for (const values of cases) {
      const block = fitRaisedBlock(values, rule);
      const error = leastError(values, rule, block);
      const next = refit(values, rule, block);
      const size = values.reduce((sum, value) => sum + value * value, 0);
      before += error / size;
      after += (next === undefined ? error : Math.min(error, leastError(values, rule, next))) / size;
    }
    expect(after).toBeGreaterThan(0.995 * before);
  });
});

// No specification fixes the number of starts and rounds of the search. These hashes depend on it.
test.each<[GgmlFormat, string]>([
  ["q2_K", "34a06d16db368e78"],
  ["q3_K", "1ee5790e92beff96"],
  ["q4_K", "c103af9d903e4b8b"],
  ["q5_K", "7d9bbc801cc7ed9e"],
  ["q6_K", "b0f426b2a7a9875c"],
  ["iq4_nl", "6bd8fe623f544355"],
])("%s packs the same weights into the same bytes as earlier versions", (format, expected) => {
  const random = new Random(5);
  const values = Float32Array.from({ length: 64 * VALUES }, () => random.next() + random.next() - 1);
  const { packed } = quantizeGgml(fromArray(values, [64, VALUES]), format).parts;
  const hash = new Bun.CryptoHasher("sha256").update(packed.dataSync() as Uint8Array).digest("hex");
  expect(hash.slice(0, 16)).toBe(expected);
});
