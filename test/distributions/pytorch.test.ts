/** Densities, entropies, moments, distribution functions, divergences and gradients, compared with PyTorch's. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { distributions, grad, sum, type Tensor, tensor } from "../../src/index.ts";

type Numbers = number | string | readonly Numbers[];
type Parameters = Readonly<Record<string, Numbers>>;
interface Case {
  readonly name: string;
  readonly parameters: Parameters;
  readonly batch: number[];
  readonly event: number[];
  readonly value: Numbers;
  readonly p: Numbers;
  readonly results: Readonly<Record<string, Numbers>>;
  readonly gradients: Parameters;
}
interface Divergence {
  readonly p: string;
  readonly q: string;
  readonly left: Parameters;
  readonly right: Parameters;
  readonly divergence: Numbers;
}

const path = join(packageRoot, "test", "fixtures", "distributions", "pytorch.json");
const fixture = JSON.parse(readFileSync(path, "utf8")) as { cases: Case[]; divergences: Divergence[] };

const numbersOf = (x: Numbers): number[] =>
  typeof x === "object" ? x.flatMap(numbersOf) : [x === "inf" ? Infinity : x === "-inf" ? -Infinity : Number(x)];
const tensorOf = (x: Numbers, dtype: "float32" | "float64"): Tensor => tensor(x as number[], { dtype });

/** Creates a distribution. The count of a Multinomial is a number. */
function created(name: string, parameters: Parameters, dtype: "float32" | "float64", requiresGrad = false) {
  const kind = name.split(" ")[0];
  const leaves: Record<string, Tensor> = {};
  const given = Object.entries(parameters).map(([key, x]): [string, unknown] => {
    if (kind === "Multinomial" && key === "totalCount") return [key, x];
    const own = tensorOf(x, dtype);
    if (requiresGrad && key !== "totalCount") own.requiresGrad = true;
    leaves[key] = own;
    return [key, own];
  });
  const Class = (distributions as unknown as Record<string, new (options: object) => distributions.Distribution>)[kind];
  return { of: new Class(Object.fromEntries(given)), leaves };
}

/** The largest error relative to the magnitude, at least 1; infinite where only one is not finite. */
function errorOf(found: Tensor, expected: Numbers): number {
  const [a, b] = [Array.from(found.to("float64").dataSync() as Float64Array), numbersOf(expected)];
  if (a.length !== b.length) return Infinity;
  return Math.max(
    0,
    ...a.map((x, at) => (Object.is(x, b[at]) || x === b[at] ? 0 : Math.abs(x - b[at]) / Math.max(1, Math.abs(b[at])))),
  );
}

/** PyTorch's results have errors: those of its Bessel functions and of its Cholesky factors of products. */
const accuracy = { float64: 1e-9, float32: 2e-5 } as const;
const looser: Readonly<Record<string, number>> = {
  VonMises: 1e4,
  Wishart: 20,
  LowRankMultivariateNormal: 10,
  MultivariateNormal: 10,
};

const cases = fixture.cases.flatMap((own, at) =>
  (["float64", "float32"] as const).map((dtype) => ({ ...own, dtype, title: `${own.name} ${at % 3} ${dtype}` })),
);

const problems = (checks: Readonly<Record<string, number>>, most: number): string[] =>
  Object.entries(checks).flatMap(([name, error]) => (error <= most ? [] : [`${name}: ${error}`]));

describe("results and gradients match PyTorch's", () => {
  test.each(cases)(
    "$title matches PyTorch",
    ({ name, parameters, batch, event, value, p, results, gradients, dtype }) => {
      const { of, leaves } = created(name, parameters, dtype, true);
      expect([of.batchShape, of.eventShape]).toEqual([batch, event]);
      const at = tensorOf(value, dtype);
      if ("value" in gradients) at.requiresGrad = true;
      const logProb = of.logProb(at);
      const computed: Record<string, () => Tensor> = {
        logProb: () => logProb,
        entropy: () => of.entropy(),
        cdf: () => of.cdf(at),
        icdf: () => of.icdf(tensorOf(p, dtype)),
        mean: () => of.mean,
        variance: () => of.variance,
        stddev: () => of.stddev,
        mode: () => of.mode,
      };
      const errors = Object.fromEntries(
        Object.entries(results).map(([method, expected]) => [method, errorOf(computed[method](), expected)]),
      );
      const names = Object.keys(gradients);
      const inputs = names.map((key) => (key === "value" ? at : leaves[key]));
      const found = grad(sum(logProb), inputs) as Tensor[];
      for (const [index, key] of names.entries()) errors[`gradient of ${key}`] = errorOf(found[index], gradients[key]);
      expect(problems(errors, accuracy[dtype] * (looser[name.split(" ")[0]] ?? 1))).toEqual([]);
    },
  );
});

describe("divergences match PyTorch", () => {
  test.each(fixture.divergences)(
    "the divergence of $p from $q matches PyTorch",
    ({ p, q, left, right, divergence }) => {
      const [a, b] = [created(p, left, "float64").of, created(q, right, "float64").of];
      expect(errorOf(distributions.klDivergence(a, b), divergence)).toBeLessThan(1e-9);
    },
  );
});
