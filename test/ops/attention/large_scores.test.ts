/**
 * Scores near 1e2 to 6e4, where float32 rounds a log-sum-exp by up to 2e-3: rows of probabilities must still sum to 1,
 * and gradients must still cancel. Every score is exact in float32 in any order of summation, so that the scores have
 * no rounding error.
 */
import { describe, expect, test } from "bun:test";
import { flashAttention } from "../../../src/ops/attention/flash_attention.ts";
import type { FlashAttentionOptions } from "../../../src/ops/attention/options.ts";
import { detach, grad } from "../../../src/ops/gradient/backward.ts";
import { add, mul, sum, tensor } from "../../../src/ops/index.ts";
import { Generator } from "../../../src/random/generator.ts";
import type { DType } from "../../../src/tensor/dtype.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { usually } from "../../support/repeats.ts";
import { tested } from "../run.ts";
import { Random, rounder } from "../samples.ts";
import { epsilon } from "../tolerance.ts";
import { dtypes, on, type Way } from "./run.ts";

const ways = tested.flatMap((backend) =>
  (["fused", "unfused"] as const).map((path): Way => ({ name: `${backend} ${path}`, backend, path })),
);
/** 16 equal columns determine the size of the scores: 100, 1e4, 16384, 59536. */
const sides = [2.5, 25, 32, 61];
const [dim, valueDim] = [17, 5];

interface Sizes {
  readonly queries: number;
  readonly keys: number;
}
type Matrix = readonly (readonly number[])[];
interface Operands {
  readonly q: Matrix;
  readonly k: Matrix;
  readonly v: Matrix;
  readonly gradOut: Matrix;
}

/** The terms that a case adds to scores. */
interface Case extends Sizes {
  readonly options?: FlashAttentionOptions;
  readonly attends?: (i: number, j: number) => boolean;
  /** If set, the columns of queries that make scores large are 0, and this number is added to the scores instead. */
  readonly bias?: number;
  /** Added to the large part of the scores. */
  readonly sink?: number;
}

const masked = (i: number, j: number) => i % 3 !== 1 && (i + j) % 4 !== 0;
const cases: Readonly<Record<string, Case>> = {
  "all to all": { queries: 20, keys: 24 },
  "few queries": { queries: 3, keys: 1100 },
  causal: { queries: 20, keys: 13, options: { causal: true }, attends: (i, j) => j <= i - 7 },
  "a mask with empty rows": { queries: 20, keys: 24, attends: masked },
  "a window": { queries: 30, keys: 30, options: { window: 3 }, attends: (i, j) => Math.abs(i - j) <= 3 },
  "a sink": { queries: 20, keys: 24, sink: 1.5 },
  "a bias": { queries: 20, keys: 24, bias: 16384 },
  dropout: { queries: 20, keys: 24, options: { dropout: 0.3 } },
};

/** Multiples of 1/64 below 4 in size, some of them equal: exact in each dtype, bfloat16 too. */
const sixtyFourth = (random: Random): number => Math.round((random.next() * 2 - 1) * 255) / 64;

function draw({ queries, keys, bias }: Case, side: number): Operands {
  const random = new Random(side * 100 + keys);
  const rows = (count: number, columns: number, number: () => number) =>
    Array.from({ length: count }, () => Array.from({ length: columns }, number));
  const wide = (count: number, first: () => number, large: number) =>
    rows(count, dim, () => large).map((row) => row.with(0, first()));
  const small = () => Math.round((random.next() * 2 - 1) * 16) / 16;
  const k = wide(keys, () => sixtyFourth(random), side);
  return {
    q: wide(queries, () => [1, -1, 0.5, 2][Math.floor(random.next() * 4)], bias === undefined ? side : 0),
    k: k.map((row, j) => (j % 5 === 4 ? k[j - 1] : row)), // ties
    v: rows(keys, valueDim, small),
    gradOut: rows(queries, valueDim, small),
  };
}

interface Results {
  readonly out: number[];
  readonly q: number[];
  readonly k: number[];
  readonly v: number[];
  /** The gradients of the bias and the sinks; empty if a case has none. */
  readonly bias: number[];
  readonly sinks: number[];
}

interface Setup extends Operands {
  readonly of: Case;
  readonly side: number;
  /** The factor of dropout. */
  readonly keep: (i: number, j: number) => number;
}

/** How numbers and partial sums are rounded. `magnitudes`: each result is the sum of its terms' absolute values. */
interface Rounding {
  readonly store: (value: number) => number;
  readonly sum: (value: number) => number;
  readonly magnitudes?: boolean;
}
const exact: Rounding = { store: (x) => x, sum: (x) => x };

