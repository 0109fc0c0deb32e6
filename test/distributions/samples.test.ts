/**
 * Samples: of the right distribution, with the right gradients, and with the same bits on every backend. The generators
 * are seeded, so these figures never change.
 */
import { describe, expect, test } from "bun:test";
import { distributions, Generator, gammainc, grad, sum, type Tensor, tensor, zeros } from "../../src/index.ts";
import { backendsOf, bytesOf, on } from "../random/backends.ts";
import { chiSquare, kolmogorovSmirnov } from "../random/statistics.ts";
import { repeats } from "../support/repeats.ts";

const d = distributions;
const numbersOf = (x: Tensor): number[] => Array.from(x.dataSync() as ArrayLike<number | bigint>, Number);
const wide = (x: number): Tensor => tensor(x, { dtype: "float64" });

/** Parameters of both regimes of each algorithm; concentrations below and above 1, means below and above 10. */
const continuous: Readonly<Record<string, (of: (x: number) => Tensor) => distributions.Distribution>> = {
  Normal: (of) => new d.Normal(of(1), of(2)),
  LogNormal: (of) => new d.LogNormal(of(0.5), of(0.75)),
  HalfNormal: (of) => new d.HalfNormal(of(2)),
  Uniform: (of) => new d.Uniform(of(-1), of(3)),
  Laplace: (of) => new d.Laplace(of(1), of(2)),
  Cauchy: (of) => new d.Cauchy(of(1), of(2)),
  Gumbel: (of) => new d.Gumbel(of(1), of(2)),
  Exponential: (of) => new d.Exponential(of(2)),
  Weibull: (of) => new d.Weibull(of(2), of(0.75)),
  "Gamma of shape 0.3": (of) => new d.Gamma(of(0.3), of(2)),
  "Gamma of shape 1": (of) => new d.Gamma(of(1), of(1)),
  "Gamma of shape 30": (of) => new d.Gamma(of(30), of(2)),
  Chi2: (of) => new d.Chi2(of(3)),
  HalfCauchy: (of) => new d.HalfCauchy(of(2)),
  Pareto: (of) => new d.Pareto(of(2), of(3)),
  InverseGamma: (of) => new d.InverseGamma(of(3), of(2)),
  Beta: (of) => new d.Beta(of(0.5), of(2)),
  "Beta of large shapes": (of) => new d.Beta(of(12), of(5)),
  StudentT: (of) => new d.StudentT(of(3)),
  VonMises: (of) => new d.VonMises(of(1), of(0.5)),
  "VonMises, concentrated": (of) => new d.VonMises(of(3), of(40)),
};
const discrete: Readonly<Record<string, (of: (x: number) => Tensor) => distributions.Distribution>> = {
  Bernoulli: (of) => new d.Bernoulli(of(0.3)),
  "Bernoulli of logits": (of) => new d.Bernoulli({ logits: of(-0.5) }),
  Geometric: (of) => new d.Geometric(of(0.2)),
  "Poisson of mean 2": (of) => new d.Poisson(of(2)),
  "Poisson of mean 10": (of) => new d.Poisson(of(10)),
  "Poisson of mean 200": (of) => new d.Poisson(of(200)),
  "Binomial of few": (of) => new d.Binomial(of(8), of(0.4)),
  "Binomial of many": (of) => new d.Binomial(of(200), of(0.1)),
  "Binomial of many likely": (of) => new d.Binomial(of(60), of(0.75)),
  NegativeBinomial: (of) => new d.NegativeBinomial(of(2.5), of(0.6)),
  Categorical: (of) => new d.Categorical({ logits: of(0).add(tensor([0, 1, -1, 0.5])) }),
};

/** The distribution function between the least and the largest value, by the trapezoidal rule on exp(logProb). */
function integrated(of: distributions.Distribution, low: number, high: number): (x: number) => number {
  const steps = 20_000;
  const at = Float64Array.from({ length: steps + 1 }, (_, i) => low + ((high - low) * (i + 0.5)) / (steps + 1));
  const density = numbersOf(of.logProb(tensor(at)).exp());
  const sums = [0];
  for (const own of density) sums.push(sums.at(-1)! + (own * (high - low)) / (steps + 1));
  return (x) => {
    const place = Math.min(Math.max(((x - low) / (high - low)) * (steps + 1), 0), steps + 1);
    const whole = Math.min(Math.floor(place), steps);
    return sums[whole] + (place - whole) * (sums[whole + 1] - sums[whole]);
  };
}

