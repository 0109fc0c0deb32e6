/** Clipping, compared with the formula in float64, on every backend. */
import { describe, expect, test } from "bun:test";
import { configure, cpuLibrary } from "../../src/backend/cpu/loader.ts";
import { optim, type Tensor, tensor } from "../../src/index.ts";
import type { FloatDType } from "../../src/tensor/dtype.ts";
import { ulpOf } from "../ops/tolerance.ts";
import { bitsOf, draw, on, parameterOf, tested, valuesOf } from "./run.ts";

const { clipGradNorm, clipGradValue } = optim;
const sizes = [1, 3, 1023, 2049];

/** Parameters with gradients of these dtypes, in turn; one has none. */
function owners(dtypes: readonly FloatDType[], scale = 1): Tensor[] {
  const made = sizes.map((size, at) => {
    const dtype = dtypes[at % dtypes.length];
    const owner = parameterOf(draw(size, at), dtype === "float64" ? "float64" : "float32");
    const values = draw(size, 50 + at, dtype).map((value) => value * scale);
    owner.grad = tensor(Float64Array.from(values), { dtype });
    return owner;
  });
  return [...made, parameterOf([1])];
}

function withGradient(values: number[]): Tensor {
  const owner = parameterOf(values);
  owner.grad = tensor(Float64Array.from(values), { dtype: "float32" });
  return owner;
}

const gradientsOf = (list: readonly Tensor[]): number[][] =>
  list.flatMap(({ grad }) => (grad === null ? [] : [valuesOf(grad)]));

const normOf = (values: readonly number[], p: number): number =>
  p === Infinity
    ? Math.max(...values.map(Math.abs))
    : values.reduce((sum, value) => sum + Math.abs(value) ** p, 0) ** (1 / p);

/** Roundings of the norm, its sum with 1e-6, the quotient, the factor in the gradient's dtype and the product. */
const ROUNDINGS = 5;

describe.each(tested)("clipGradNorm on %s bounds gradients", (backend) => {
  const kinds: readonly (readonly FloatDType[])[] = [
    ["float32"],
    ["float16", "bfloat16", "float32"],
    ...(backend === "metal" ? [] : [["float64"] as const]),
  ];
  test.each([1e25, 1e-30])("gradients about %p, whose squares float32 can't hold, are clipped", (scale) => {
    for (const normType of [1, 2, 2.5, Infinity])
      on(backend, () => {
        const list = owners(["float32"], scale);
        const before = gradientsOf(list).flat();
        const norm =
          normOf(
            before.map((value) => value / scale),
            normType,
          ) * scale;
        expect(Math.abs(Number(clipGradNorm(list, 1, { normType }).item()) / norm - 1)).toBeLessThan(1e-6);
        const factor = Math.min(1 / (norm + 1e-6), 1);
        const largest = Math.max(...before.map(Math.abs));
        for (const [index, value] of gradientsOf(list).flat().entries())
          expect(Math.abs(value - before[index] * factor)).toBeLessThanOrEqual(1e-6 * factor * largest);
      });
  });

  const cases = kinds.flatMap((dtypes) => [1, 2, 2.5, Infinity].map((p) => [dtypes, p] as const));
  test.each(cases)("clipGradNorm with maximum %p and order %p equals the formula", (dtypes, p) => {
    on(backend, () => {
      const list = owners(dtypes);
      const before = gradientsOf(list);
      const norm = normOf(before.flat(), p);
      const got = clipGradNorm(list, norm / 4, { normType: p });
      expect(Math.abs(Number(got.item()) / norm - 1)).toBeLessThan(1e-6);
      const after = list.flatMap(({ grad }) => grad ?? []);
      for (const [at, gradient] of after.entries())
        for (const [index, value] of valuesOf(gradient).entries()) {
          const want = (before[at][index] * norm) / 4 / (norm + 1e-6);
          expect(Math.abs(value - want)).toBeLessThanOrEqual(ROUNDINGS * ulpOf(gradient.dtype, want));
        }
    });
  });

  test("clipGradNorm accepts more gradients than a launch, of several chunks, and views with gaps", () => {
    on(backend, () => {
      const sizes = [16_384, 16_385, 40_000, ...Array.from({ length: 14 }, (_, at) => at + 1)];
      const list = sizes.map((size, at) => withGradient(draw(size, at)));
      const wide = tensor(Float64Array.from(draw(60, 99)), { dtype: "float32" }).reshape([20, 3]);
      const view = parameterOf(draw(20, 98)) as Tensor;
      view.grad = wide.select(1, 1);
      list.splice(5, 0, view);
      const before = gradientsOf(list);
      const norm = normOf(before.flat(), 2);
      expect(Math.abs(Number(clipGradNorm(list, norm / 8).item()) / norm - 1)).toBeLessThan(1e-6);
      for (const [at, values] of gradientsOf(list).entries())
        for (const [index, value] of values.entries()) {
          const want = (before[at][index] * norm) / 8 / (norm + 1e-6);
          expect(Math.abs(value - want)).toBeLessThanOrEqual(ROUNDINGS * ulpOf("float32", want));
        }
    });
  });

  test("clipGradNorm leaves small gradients unchanged, to the bit", () => {
    on(backend, () => {
      const list = owners(["float32", "bfloat16"]);
      const before = list.flatMap(({ grad }) => (grad ? [bitsOf([grad])] : []));
      clipGradNorm(list, 1e6);
      expect(list.flatMap(({ grad }) => (grad ? [bitsOf([grad])] : []))).toEqual(before);
    });
  });

  test("clipGradNorm sums float16 without an overflow", () => {
    on(backend, () => {
      const owner = parameterOf([0, 0]);
      owner.grad = tensor([60000, 60000], { dtype: "float16" });
      expect(Number(clipGradNorm(owner, 1).item())).toBeCloseTo(60000 * Math.SQRT2, 1);
    });
  });

  test("clipGradValue keeps values in range, and NaN", () => {
    on(backend, () => {
      const owner = parameterOf([0, 0, 0, 0]);
      owner.grad = tensor([-3, 0.25, Number.NaN, 7]);
      clipGradValue([owner], 0.5);
      expect(valuesOf(owner.grad)).toEqual([-0.5, 0.25, Number.NaN, 0.5]);
    });
  });
});

