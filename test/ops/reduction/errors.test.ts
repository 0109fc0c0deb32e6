/** Calls that reductions, scans and softmax reject, and their results for empty slices. */
import { describe, expect, test } from "bun:test";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import {
  all,
  amax,
  amin,
  any,
  argmax,
  argmin,
  cumprod,
  cumsum,
  logSoftmax,
  logsumexp,
  max,
  mean,
  min,
  norm,
  prod,
  softmax,
  std,
  sum,
  variance,
  varMean,
  zeros,
} from "../../../src/ops/index.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { tested } from "../run.ts";

const square = zeros([2, 3]);
const whole = zeros([2, 3], { dtype: "int32" });
const bools = zeros([2], { dtype: "bool" });
const nothing = zeros([2, 0]);

const message = (body: () => unknown): string => {
  try {
    body();
  } catch (error) {
    return error instanceof Error ? `${error.name} ${error.message}` : String(error);
  }
  return "nothing was thrown";
};

type Over = (x: Tensor, options: { dim?: number }) => unknown;
const manyAxes: readonly (readonly [string, (x: Tensor, options: { dim: readonly number[] }) => unknown])[] = [
  ["sum", sum],
  ["mean", mean],
  ["prod", prod],
  ["amax", amax],
  ["amin", amin],
  ["all", all],
  ["any", any],
  ["norm", norm],
  ["var", variance],
  ["std", std],
  ["logsumexp", logsumexp],
];
const oneAxis: readonly (readonly [string, Over])[] = [
  ["max", max],
  ["min", min],
  ["argmax", argmax],
  ["argmin", argmin],
  ["cumsum", (x, { dim = 0 }) => cumsum(x, { dim })],
  ["cumprod", (x, { dim = 0 }) => cumprod(x, { dim })],
  ["softmax", softmax],
  ["logSoftmax", logSoftmax],
];

describe("reductions reject invalid axes", () => {
  const every: readonly (readonly [string, Over])[] = [
    ...manyAxes.map(([name, call]): [string, Over] => [name, (x, { dim = 0 }) => call(x, { dim: [dim] })]),
    ...oneAxis,
  ];
  test.each(every)("%s rejects an axis out of range", (name, call) => {
    expect(message(() => call(square, { dim: 2 }))).toMatch(new RegExp(`^ShapeError \\[${name}\\] .*2`));
    expect(message(() => call(square, { dim: -3 }))).toMatch(new RegExp(`^ShapeError \\[${name}\\] .*-3`));
    expect(message(() => call(square, { dim: 0.5 }))).toMatch(new RegExp(`^ShapeError \\[${name}\\] .*0.5`));
    expect(message(() => call(square, { dim: -2 }))).toBe("nothing was thrown");
  });

  test.each(manyAxes)("%s rejects a repeated axis", (name, call) => {
    expect(message(() => call(square, { dim: [1, -1] }))).toStartWith(`ShapeError [${name}]`);
  });

  test.each([
    ["max", max],
    ["argmin", argmin],
  ] as readonly (readonly [string, Over])[])("%s rejects several axes", (name, call) => {
    expect(message(() => call(square, { dim: [0, 1] as never }))).toStartWith(`ArgumentError [${name}]`);
  });

  test.each([
    ["cumsum", cumsum],
    ["cumprod", cumprod],
  ])("%s requires one axis", (name, call) => {
    expect(message(() => call(square, {} as never))).toStartWith(`ArgumentError [${name}] missing argument dim`);
  });
});

describe("reductions reject invalid dtypes", () => {
  const floatsOnly: readonly (readonly [string, (x: Tensor) => unknown])[] = [
    ["mean", mean],
    ["var", variance],
    ["std", std],
    ["norm", norm],
    ["softmax", softmax],
    ["logSoftmax", logSoftmax],
  ];
  test.each(floatsOnly)("%s requires floats as operands", (name, call) => {
    expect(message(() => call(whole))).toStartWith(`DTypeError [${name}] expected floats, got int32[2, 3]`);
    expect(message(() => call(bools))).toStartWith(`DTypeError [${name}] expected floats, got bool[2]`);
  });

  test("mean and softmax of integers accept a float dtype, and no other", () => {
    expect(mean(whole, { dtype: "float32" }).describe()).toBe("float32[]");
    expect(softmax(whole, { dtype: "float16" }).describe()).toBe("float16[2, 3]");
    expect(message(() => mean(square, { dtype: "int64" }))).toStartWith(
      "DTypeError [mean] expected floats, got dtype int64",
    );
    expect(message(() => softmax(square, { dtype: "bool" }))).toStartWith(
      "DTypeError [softmax] expected floats, got dtype bool",
    );
  });

  test.each([
    ["argmax", argmax],
    ["argmin", argmin],
  ])("%s rejects bools", (name, call) => {
    expect(message(() => call(bools))).toStartWith(`DTypeError [${name}] expected numbers, got bool[2]`);
  });

  test("an invalid order of a norm is rejected", () => {
    expect(message(() => norm(square, { p: Number.NaN }))).toStartWith(
      "ArgumentError [norm] expected p to be a number",
    );
    expect(message(() => norm(square, { p: "nuc" as never }))).toStartWith("ArgumentError [norm]");
  });
});

describe.each(tested)("empty slices are rejected on %s", (backend) => {
  const on = <Result>(body: () => Result): Result => withStrict(true, () => withBackend(backend, body));
  const empty = on(() => zeros([2, 0]));

  const withoutValue: readonly (readonly [string, (x: Tensor) => unknown])[] = [
    ["max", max],
    ["min", (x) => min(x, { dim: 1 })],
    ["amax", (x) => amax(x, { dim: [1] })],
    ["amin", amin],
    ["argmax", (x) => argmax(x, { dim: 1 })],
    ["argmin", argmin],
    ["norm", (x) => norm(x, { p: Number.POSITIVE_INFINITY })],
    ["norm", (x) => norm(x, { p: Number.NEGATIVE_INFINITY, dim: 1 })],
    ["norm", (x) => norm(x, { p: -1 })],
  ];
  test.each(withoutValue)("%s of an empty slice has no value", (name, call) => {
    expect(message(() => on(() => call(empty)))).toMatch(
      new RegExp(`^ShapeError \\[${name}\\] float32\\[2, 0\\] has no elements along the reduced axes`),
    );
  });

  const identities: readonly (readonly [string, (x: Tensor) => Tensor, number])[] = [
    ["sum", sum, 0],
    ["prod", prod, 1],
    ["mean", mean, Number.NaN],
    ["var", variance, Number.NaN],
    ["std", std, Number.NaN],
    ["mean of varMean", (x) => varMean(x).mean, Number.NaN],
    ["norm", norm, 0],
    ["logsumexp", logsumexp, Number.NEGATIVE_INFINITY],
    ["all", all, 1],
    ["any", any, 0],
  ];
  test.each(identities)("%s of an empty slice has a value", (_, call, value) => {
    expect(Array.from(on(() => call(empty)).dataSync(), Number)).toEqual([value]);
  });

  test("along another axis, results of empty tensors are empty", () => {
    for (const call of [sum, amax, variance, logsumexp, argmax] as Over[])
      expect((on(() => call(empty, { dim: 0 })) as Tensor).describe()).toMatch(/^(float32|int64)\[0\]$/);
    for (const call of [softmax, logSoftmax, cumsum] as ((x: Tensor, options: { dim: number }) => Tensor)[])
      for (const dim of [0, 1]) expect(on(() => call(nothing, { dim })).shape).toEqual([2, 0]);
  });
});
