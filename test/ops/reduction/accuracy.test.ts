/**
 * Sums of many numbers are as accurate as pairwise ones, and every result is the same in every run, for any number of
 * threads.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { configure, cpuLibrary } from "../../../src/backend/cpu/loader.ts";
import { cpuInfo } from "../../../src/backend/cpu/report.ts";
import { metalContext } from "../../../src/backend/metal/context.ts";
import type { BackendName } from "../../../src/backend/names.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import {
  argmax,
  cumprod,
  cumsum,
  logSoftmax,
  logsumexp,
  max,
  mean,
  norm,
  prod,
  softmax,
  std,
  sum,
  tensor,
  variance,
} from "../../../src/ops/index.ts";

import type { Tensor } from "../../../src/tensor/tensor.ts";
import { tested } from "../run.ts";
import { Random } from "../samples.ts";

const on = <Result>(backend: BackendName, body: () => Result): Result =>
  withStrict(true, () => withBackend(backend, body));

/** Slow backends sum fewer numbers. */
const counts: Readonly<Record<BackendName, number>> = { cpu: 10_000_000, reference: 1_000_000, metal: 300_000 };

/** Numbers whose exact sum is known. */
interface Series {
  readonly name: string;
  readonly term: (index: number) => number;
  /** Returns the exact sum of an even number of terms. */
  readonly sum: (count: number) => number;
  readonly magnitude: (count: number) => number;
}
const tenth = Math.fround(0.1);
const series: readonly Series[] = [
  { name: "equal ones", term: () => tenth, sum: (n) => n * tenth, magnitude: (n) => n * tenth },
  {
    name: "large ones that alternate",
    term: (index) => (index % 2 === 0 ? 2 ** 20 + 0.125 : -(2 ** 20)),
    sum: (n) => n * 0.0625,
    magnitude: (n) => n * 2 ** 20,
  },
  { name: "growing ones", term: (index) => index % 4096, sum: growingSum, magnitude: growingSum },
];

function growingSum(count: number): number {
  const tail = count % 4096;
  return ((count - tail) / 4096) * ((4095 * 4096) / 2) + ((tail - 1) * tail) / 2;
}

/**
 * Higham, "The Accuracy of Floating Point Summation", 1993: log₂ n roundings of the sum of the magnitudes, and one of
 * the result.
 */
const pairwiseBound = (count: number, { magnitude }: Series): number =>
  (Math.log2(count) + 1) * 2 ** -24 * magnitude(count);

describe.each(tested)("sums of many numbers are accurate on %s", (backend) => {
  const count = counts[backend];
  for (const own of series) {
    const source = Float32Array.from({ length: count }, (_, index) => own.term(index));
    const bound = pairwiseBound(count, own);

    test(`the sum of ${own.name} is accurate`, () => {
      const x = on(backend, () => tensor(source));
      expect(Math.abs(on(backend, () => sum(x)).item() - own.sum(count))).toBeLessThanOrEqual(bound);
      const average = on(backend, () => mean(x)).item() as number;
      expect(Math.abs(average - own.sum(count) / count)).toBeLessThanOrEqual(bound / count);
    });

    test(`the running sum of ${own.name} is accurate`, () => {
      const running = on(backend, () => cumsum(tensor(source), { dim: 0 })).dataSync();
      for (let at = 1; at < count; at += 9998)
        expect(Math.abs(running[at] - own.sum(at + 1))).toBeLessThanOrEqual(pairwiseBound(at + 1, own));
    });
  }
});

/** Factors just above 1, and factors around 1, in one dense slice and in two interleaved ones. */
const factors: Readonly<Record<string, (index: number) => number>> = {
  "equal ones": () => Math.fround(1.0001),
  "ones around 1": (index) => Math.fround(0.999 + 0.002 * ((index * 0.618034) % 1)),
};
const slices: Readonly<Record<string, readonly number[]>> = { adjacent: [50_000], "side by side": [50_000, 2] };

