/** Methods that fill with random numbers: distributions by the Kolmogorov-Smirnov distance, and rules of arguments. */
import { describe, expect, test } from "bun:test";
import { withBackend } from "../../../src/backend/policy.ts";
import * as o from "../../../src/index.ts";
import { isFloat } from "../../../src/tensor/dtype.ts";
import { Random } from "../samples.ts";

const SIZE = 4096;
/** A distance that samples of this size exceed with probability 2·exp(−2·2.2²), about 1 in 8,000. */
const MOST = 2.2 / Math.sqrt(SIZE);

const numbers = (x: o.Tensor): number[] => Array.from(x.dataSync() as ArrayLike<number | bigint>, Number);

/** The largest distance between the cumulative frequencies of a sample and a distribution without jumps. */
function distance(sample: readonly number[], cdf: (value: number) => number): number {
  const sorted = sample.toSorted((a, b) => a - b);
  return Math.max(
    ...sorted.map((value, at) =>
      Math.max(Math.abs(cdf(value) - at / sorted.length), Math.abs(cdf(value) - (at + 1) / sorted.length)),
    ),
  );
}

const erf = (value: number): number => Number(o.erf(o.tensor(value, { dtype: "float64" })).item());
const normalCdf = (mean: number, std: number) => (value: number) => (1 + erf((value - mean) / (std * Math.SQRT2))) / 2;

/** Methods with drawn parameters and the cumulative distribution function. */
const distributions: Readonly<
  Record<
    string,
    (random: Random) => readonly [fill: (x: o.Tensor, rest: o.Generator) => o.Tensor, cdf: (value: number) => number]
  >
> = {
  uniform_(random) {
    const [from, width] = [random.next() * 10 - 5, random.next() * 3 + 0.5];
    const cdf = (value: number) => Math.min(Math.max((value - from) / width, 0), 1);
    return [(x, generator) => x.uniform_(from, from + width, { generator }), cdf];
  },
  normal_(random) {
    const [mean, std] = [random.next() * 4 - 2, random.next() * 3 + 0.5];
    return [(x, generator) => x.normal_({ mean, std, generator }), normalCdf(mean, std)];
  },
  logNormal_(random) {
    const [mean, std] = [random.next() - 0.5, random.next() + 0.2];
    const cdf = normalCdf(mean, std);
    return [
      (x, generator) => x.logNormal_(mean, std, { generator }),
      (value) => (value <= 0 ? 0 : cdf(Math.log(value))),
    ];
  },
  exponential_(random) {
    const lambd = random.next() * 3 + 0.3;
    return [(x, generator) => x.exponential_(lambd, { generator }), (value) => 1 - Math.exp(-lambd * value)];
  },
  cauchy_(random) {
    const [median, sigma] = [random.next() * 4 - 2, random.next() * 3 + 0.5];
    const cdf = (value: number) => 0.5 + Math.atan((value - median) / sigma) / Math.PI;
    return [(x, generator) => x.cauchy_(median, sigma, { generator }), cdf];
  },
};

describe.each(["cpu", "reference"] as const)("random methods in place on %s", (backend) => {
  test.each(Object.entries(distributions))("%s draws from its distribution", (name, draw) => {
    withBackend(backend, () => {
      for (const dtype of ["float32", "float64"] as const) {
        const random = new Random(name.length * 31 + dtype.length);
        const [fill, cdf] = draw(random);
        const x = o.full([SIZE / 4, 8], Number.NaN, { dtype });
        const half = o.slice(x, { dim: 1, step: 2 });
        expect(fill(half, new o.Generator(random.integer(0, 1e6)))).toBe(half);
        expect(distance(numbers(half), cdf)).toBeLessThan(MOST);
        expect(numbers(o.slice(x, { dim: 1, start: 1, step: 2 })).every(Number.isNaN)).toBe(true);
      }
    });
  });

  test("geometric_, bernoulli_ and random_ have the probabilities of their definitions, in every dtype", () => {
    withBackend(backend, () => {
      const random = new Random(5);
      const within = (count: number, chance: number) =>
        expect(Math.abs(count / SIZE - chance)).toBeLessThan(3.7 * Math.sqrt((chance * (1 - chance)) / SIZE));
      for (const dtype of ["float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8"] as const) {
        const generator = new o.Generator(random.integer(0, 1e6));
        const x = o.zeros([SIZE], { dtype });
        const p = 0.2 + 0.6 * random.next();
        const trials = numbers(x.geometric_(p, { generator }));
        for (const k of [1, 2, 3]) within(trials.filter((value) => value === k).length, p * (1 - p) ** (k - 1));
        expect(trials.every((value) => value >= 1 && Number.isInteger(value))).toBe(true);
        within(numbers(x.bernoulli_(p, { generator })).filter((value) => value === 1).length, p);
        const chances = o.tensor([0, 1, p, p]);
        const rows = numbers(o.reshape(x, [SIZE / 4, 4]).bernoulli_(chances, { generator }));
        const columns = [0, 1, 2, 3].map((column) => rows.filter((_, at) => at % 4 === column));
        expect(columns.slice(0, 2).map((column) => new Set(column).size)).toEqual([1, 1]);
        within([...columns[2], ...columns[3]].filter((value) => value === 1).length * 2, p);
        const whole = numbers(x.random_(3, 7, { generator }));
        for (const value of [3, 4, 5, 6]) within(whole.filter((each) => each === value).length, 0.25);
        within(numbers(x.random_(2, { generator })).filter((value) => value === 1).length, 0.5);
        x.random_({ generator });
        const [most, bits] = [Math.max(...numbers(x)), isFloat(dtype) ? digits[dtype] : ranges[dtype]];
        expect(most).toBeLessThan(2 ** bits);
        expect(most).toBeGreaterThan(2 ** bits * 0.9);
      }
    });
  });
});