describe("clipGradNorm bounds the norm of all gradients", () => {
  test("clipGradNorm gives the same bits on any number of threads", () => {
    const { native } = cpuLibrary();
    const results = ["1", "2", "5"].map((threads) => {
      configure(native, "threads", threads);
      const list = [withGradient(draw(100_000, 1)), withGradient(draw(5, 2)), withGradient(draw(70_000, 3))];
      const norm = on("cpu", () => clipGradNorm(list, 0.5));
      return bitsOf([norm, ...list.map(({ grad }) => grad!)]);
    });
    configure(native, "threads", "auto");
    expect(new Set(results).size).toBe(1);
  });

  test("clipGradNorm scales a gradient that two parameters share only once", () => {
    const [a, b] = [parameterOf([1, 1]), parameterOf([1, 1])];
    a.grad = tensor([3, 4]);
    b.grad = a.grad;
    clipGradNorm([a, b], Math.SQRT1_2 * 5);
    expect(valuesOf(a.grad)[0]).toBeCloseTo(1.5, 5);
    expect(valuesOf(b.grad)[1]).toBeCloseTo(2, 5);
  });

  test("clipGradNorm without gradients is 0", () => {
    expect(clipGradNorm([parameterOf([1])], 1).item()).toBe(0);
  });

  test("clipGradNorm with Infinity returns the norm, and changes no gradient", () => {
    const owner = parameterOf([1, 1]);
    const gradient = tensor([3, Infinity]);
    owner.grad = gradient;
    expect(clipGradNorm(owner, Infinity).item()).toBe(Infinity);
    expect(owner.grad).toBe(gradient);
    expect(valuesOf(gradient)).toEqual([3, Infinity]);
  });

  test("clipGradNorm propagates non-finite values, or rejects them with errorIfNonfinite", () => {
    const [a, b] = [parameterOf([1]), parameterOf([1])];
    a.grad = tensor([Infinity]);
    b.grad = tensor([1]);
    const message = "expected a finite norm of the gradients, got Infinity";
    expect(() => clipGradNorm([a, b], 1, { errorIfNonfinite: true })).toThrow(message);
    expect(valuesOf(b.grad)).toEqual([1]);
    clipGradNorm([a, b], 1);
    expect([valuesOf(a.grad), valuesOf(b.grad)]).toEqual([[Number.NaN], [0]]);
  });
});