const ranges: Readonly<Record<string, readonly [number, number]>> = {
  Beta: [0, 1],
  "Beta of large shapes": [0, 1],
  StudentT: [-400, 400],
  VonMises: [-Math.PI, Math.PI],
  "VonMises, concentrated": [-Math.PI, Math.PI],
};
const count = repeats({ usual: 20_000, all: 100_000 });

describe("samples follow their distribution", () => {
  test.each(Object.entries(continuous))("samples of %s have its distribution", (name, make) => {
    const values = numbersOf(make((x) => tensor(x)).sample([count], { generator: new Generator(7) }));
    const exact = make(wide);
    const range = ranges[name];
    if (range !== undefined) return expect(kolmogorovSmirnov(values, integrated(exact, ...range))).toBeLessThan(1.95);
    const sorted = values.toSorted((a, b) => a - b);
    const shares = new Map(numbersOf(exact.cdf(tensor(Float64Array.from(sorted)))).map((p, i) => [sorted[i], p]));
    expect(kolmogorovSmirnov(values, (x) => shares.get(x)!)).toBeLessThan(1.95);
  });

  test.each(Object.entries(discrete))("counts of %s have its probabilities", (_, make) => {
    const values = numbersOf(make((x) => tensor(x)).sample([count], { generator: new Generator(8) }));
    const most = Math.max(...values);
    const exact = make(wide);
    const every = Array.from({ length: most + 1 }, (_, k) => k);
    const isCategory = exact instanceof d.Categorical;
    const logs = exact.logProb(tensor(every.slice(0, isCategory ? 4 : undefined), { dtype: "float64" }));
    const expected = numbersOf(logs.exp()).map((p) => p * count);
    // Cells with few expected samples are joined to one.
    const cells: [observed: number, expected: number][] = [];
    let rest: [number, number] = [0, count];
    for (const [k, mean] of expected.entries()) {
      const observed = values.filter((value) => value === k).length;
      if (mean >= 10) {
        cells.push([observed, mean]);
        rest = [rest[0], rest[1] - mean];
      } else rest = [rest[0] + observed, rest[1]];
    }
    if (rest[1] >= 10) cells.push(rest);
    const statistic = chiSquare(
      cells.map(([observed]) => observed),
      cells.map(([, own]) => own),
    );
    expect(Math.abs(statistic)).toBeLessThan(4.3);
  });

  test("samples of vectors have their means and covariances", () => {
    const generator = new Generator(9);
    const scaleTril = tensor([
      [1, 0, 0],
      [0.5, 2, 0],
      [-1, 0.25, 0.5],
    ]);
    const loc = tensor([1, -2, 0]);
    const low = new d.LowRankMultivariateNormal(loc, tensor([[1], [-1], [2]]), tensor([1, 0.5, 2]));
    for (const of of [new d.MultivariateNormal(loc, { scaleTril }), low]) {
      const x = of.sample([count], { generator });
      const [means, covariances] = [numbersOf(x.mean(0)), numbersOf(x.T.cov())];
      const expected = numbersOf(of.covarianceMatrix);
      for (const [at, mean] of numbersOf(loc).entries()) expect(Math.abs(means[at] - mean)).toBeLessThan(0.1);
      for (const [at, own] of expected.entries()) expect(Math.abs(covariances[at] - own)).toBeLessThan(0.2);
    }
    const of = new d.Wishart(5, { scaleTril });
    const mean = numbersOf(of.sample([count], { generator }).mean(0));
    for (const [at, own] of numbersOf(of.mean).entries()) expect(Math.abs(mean[at] - own)).toBeLessThan(0.5);
  });

  test("samples of Dirichlet, OneHotCategorical and Multinomial have their means", () => {
    const generator = new Generator(10);
    const weights = tensor([
      [0.2, 1, 3],
      [1, 1, 0.5],
    ]);
    for (const of of [new d.Dirichlet(weights), new d.OneHotCategorical(weights), new d.Multinomial(4, weights)]) {
      const x = of.sample([count], { generator });
      expect(x.shape).toEqual([count, 2, 3]);
      const [mean, variance] = [numbersOf(x.mean(0)), numbersOf(x.variance(0))];
      for (const [at, own] of numbersOf(of.mean).entries()) expect(Math.abs(mean[at] - own)).toBeLessThan(0.05);
      for (const [at, own] of numbersOf(of.variance).entries()) expect(Math.abs(variance[at] - own)).toBeLessThan(0.05);
    }
  });
});

