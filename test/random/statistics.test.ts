// The generators are seeded, so these figures never change, and a bound that holds once always holds.
import { describe, expect, test } from "bun:test";
import { full } from "../../src/ops/creation/full.ts";
import { tensor } from "../../src/ops/creation/tensor.ts";
import { bernoulli } from "../../src/ops/random/bernoulli.ts";
import { multinomial } from "../../src/ops/random/multinomial.ts";
import { rand } from "../../src/ops/random/rand.ts";
import { randint } from "../../src/ops/random/randint.ts";
import { normal, randn } from "../../src/ops/random/randn.ts";
import { randperm } from "../../src/ops/random/randperm.ts";
import { expand } from "../../src/ops/view/expand.ts";
import { Generator } from "../../src/random/generator.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { chiSquare, correlation, countsOf, kolmogorovSmirnov, momentsOf, normalDistribution } from "./statistics.ts";

const numbersOf = (x: Tensor): number[] => Array.from(x.dataSync() as ArrayLike<number | bigint>, Number);
const count = 200_000;
/** The tolerance of a mean, in standard errors. */
const errors = (of: number) => 4 * Math.sqrt(of / count);

/**
 * The quantile of χ² that is exceeded once in 100,000; a statistic that is too small is as suspicious as one that is
 * too large.
 */
const expectPlausible = (statistic: number) => {
  expect(statistic).toBeLessThan(4.3);
  expect(statistic).toBeGreaterThan(-4.3);
};

describe.each(["float64", "float32", "float16", "bfloat16"] as const)("statistics of random numbers, %s", (dtype) => {
  // Rounding down takes half a unit in the last place, about a quarter of epsilon of the mean.
  const cut = { float64: 0, float32: 2 ** -25, float16: 2 ** -12, bfloat16: 2 ** -9 }[dtype];

  test("the numbers of rand are uniform", () => {
    const values = numbersOf(rand([count], { generator: new Generator(1), dtype }));
    const { mean, variance, kurtosis } = momentsOf(values);
    expect(Math.abs(mean - 0.5)).toBeLessThan(errors(1 / 12) + cut);
    expect(Math.abs(variance - 1 / 12)).toBeLessThan(errors(1 / 180) + cut);
    expect(Math.abs(kurtosis - 1.8)).toBeLessThan(0.02);
    expect(kolmogorovSmirnov(values, (x) => x)).toBeLessThan(1.95 + 4 * cut * Math.sqrt(count));
    expect(Math.max(...values)).toBeLessThan(1);
    expect(Math.min(...values)).toBeGreaterThanOrEqual(0);
  });

  test("the numbers of randn are normal", () => {
    const values = numbersOf(randn([count], { generator: new Generator(2), dtype }));
    const { mean, variance, skewness, kurtosis } = momentsOf(values);
    expect(Math.abs(mean)).toBeLessThan(errors(1));
    expect(Math.abs(variance - 1)).toBeLessThan(errors(2));
    expect(Math.abs(skewness)).toBeLessThan(errors(6));
    expect(Math.abs(kurtosis - 3)).toBeLessThan(errors(24));
    if (dtype !== "bfloat16") expect(kolmogorovSmirnov(values, normalDistribution)).toBeLessThan(1.95);
    expect(Math.max(...values)).toBeGreaterThan(4);
    expect(Math.min(...values)).toBeLessThan(-4);
  });
});

test("adjacent elements, members of a pair and calls are independent", () => {
  const generator = new Generator(3);
  const values = numbersOf(randn([count], { generator }));
  const again = numbersOf(randn([count], { generator }));
  const other = numbersOf(randn([count], { generator: new Generator(4) }));
  for (const lag of [1, 2, 3, 4, 256, 1024])
    expect(Math.abs(correlation(values.slice(lag), values.slice(0, -lag)))).toBeLessThan(errors(1));
  for (const series of [again, other]) expect(Math.abs(correlation(values, series))).toBeLessThan(errors(1));
  const squares = values.map((value) => value * value);
  expect(Math.abs(correlation(squares.slice(1), squares.slice(0, -1)))).toBeLessThan(errors(1));
});

test("normal has its mean and deviation", () => {
  const { mean, variance } = momentsOf(numbersOf(normal(-3, 0.5, [count], { generator: new Generator(5) })));
  expect(Math.abs(mean + 3)).toBeLessThan(errors(0.25));
  expect(Math.abs(variance - 0.25)).toBeLessThan(errors(0.125));
});