/** Attention by the formula: probabilities are exp(s − m) divided by their sum; scores are exact. */
function attention({ of, side, q, k, v, gradOut, keep }: Setup, { store, sum: round, magnitudes }: Rounding): Results {
  const zeros = (rows: number, columns: number) => new Array<number>(rows * columns).fill(0);
  const term = magnitudes ? Math.abs : (value: number) => value;
  const results: Results = {
    out: zeros(q.length, valueDim),
    q: zeros(q.length, dim),
    k: zeros(k.length, dim),
    v: zeros(v.length, valueDim),
    bias: zeros(of.bias === undefined ? 0 : q.length, k.length),
    sinks: zeros(of.sink === undefined ? 0 : 1, 1),
  };
  const addTo = (sums: number[], at: number, value: number) => {
    sums[at] = round(sums[at] + term(round(value)));
  };
  const dot = (a: readonly number[], b: readonly number[]) =>
    a.reduce((total, value, at) => round(total + term(round(value * b[at]))), 0);
  for (const [i, query] of q.entries()) {
    const attended = k.flatMap((_, j) => (of.attends?.(i, j) === false ? [] : [j]));
    const scores = attended.map((j) => query.reduce((s, value, d) => s + value * k[j][d], of.bias ?? 0));
    const sinks = of.sink === undefined ? [] : [16 * side * side + of.sink];
    const most = Math.max(...scores, ...sinks);
    const parts = [...scores, ...sinks].map((s) => round(Math.exp(s - most)));
    const whole = parts.reduce((total, part) => round(total + part), 0);
    const p = attended.map((_, at) => round(parts[at] / whole));
    for (const [at, j] of attended.entries())
      for (let e = 0; e < valueDim; e++) {
        const weight = store(p[at] * keep(i, j));
        addTo(results.out, i * valueDim + e, weight * v[j][e]);
        addTo(results.v, j * valueDim + e, weight * gradOut[i][e]);
      }
    const own = results.out.slice(i * valueDim, (i + 1) * valueDim).map(store);
    const delta = dot(gradOut[i], own);
    for (const [at, j] of attended.entries()) {
      const incoming = keep(i, j) * dot(gradOut[i], v[j]);
      const ds = store(p[at] * (magnitudes ? incoming + delta : round(incoming - delta)));
      if (of.bias !== undefined) addTo(results.bias, i * k.length + j, ds);
      for (let d = 0; d < dim; d++) {
        addTo(results.q, i * dim + d, ds * k[j][d]);
        addTo(results.k, j * dim + d, ds * query[d]);
      }
    }
    if (sinks.length > 0) addTo(results.sinks, 0, -round(parts.at(-1)! / whole) * delta);
  }
  for (const values of Object.values(results)) for (const [at, value] of values.entries()) values[at] = store(value);
  return results;
}

const names = ["out", "q", "k", "v", "bias", "sinks"] as const;
const numbers = (x: Tensor): number[] => Array.from(x.dataSync(), Number);
const largest = (values: readonly number[]) => values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);

function leaf(rows: Matrix, dtype: DType): Tensor {
  const shape = [1, 1, rows.length, rows[0].length];
  return tensor(rows.flat(), { shape, dtype: dtype as "float32", requiresGrad: true });
}

/** Returns new options for a call; their tensors have the call's dtype. */
function optionsOf({ options, attends, bias, sink, queries, keys }: Case, side: number, dtype: DType) {
  const pairs = Array.from({ length: queries * keys }, (_, at) => [Math.floor(at / keys), at % keys] as const);
  const isMasked = attends === masked;
  const mask = isMasked
    ? tensor(
        pairs.map(([i, j]) => attends(i, j)),
        { shape: [queries, keys] },
      )
    : undefined;
  const ofDType = { dtype: dtype as "float32", requiresGrad: true };
  const ofBias = { ...ofDType, shape: [queries, keys] };
  return {
    ...options,
    mask,
    scale: 1,
    generator: new Generator(3),
    bias: bias === undefined ? undefined : tensor(new Array<number>(queries * keys).fill(bias), ofBias),
    sinks: sink === undefined ? undefined : tensor([16 * side * side + sink], ofDType),
  } as const;
}

/** The library's results, and the factors of its dropout. */
function compute({ q, k, v, gradOut }: Operands, of: Case, side: number, dtype: DType, way: Way) {
  return on(way, () => {
    const leaves = [leaf(q, dtype), leaf(k, dtype), leaf(v, dtype)] as const;
    const options = { ...optionsOf(of, side, dtype), path: way.path };
    const { out, dropoutMask } = flashAttention(...leaves, { ...options, returnDropoutMask: true });
    const { bias, sinks } = options;
    const all = [...leaves, ...(bias ? [bias] : []), ...(sinks ? [sinks] : [])];
    const [gradQ, gradK, gradV, further] = grad(out, all, { gradOutputs: [detach(leaf(gradOut, dtype))] }).map(numbers);
    const kept = of.options?.dropout && numbers(dropoutMask!);
    const ofOptions = { bias: bias ? further : [], sinks: sinks ? further : [] };
    return { got: { out: numbers(out), q: gradQ, k: gradK, v: gradV, ...ofOptions }, kept };
  });
}