describe("samples have the same bits on every backend", () => {
  const all = {
    ...continuous,
    ...discrete,
    Dirichlet: (of: (x: number) => Tensor) => new d.Dirichlet(of(0.3).add(tensor([0, 1, 4]))),
    Multinomial: (of: (x: number) => Tensor) => new d.Multinomial(3, of(0.3).add(tensor([0, 1, 4]))),
    MultivariateNormal: (of: (x: number) => Tensor) =>
      new d.MultivariateNormal(of(0).add(zeros([2])), {
        scaleTril: of(1).mul(
          tensor([
            [1, 0],
            [0.3, 0.7],
          ]),
        ),
      }),
  };
  test.each(Object.entries(all))("samples of %s have the same bits on every backend", (_, make) => {
    for (const dtype of ["float32", "float64"] as const) {
      const runs = backendsOf(dtype).map((backend) =>
        on(backend, () => bytesOf(make((x) => tensor(x, { dtype })).sample([40], { generator: new Generator(11) }))),
      );
      expect(runs).toEqual(runs.map(() => runs[0]));
    }
  });
});

/** dx/da at a constant value of the distribution function, by central differences in float64. */
function implicit(a: number, x: number): number {
  const h = 1e-5 * Math.max(a, 0.1);
  const [above, below] = [a + h, a - h].map((own) => numbersOf(gammainc(wide(own), wide(x)))[0]) as [number, number];
  const density = Math.exp(numbersOf(new d.Gamma(wide(a), wide(1)).logProb(wide(x)))[0]);
  return -(above - below) / (2 * h) / density;
}

test.each([0.05, 0.4, 1, 2.5, 9, 40, 300])("gamma samples have implicit gradients: shape %d", (shape) => {
  const concentration = tensor(new Float64Array(12).fill(shape), { requiresGrad: true });
  const x = new d.Gamma(concentration, wide(1)).rsample([], { generator: new Generator(12) });
  const found = numbersOf(grad(sum(x), [concentration])[0] as Tensor);
  for (const [at, own] of numbersOf(x).entries()) {
    if (own < 1e-12) continue; // for such small numbers, differences of the distribution function are too inaccurate
    const expected = implicit(shape, own);
    expect(Math.abs(found[at] - expected)).toBeLessThan(1e-5 * Math.max(1, Math.abs(expected)));
  }
});

test.each([
  ["Beta", () => tensor([0.7, 3], { requiresGrad: true }), (a: Tensor) => new d.Beta(a, a.add(1))],
  ["Dirichlet", () => tensor([0.7, 3, 1], { requiresGrad: true }), (a: Tensor) => new d.Dirichlet(a)],
  ["StudentT", () => tensor([5, 9], { requiresGrad: true }), (a: Tensor) => new d.StudentT(a)],
  ["Weibull", () => tensor([1.5, 3], { requiresGrad: true }), (a: Tensor) => new d.Weibull(1, a)],
  ["LogNormal", () => tensor([0.2, 0.4], { requiresGrad: true }), (a: Tensor) => new d.LogNormal(a, 0.5)],
] as const)("the mean gradient of %s samples equals the gradient of the expected square", (_, leaf, make) => {
  const a = leaf();
  const of = make(a);
  const x = of.rsample([count], { generator: new Generator(13) });
  const found = numbersOf(grad(sum(x.square().mean(0)), [a])[0] as Tensor);
  const expected = numbersOf(grad(sum(of.variance.add(of.mean.square())), [a])[0] as Tensor);
  for (const [at, own] of expected.entries())
    expect(Math.abs(found[at] - own)).toBeLessThan(0.05 * Math.max(0.5, Math.abs(own)));
});
