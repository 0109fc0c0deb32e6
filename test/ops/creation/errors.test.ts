import { describe, expect, test } from "bun:test";
import { withBackend } from "../../../src/backend/policy.ts";
import { ArgumentError, DTypeError, OrchardError, ShapeError } from "../../../src/core/errors.ts";
import { arange } from "../../../src/ops/creation/arange.ts";
import { eye } from "../../../src/ops/creation/eye.ts";
import { empty, full, fullLike, ones, zeros } from "../../../src/ops/creation/full.ts";
import { linspace } from "../../../src/ops/creation/linspace.ts";
import type { DType } from "../../../src/tensor/dtype.ts";
import type { Scalar } from "../../../src/tensor/promotion.ts";
import { tested } from "../../random/backends.ts";

type Kind = new (...parameters: never[]) => OrchardError;

function refuses(body: () => unknown, kind: Kind, ...said: readonly (string | RegExp)[]): void {
  let error: unknown;
  try {
    body();
  } catch (caught) {
    error = caught;
  }
  expect(error).toBeInstanceOf(kind);
  for (const part of said) expect((error as OrchardError).message).toMatch(part);
}

describe("invalid sizes are rejected", () => {
  for (const size of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
    test(`the size ${size} is invalid`, () => {
      refuses(() => zeros([2, size]), ShapeError, "[zeros]", `${size}`);
      refuses(() => ones([size]), ShapeError, "[ones]");
      refuses(() => full([size], 1), ShapeError, "[full]");
      refuses(() => empty([size]), ShapeError, "[empty]");
      refuses(() => eye(size), ShapeError, "[eye]");
      refuses(() => eye(2, size), ShapeError, "[eye]");
      refuses(() => linspace(0, 1, size), ShapeError, "[linspace]");
    });
  }
  test("a rank of 9 is too high", () => refuses(() => zeros(new Array(9).fill(1)), ShapeError, "rank 9", "8"));
  test("more elements than a number can count are rejected", () =>
    refuses(() => zeros([2 ** 40, 2 ** 40]), ShapeError, "more elements"));
  for (const backend of tested)
    test(`more bytes than available on ${backend} are an error`, () =>
      refuses(() => withBackend(backend, () => zeros([2 ** 45])), OrchardError, "[allocate]", `${2 ** 47}`));
});

describe("invalid dtypes and values are rejected", () => {
  test("an unknown dtype is rejected", () =>
    refuses(() => zeros([1], { dtype: "float8" as DType }), DTypeError, "float8", "float32"));
  test("integers have no gradient", () =>
    refuses(() => zeros([1], { dtype: "int32", requiresGrad: true }), DTypeError, "[zeros]", "int32"));
  test.each([
    [300, "uint8"],
    [-1, "uint8"],
    [2 ** 31, "int32"],
    [Number.NaN, "int64"],
    [Number.POSITIVE_INFINITY, "int8"],
    [2n ** 63n, "int64"],
  ] as const)("%p does not fit %s", (value, dtype) => {
    refuses(() => full([1], value, { dtype }), DTypeError, "[full]", `${value}`, dtype);
    refuses(() => fullLike(zeros([1], { dtype }), value), DTypeError, "[fullLike]", dtype);
  });
  test("a missing value is rejected", () =>
    refuses(() => full([1], "1" as unknown as Scalar), ArgumentError, "[full]", 'got "1"'));
});

describe("arange rejects invalid bounds", () => {
  test.each([
    [[0, 3, 0], "a step other than 0"],
    [[0, 3, -1], "leads away"],
    [[3, 0], "leads away"],
    [[0, Number.NaN], "end to be a finite number, got NaN"],
    [[Number.NEGATIVE_INFINITY, 0], "start to be a finite number"],
    [[0, 1, Number.NaN], "step to be a finite number"],
    [[0.5, 3, 0], "a step other than 0"],
    [[0.5, 3, -1], "leads away"],
  ] as const)("%p is rejected", (bounds, said) => {
    refuses(() => arange(...(bounds as unknown as [number, number, number])), ArgumentError, "[arange]", said);
  });
  test("arange rejects too many numbers", () =>
    refuses(() => arange(0, 1e300, 1e-300), ShapeError, "a range whose length a tensor can have"));
  test("arange rejects missing bounds", () =>
    refuses(() => arange({} as unknown as number), ArgumentError, "as numbers or bigints, got an empty object"));
  test("arange rejects values that the dtype can't hold", () => {
    refuses(() => arange(300, { dtype: "uint8" }), DTypeError, "299", "uint8");
    refuses(() => arange(-3, 3, { dtype: "uint32" }), DTypeError, "-3");
    refuses(() => arange(0, 1, 0.5, { dtype: "int32" }), DTypeError, "0.5", "float32");
    refuses(() => arange(2, { dtype: "bool" }), DTypeError, "bool");
  });
});

describe("linspace rejects invalid bounds", () => {
  test.each([
    [Number.NaN, 1],
    [0, Number.POSITIVE_INFINITY],
  ])("%p to %p is rejected", (start, end) => refuses(() => linspace(start, end, 3), ArgumentError, "finite"));
  test("linspace rejects values that the dtype can't hold", () => {
    refuses(() => linspace(0, 300, 3, { dtype: "uint8" }), DTypeError, "300", "uint8");
    refuses(() => linspace(-1.5, 3, 3, { dtype: "uint32" }), DTypeError, "-1.5", "uint32");
    refuses(() => linspace(0, 1, 3, { dtype: "bool" }), DTypeError, "bool");
  });
  test("ends of integers are truncated, as PyTorch converts them", () =>
    expect(linspace(-0.5, 3.9, 3, { dtype: "int32" }).toArray()).toEqual([0, 1, 3]));
});
