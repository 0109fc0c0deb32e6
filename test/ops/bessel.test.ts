/** Bessel functions against integrals of float64, and the values and gradients of frexp, ldexp and gradient. */
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { withBackend } from "../../src/backend/policy.ts";
import * as orchard from "../../src/index.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import fixtures from "../fixtures/functional/pytorch.json";
import { seed } from "../support/some.ts";
import { difference } from "../transforms/samples.ts";

const { tensor } = orchard;

/** ∫ f over [from, to] by the tanh-sinh rule, to about 1e-14 for functions without singularities inside. */
function integral(f: (t: number) => number, from: number, to: number): number {
  const [middle, half] = [(from + to) / 2, (to - from) / 2];
  let sum = 0;
  for (let k = -400; k <= 400; k++) {
    const u = k / 100;
    const place = Math.tanh((Math.PI / 2) * Math.sinh(u));
    const weight = ((Math.PI / 2) * Math.cosh(u)) / Math.cosh((Math.PI / 2) * Math.sinh(u)) ** 2;
    if (weight > 0) sum += weight * f(middle + half * place);
  }
  return (sum * half) / 100;
}

/** Source of the integrals: NIST Digital Library of Mathematical Functions, 10.9.2, 10.9.7 and 10.32.9. */
const j = (n: number, x: number): number => integral((t) => Math.cos(x * Math.sin(t) - n * t), 0, Math.PI) / Math.PI;
const y = (n: number, x: number): number =>
  (integral((t) => Math.sin(x * Math.sin(t) - n * t), 0, Math.PI) -
    integral(
      (t) => (Math.exp(n * t) + (-1) ** n * Math.exp(-n * t)) * Math.exp(-x * Math.sinh(t)),
      0,
      Math.asinh(60 / x + 60),
    )) /
  Math.PI;
const scaledK = (n: number, x: number): number =>
  integral((t) => Math.exp(-x * (Math.cosh(t) - 1)) * Math.cosh(n * t), 0, Math.acosh(1 + 60 / x + 60));

const functions: Readonly<Record<string, (x: number) => number>> = {
  besselJ0: (x) => j(0, x),
  besselJ1: (x) => j(1, x),
  besselY0: (x) => y(0, x),
  besselY1: (x) => y(1, x),
  modifiedBesselK0: (x) => scaledK(0, x) * Math.exp(-x),
  modifiedBesselK1: (x) => scaledK(1, x) * Math.exp(-x),
  scaledModifiedBesselK0: (x) => scaledK(0, x),
  scaledModifiedBesselK1: (x) => scaledK(1, x),
};

/** J or Y for x ≥ 100, by Hankel's expansion (DLMF 10.17.3) in float64. */
function hankel(order: number, x: number, isJ: boolean): number {
  const [m, z] = [4 * order ** 2, 8 * x];
  const p = 1 - ((m - 1) * (m - 9)) / (2 * z ** 2) + ((m - 1) * (m - 9) * (m - 25) * (m - 49)) / (24 * z ** 4);
  const q = (m - 1) / z - ((m - 1) * (m - 9) * (m - 25)) / (6 * z ** 3);
  const angle = x - ((2 * order + 1) * Math.PI) / 4;
  const [cosine, sine] = [Math.cos(angle), Math.sin(angle)];
  return Math.sqrt(2 / (Math.PI * x)) * (isJ ? p * cosine - q * sine : p * sine + q * cosine);
}

/** Positive numbers from 0.02 to 60, denser near 0, with the bounds between formulas. */
const points = [...Array.from({ length: 40 }, (_, k) => 0.02 * 1.225 ** k), 1.999, 2, 2.001, 4.999, 5, 5.001];

type Function = (x: Tensor) => Tensor;
const named = (name: string): Function => (orchard as unknown as Record<string, Function>)[name];

describe("Bessel functions have their limits", () => {
  for (const [name, oracle] of Object.entries(functions))
    test(name, () => {
      const f = named(name);
      const isOdd = name === "besselJ1";
      const signs = name.startsWith("besselJ") ? [1, -1] : [1];
      for (const backend of ["cpu", "reference", "metal"] as const)
        withBackend(backend, () => {
          for (const sign of signs) {
            const given = points.map((x) => x * sign);
            const wanted = points.map((x) => oracle(Math.fround(x)) * (isOdd ? sign : 1));
            const found = f(tensor(given)).toArray() as number[];
            for (const [at, value] of found.entries())
              expect(Math.abs(value - wanted[at])).toBeLessThan(
                4e-6 * (name.includes("K") ? wanted[at] : 1 + Math.abs(wanted[at])),
              );
            if (backend === "metal") continue;
            const wide = f(tensor(given, { dtype: "float64" })).toArray() as number[];
            for (const [at, value] of wide.entries()) {
              const exact = oracle(points[at]) * (isOdd ? sign : 1);
              expect(Math.abs(value - exact)).toBeLessThan(3e-14 * (1 + Math.abs(exact)));
            }
          }
        });
      const leaf = tensor([0.3, 1.5, 3, 4.5, 9], { dtype: "float64", requiresGrad: true });
      expect(orchard.gradcheck(f, [leaf as Tensor])).toBe(true);
    });

  test("J and Y are accurate far from 0, in float32", () => {
    const powers = fc.sample(fc.double({ min: 2, max: 7, noNaN: true }), { seed, numRuns: 200 });
    const far = powers.map((power) => Math.fround(10 ** power));
    for (const backend of ["cpu", "reference", "metal"] as const)
      withBackend(backend, () => {
        for (const [name, order] of [
          ["besselJ0", 0],
          ["besselJ1", 1],
          ["besselY0", 0],
          ["besselY1", 1],
        ] as const) {
          const found = named(name)(tensor(far)).toArray() as number[];
          for (const [at, x] of far.entries()) {
            const amplitude = Math.sqrt(2 / (Math.PI * x));
            const distance = Math.abs(found[at] - hankel(order, x, name.includes("J"))) / amplitude;
            expect({ name, backend, x, isNear: distance < 2e-6 }).toMatchObject({ isNear: true });
          }
        }
      });
  });

  test("Bessel functions have their limits at 0 and below", () => {
    const at = (name: string, x: number) => named(name)(tensor([x])).item();
    expect(["besselJ0", "besselJ1"].map((name) => at(name, 0))).toEqual([1, 0]);
    expect(["besselY0", "besselY1"].map((name) => at(name, 0))).toEqual([-Infinity, -Infinity]);
    expect(["modifiedBesselK0", "modifiedBesselK1"].map((name) => at(name, 0))).toEqual([Infinity, Infinity]);
    for (const name of ["besselY0", "besselY1", "modifiedBesselK0", "modifiedBesselK1"]) expect(at(name, -1)).toBeNaN();
    const zero = tensor([0], { dtype: "float64", requiresGrad: true }) as Tensor;
    expect(orchard.gradcheck((x) => [named("besselJ0")(x), named("besselJ1")(x)], [zero])).toBe(true);
  });
});