/**
 * FlashAttention's rule: at most twice the error of the plain computation, and three times for gradients, whose
 * probabilities, outputs and score gradients are rounded to the dtype; or, if that error happens to be tiny, 32
 * roundings of the sum of a result's terms, which include those of exp for differences up to 16.
 */
function check(setup: Setup, got: Results, dtype: DType): void {
  const [want, plain, terms] = [
    exact,
    { store: rounder(dtype), sum: rounder(dtype === "float64" ? dtype : "float32") },
    { ...exact, magnitudes: true },
  ].map((rounding) => attention(setup, rounding)) as [Results, Results, Results];
  const unit = epsilon[dtype === "float64" ? dtype : "float32"]! / 2;
  for (const name of names) {
    const error = (values: readonly number[]) => largest(values.map((value, at) => value - want[name][at]));
    const allowed = (name === "out" ? 2 : 3) * error(plain[name]) + epsilon[dtype]! * largest(want[name]);
    expect(got[name].every(Number.isFinite), name).toBe(true);
    expect(error(got[name]), name).toBeLessThanOrEqual(allowed + 32 * unit * largest(terms[name]));
  }
}

describe.each(ways)("attention with large scores on $name", (way) => {
  for (const dtype of dtypes.filter((own) => way.backend !== "metal" || own !== "float64"))
    test.each(Object.keys(cases))(`large scores are accurate in ${dtype}, %s`, (name) => {
      const of = cases[name];
      // A usual run has every other size of scores, so that two dtypes of a case, or two cases of a dtype, cover all
      // sizes.
      const turn = (Object.keys(cases).indexOf(name) + dtypes.indexOf(dtype)) % 2;
      const some = usually(sides, (_, at) => at % 2 === turn);
      // A sink is a number of its dtype, and bfloat16 can't hold this many digits.
      for (const side of of.sink !== undefined && epsilon[dtype]! > epsilon.float32! ? [2.5] : some) {
        const operands = draw(of, side);
        const { got, kept } = compute(operands, of, side, dtype, way);
        const keep = (i: number, j: number) => (kept ? kept[i * of.keys + j] / 0.7 : 1);
        check({ ...operands, of, side, keep }, got, dtype);
      }
    });

  test("cancellation is exact for keys that are nearly equal, and equal values", () => {
    const row = (...values: number[]) => tensor(values, { shape: [1, 1, values.length, 1], requiresGrad: true });
    const [q, k, v] = [row(100), row(100, 99.995, 99.99), row(1, 1, 1)];
    const gradients = on(way, () =>
      grad(sum(flashAttention(q, k, v, { scale: 1, path: way.path })), [q, k, v]).map(numbers),
    );
    expect(largest(gradients[0])).toBeLessThan(100 * 2 ** -22); // 0.0394 if a row sums to 1.0004
    expect(largest(gradients[1])).toBeLessThan(100 * 2 ** -22);
    expect(gradients[2].reduce((total, own) => total + own, 0)).toBeCloseTo(1, 6);
  });

  // The Hessian times a direction is the derivative of the gradients along it.
  test("gradients of gradients are accurate along a direction", () => {
    const of = cases["all to all"];
    for (const side of sides) {
      const operands = draw(of, side);
      const random = new Random(5);
      const direction = (["q", "k", "v"] as const).map((name) =>
        operands[name].map((row) => row.map(() => random.next() - 0.5)),
      ) as unknown as [Matrix, Matrix, Matrix];
      const moved = (by: number): Setup => {
        const along = (rows: Matrix, step: Matrix) => rows.map((row, r) => row.map((x, c) => x + by * step[r][c]));
        const { q, k, v, gradOut } = operands;
        const [dq, dk, dv] = direction;
        return { q: along(q, dq), k: along(k, dk), v: along(v, dv), gradOut, of, side, keep: () => 1 };
      };
      const step = 1e-4 / side;
      const [after, before] = [step, -step].map((by) => attention(moved(by), exact)) as [Results, Results];
      const got = on(way, () => {
        const leaves = [leaf(operands.q, "float32"), leaf(operands.k, "float32"), leaf(operands.v, "float32")] as const;
        const out = flashAttention(...leaves, { scale: 1, path: way.path });
        const gradOutputs = [detach(leaf(operands.gradOut, "float32"))];
        const first = grad(out, leaves, { gradOutputs, createGraph: true });
        const dots = first.map((own, at) => sum(mul(own, detach(leaf(direction[at], "float32")))));
        return grad(add(add(dots[0], dots[1]), dots[2]), leaves).map(numbers);
      });
      for (const [at, name] of (["q", "k", "v"] as const).entries()) {
        const want = after[name].map((value, index) => (value - before[name][index]) / (2 * step));
        const error = largest(got[at].map((value, index) => value - want[index]));
        expect(error / largest(want), name).toBeLessThan(1e-4); // the error would be up to 0.3 if rows summed to 1.0004
      }
    }
  });
});