describe.each(tested)("products of many factors are accurate on %s", (backend) => {
  for (const [name, factor] of Object.entries(factors))
    for (const [layout, shape] of Object.entries(slices))
      test(`the product of ${name} is accurate, ${layout}`, () => {
        const count = shape[0];
        const columns = shape[1] ?? 1;
        const source = Float32Array.from({ length: count * columns }, (_, at) => factor(Math.floor(at / columns)));
        const x = on(backend, () => tensor(source, { shape }));
        const running = on(backend, () => cumprod(x, { dim: 0 })).dataSync() as Float32Array;
        let [wanted, worst] = [1, 0];
        for (let at = 0; at < count; at++) {
          wanted *= factor(at);
          worst = Math.max(worst, Math.abs(running[at * columns] / wanted - 1));
        }
        expect(worst).toBeLessThan(2 * 2 ** -24);
        const whole = on(backend, () => prod(x, { dim: 0 })).dataSync()[0] as number;
        expect(Math.abs(whole / wanted - 1)).toBeLessThan(2 * 2 ** -24);
      });

  test("the gradient of the running product is accurate", () => {
    const count = 3000;
    const source = Float32Array.from({ length: count }, () => Math.fround(1.001));
    const x = on(backend, () => tensor(source, { requiresGrad: true }));
    const [gradient] = on(backend, () => grad([sum(cumprod(x, { dim: 0 }))], [x]));
    // ∂ Σ aⁱ / ∂x[k] = Σ over i ≥ k of aⁱ / a, with exponents from 1 on.
    const a = source[0];
    const above = (k: number): number => (a ** (count + 1) - a ** (k + 1)) / (a - 1) / a;
    const got = gradient.dataSync() as Float32Array;
    for (let k = 0; k < count; k += 37) expect(Math.abs(got[k] / above(k) - 1)).toBeLessThan(4 * 2 ** -24);
  });
});

test("sequential addition would exceed the bound", () => {
  for (const count of Object.values(counts)) {
    let naive = 0;
    for (let index = 0; index < count; index++) naive = Math.fround(naive + tenth);
    expect(Math.abs(naive - count * tenth)).toBeGreaterThan(pairwiseBound(count, series[0]));
  }
});

type Compute = (x: Tensor, options: { readonly dim?: number }) => Tensor;
const computations: Readonly<Record<string, Compute>> = {
  sum,
  mean,
  prod,
  norm,
  variance,
  std,
  logsumexp,
  argmax,
  max: (x, { dim = 0 }) => max(x, { dim }).values,
  softmax: (x, { dim = 0 }) => softmax(x, { dim }),
  logSoftmax: (x, { dim = 0 }) => logSoftmax(x, { dim }),
  cumsum: (x, { dim = 0 }) => cumsum(x, { dim }),
  cumprod: (x, { dim = 0 }) => cumprod(x, { dim }),
};

/** The bytes of every computation's results: of one long vector, of rows and of columns. */
function allBytes(backend: BackendName, size: number): Record<string, string> {
  const random = new Random(5);
  const columns = 250;
  const source = Float32Array.from({ length: size * columns }, () => random.next() * 2 - 1);
  return on(backend, () => {
    const [vector, square] = [tensor(source), tensor(source, { shape: [size, columns] })];
    const calls: readonly (readonly [string, Tensor, { readonly dim?: number }])[] = [
      ["vector", vector, {}],
      ["rows", square, { dim: 1 }],
      ["columns", square, { dim: 0 }],
    ];
    return Object.fromEntries(
      Object.entries(computations).flatMap(([name, compute]) =>
        calls.map(([layout, x, options]) => [`${name} of ${layout}`, bytesOf(compute(x, options))]),
      ),
    );
  });
}

const bytesOf = (result: Tensor): string => Bun.hash(new Uint8Array(result.dataSync().slice().buffer)).toString(16);

test("the cpu backend gives the same bytes on any number of threads", () => {
  const { native } = cpuLibrary();
  const { threads } = cpuInfo(native);
  const first = allBytes("cpu", 800);
  try {
    for (const count of [1, 2, 3, 7]) {
      configure(native, "threads", String(count));
      expect(allBytes("cpu", 800)).toEqual(first);
    }
  } finally {
    configure(native, "threads", String(threads));
  }
});

test.skipIf(!tested.includes("metal") || !metalContext().isSoftware)(
  "the software device gives the same bytes in any order and with any number of workers",
  () => {
    const context = metalContext();
    context.configure("check", false);
    const first = allBytes("metal", 70);
    for (const [seed, workers] of [
      [1, 1],
      [2, 2],
      [3, 5],
    ] as const) {
      context.configure("seed", seed);
      context.configure("workers", workers);
      expect(allBytes("metal", 70)).toEqual(first);
    }
  },
);

const before = tested.includes("metal") ? metalContext().report().settings : null;
afterAll(() => {
  for (const name of ["seed", "workers"]) if (before?.[name]) metalContext().configure(name, before[name]);
});