test.each([2, 7, 10, 256, 1000])("randint below %d draws each equally often", (choices) => {
  const values = numbersOf(randint(0, choices, [count], { generator: new Generator(6) }));
  expectPlausible(chiSquare(countsOf(values, choices), new Array(choices).fill(count / choices)));
});

test.each([0.001, 0.3, 0.5, 0.99])("bernoulli of %d has its probability", (p) => {
  const ones = numbersOf(bernoulli(p, [count], { generator: new Generator(7) })).filter((value) => value === 1).length;
  expect(Math.abs(ones / count - p)).toBeLessThan(errors(p * (1 - p)));
});

describe("multinomial draws in proportion to weights", () => {
  const weights = [0.5, 3, 0.02, 1.48, 2, 1, 1.5, 0.5];
  const total = weights.reduce((sum, weight) => sum + weight, 0);

  test("with replacement draws each in proportion to its weight", () => {
    const drawn = multinomial(tensor(weights), count, { replacement: true, generator: new Generator(8) });
    const expected = weights.map((weight) => (count * weight) / total);
    expectPlausible(chiSquare(countsOf(numbersOf(drawn), weights.length), expected));
  });

  test("without replacement draws pairs as two consecutive draws do", () => {
    const rows = 100_000;
    const every = expand(tensor(weights), [rows, weights.length]);
    const drawn = numbersOf(multinomial(every, 2, { generator: new Generator(9) }));
    const pairs = Array.from({ length: rows }, (_, row) => drawn[2 * row] * weights.length + drawn[2 * row + 1]);
    const expected = weights.flatMap((first, a) =>
      weights.map((second, b) => (a === b ? 0 : (((rows * first) / total) * second) / (total - first))),
    );
    const counts = countsOf(pairs, weights.length ** 2);
    // χ² is not valid for pairs that are expected less than 5 times.
    const common = expected.flatMap((often, pair) => (often >= 5 ? [pair] : []));
    expectPlausible(
      chiSquare(
        common.map((pair) => counts[pair]),
        common.map((pair) => expected[pair]),
      ),
    );
    expect(weights.every((_, a) => counts[a * (weights.length + 1)] === 0)).toBe(true);
  });

  test("many equal weights are drawn equally often, the first ones too", () => {
    const categories = 1000;
    const drawn = multinomial(full([categories], 0.1), 50_000, { replacement: true, generator: new Generator(10) });
    expectPlausible(chiSquare(countsOf(numbersOf(drawn), categories), new Array(categories).fill(50)));
  });
});

describe("randperm draws every order equally often", () => {
  const permutations = (n: number, rounds: number, seed: number): number[][] => {
    const generator = new Generator(seed);
    return Array.from({ length: rounds }, () => numbersOf(randperm(n, { generator })));
  };

  test.each([2, 3, 4, 5])("all orders of %d are equally frequent, even and odd", (n) => {
    const rank = (order: readonly number[]) =>
      order.reduce((sum, value, at) => {
        const later = order.slice(at + 1).filter((other) => other < value).length;
        return sum * (n - at) + later;
      }, 0);
    const orders = Array.from({ length: n }, (_, i) => i + 1).reduce((product, k) => product * k, 1);
    const drawn = permutations(n, 60_000, 11).map(rank);
    expectPlausible(chiSquare(countsOf(drawn, orders), new Array(orders).fill(60_000 / orders)));
  });

  test.each([8, 32, 33])("each of %d comes to each position equally often", (n) => {
    const cells = permutations(n, 20_000, 12).flatMap((order) => order.map((value, place) => place * n + value));
    expectPlausible(chiSquare(countsOf(cells, n * n), new Array(n * n).fill(20_000 / n)));
  });

  test.each([8, 16, 64])("random orders of %d elements, a power of two, are even or odd equally often", (n) => {
    const isOdd = (order: readonly number[]) => {
      const seen = new Set<number>();
      let swaps = 0;
      for (const start of order)
        for (let at = start; !seen.has(at); at = order[at]) {
          seen.add(at);
          if (order[at] !== start) swaps++;
        }
      return swaps % 2;
    };
    expectPlausible(chiSquare(countsOf(permutations(n, 20_000, 13).map(isOdd), 2), [10_000, 10_000]));
  });

  test("randperm separates adjacent elements", () => {
    const order = numbersOf(randperm(count, { generator: new Generator(14) }));
    expect(
      Math.abs(
        correlation(
          order,
          order.map((_, i) => i),
        ),
      ),
    ).toBeLessThan(errors(1));
    expect(Math.abs(correlation(order.slice(1), order.slice(0, -1)))).toBeLessThan(errors(1));
  });
});