describe("frexp and ldexp", () => {
  const { x, mantissa, exponent, k, scaled } = fixtures.exponents;

  test("frexp and ldexp match PyTorch's results", () => {
    for (const backend of ["cpu", "reference"] as const)
      withBackend(backend, () => {
        const given = tensor(x, { dtype: "float64" });
        const found = orchard.frexp(given);
        expect(found.mantissa.toArray()).toEqual(mantissa);
        expect(found.exponent.toArray()).toEqual(exponent);
        expect(orchard.ldexp(given, tensor(k, { dtype: "int32" })).toArray()).toEqual(scaled);
      });
  });

  test("frexp and ldexp are inverse to each other for float32 of every magnitude, on every backend", () => {
    const sizes = Array.from({ length: 277 }, (_, at) => Math.fround(1.7) * 2 ** (at - 149)).map(Math.fround);
    const all = [...sizes.filter(Number.isFinite), 0, -3, Infinity, Number.NaN, -Infinity];
    for (const backend of ["cpu", "reference", "metal"] as const)
      withBackend(backend, () => {
        const found = orchard.frexp(tensor(all));
        expect(orchard.ldexp(found.mantissa, found.exponent).toArray()).toEqual(all);
        const usual = (found.mantissa.toArray() as number[]).slice(0, -5).map(Math.abs);
        expect(usual.every((each) => each >= 0.5 && each < 1)).toBe(true);
      });
  });

  test("frexp and ldexp have gradients", () => {
    const leaf = tensor([0.3, -5, 1e3], { dtype: "float64", requiresGrad: true }) as Tensor;
    const shift = tensor([3, -2, 0], { dtype: "int32" });
    expect(orchard.gradcheck((v) => [orchard.frexp(v).mantissa, orchard.ldexp(v, shift)], [leaf])).toBe(true);
    expect(() => orchard.ldexp(leaf, leaf)).toThrow(orchard.DTypeError);
  });
});

describe("the function gradient matches PyTorch's", () => {
  test("gradient() matches PyTorch's results", () => {
    for (const { shape, x, options, results } of fixtures.samples) {
      const { spacing, ...others } = options as { spacing?: unknown; edgeOrder: 1 | 2 };
      const given =
        Array.isArray(spacing) && Array.isArray(spacing[0])
          ? [tensor(spacing[0] as number[], { dtype: "float64" })]
          : spacing;
      const found = orchard.gradient(tensor(x, { dtype: "float64", shape }), {
        ...others,
        ...(given === undefined ? {} : { spacing: given as number }),
      });
      expect(found.length).toBe(results.length);
      for (const [at, each] of found.entries())
        expect(difference(each.dataSync() as Float64Array, results[at])).toBeLessThan(1e-12);
    }
  });

  test("gradient() has gradients, and rejects what it can't differentiate", () => {
    const leaf = orchard.randn([4, 3], { dtype: "float64", requiresGrad: true }) as Tensor;
    const places = tensor([0, 1, 3, 4], { dtype: "float64", requiresGrad: true }) as Tensor;
    const compute = (x: Tensor, at: Tensor) => orchard.gradient(x, { spacing: [at, 0.5], edgeOrder: 2 });
    expect(orchard.gradcheck(compute as never, [leaf, places])).toBe(true);
    expect(() => orchard.gradient(leaf, { edgeOrder: 2, dim: 1, spacing: [1, 2] })).toThrow(orchard.ArgumentError);
    expect(() => orchard.gradient(orchard.ones([1, 3]))).toThrow(orchard.ShapeError);
    expect(() => orchard.gradient(leaf, { dim: 0, spacing: [orchard.ones([3])] })).toThrow(orchard.ShapeError);
    expect(() => orchard.gradient(orchard.ones([3], { dtype: "bool" }))).toThrow(orchard.DTypeError);
    expect(orchard.gradient(tensor([1, 4, 9], { dtype: "int32" }))[0].dtype).toBe("float32");
  });
});