const digits = { float64: 53, float32: 24, float16: 11, bfloat16: 8 } as const;
const ranges: Readonly<Record<string, number>> = { int64: 63, int32: 31, uint8: 8 };

test("uniform_ and normal_ draw the same numbers as uniform and normal, and advance the same generator", () => {
  for (const dtype of ["float32", "float64", "float16", "bfloat16"] as const) {
    o.manualSeed(3);
    const x = o.zeros([5, 7], { dtype });
    const inPlace = [x.uniform_(-2, 3).toArray(), x.normal_(1, 0.5).toArray(), x.uniform_().toArray()];
    o.manualSeed(3);
    const options = { dtype };
    const made = [o.uniform(-2, 3, [5, 7], options), o.normal(1, 0.5, [5, 7], options), o.rand([5, 7], options)];
    expect(inPlace).toEqual(made.map((each) => each.toArray()));
  }
});

test("exponential_ and geometric_ are positive and finite, also where the uniform number is 0", () => {
  const size = [1 << 20];
  const generator = () => new o.Generator(3); // one of this generator's first 2²⁰ numbers is 0
  expect(o.rand(size, { generator: generator() }).amin().item()).toBe(0);
  const x = o.zeros(size).exponential_({ generator: generator() });
  expect([x.amin().item(), Number(x.amax().item()) < 20]).toEqual([2 ** -25, true]);
  expect(x.geometric_(0.5, { generator: generator() }).amin().item()).toBe(1);
});

const methods = [
  "uniform_",
  "normal_",
  "logNormal_",
  "exponential_",
  "cauchy_",
  "geometric_",
  "bernoulli_",
  "random_",
] as const;
const failureOf = (call: () => unknown): o.OrchardError | undefined => {
  try {
    call();
  } catch (error) {
    return error as o.OrchardError;
  }
  return undefined;
};

test.each(methods)("%s follows the rules of methods in place", (name) => {
  const call = (x: o.Tensor, ...more: readonly unknown[]) =>
    (x[name] as (...values: readonly unknown[]) => o.Tensor)(...(name === "geometric_" ? [0.5] : []), ...more);
  expect(failureOf(() => call(o.ones([2], { requiresGrad: true })))?.code).toBe("inPlace");
  const weight = o.ones([2], { requiresGrad: true });
  expect(o.noGrad(() => call(weight))).toBe(weight);
  expect(weight.requiresGrad && weight.isLeaf).toBe(true);
  expect(failureOf(() => call(o.expand(o.ones([1]), [3])))?.code).toBe("repeats");
  expect(failureOf(() => call(o.ones([2]), { nonsense: 1 }))?.message).toStartWith(`[${name}]`);
  expect(failureOf(() => call(o.ones([2]), ...Array(9).fill(0.5)))?.message).toStartWith(`[${name}]`);
  const integers = failureOf(() => call(o.ones([2], { dtype: "int32" })));
  const isWhole = name === "geometric_" || name === "bernoulli_" || name === "random_";
  expect(integers?.message.startsWith(`[${name}] expected a float dtype, got int32`)).toBe(isWhole ? undefined : true);
  const saved = o.full([2], 0.5);
  const loss = o.sum(o.mul(o.ones([2], { requiresGrad: true }), saved));
  call(saved);
  expect(failureOf(() => loss.backward())?.message).toContain("was changed in place");
});

test("values out of range are rejected", () => {
  const x = () => o.ones([2]);
  const calls: readonly [() => unknown, string][] = [
    [() => x().uniform_(2, 1), "from ≤ to"],
    [() => x().normal_(0, -1), "at least 0"],
    [() => x().exponential_(0), "above 0"],
    [() => x().cauchy_(0, 0), "above 0"],
    [() => x().geometric_(0), "(0, 1)"],
    [() => x().geometric_(1), "(0, 1)"],
    [() => x().bernoulli_(1.5), "[0, 1]"],
    [() => x().bernoulli_(o.ones([3])), "must be equal or 1"],
    [() => x().random_(3, 3), "from < to"],
    [() => x().random_(0.5), "whole"],
  ];
  for (const [call, part] of calls) expect(failureOf(call)?.message).toContain(part);
});
