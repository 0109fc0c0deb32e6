import { describe, expect, test } from "bun:test";
import type { MetalMemory } from "../../../src/backend/metal/memory.ts";
import { arange } from "../../../src/ops/creation/arange.ts";
import { eye } from "../../../src/ops/creation/eye.ts";
import { fillInto } from "../../../src/ops/creation/fill.ts";
import { empty, emptyLike, full, fullLike, ones, onesLike, zeros, zerosLike } from "../../../src/ops/creation/full.ts";
import { linspace } from "../../../src/ops/creation/linspace.ts";
import { tensor } from "../../../src/ops/creation/tensor.ts";
import { mul } from "../../../src/ops/elementwise/arithmetic.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import { type DType, dtypes, isFloat } from "../../../src/tensor/dtype.ts";
import type { Scalar } from "../../../src/tensor/promotion.ts";
import { Tensor } from "../../../src/tensor/tensor.ts";
import { backendsOf, bytesOf, on, tested } from "../../random/backends.ts";
import { rounder } from "../samples.ts";

const shapes = [[], [0], [1], [7], [3, 5], [2, 0, 3], [2, 3, 17], [1031], [300, 257]] as const;
const floats: readonly DType[] = ["float64", "float32", "float16", "bfloat16"];
const integers: readonly DType[] = ["int64", "int32", "uint32", "int8", "uint8"];

const numbersOf = (x: Tensor): number[] => Array.from(x.dataSync() as ArrayLike<number | bigint>, Number);

/** Every test runs on each backend that has the dtype. */
function eachBackend(name: string, among: readonly DType[], body: (dtype: DType) => void): void {
  for (const dtype of among)
    for (const backend of backendsOf(dtype))
      test(`${name} ${dtype} on ${backend}`, () => on(backend, () => body(dtype)));
}

describe("full has the dtype of its value", () => {
  eachBackend("zeros, ones, full", dtypes, (dtype) => {
    for (const shape of shapes) {
      const count = shape.reduce((product: number, size) => product * size, 1);
      for (const [made, value] of [
        [zeros(shape, { dtype }), 0],
        [ones(shape, { dtype }), 1],
        [full(shape, 113, { dtype }), dtype === "bool" ? 1 : 113],
      ] as const) {
        expect(made.describe()).toBe(`${dtype}[${shape.join(", ")}]`);
        expect(numbersOf(made)).toEqual(new Array(count).fill(value));
      }
    }
  });

  eachBackend("full rounds once", floats, (dtype) => {
    for (const value of [0.1, -1 / 3, 65519, 1e-7, Number.NaN, Number.POSITIVE_INFINITY, -0, 1 + 2 ** -11 + 2 ** -30])
      expect(numbersOf(full([2], value, { dtype }))).toEqual([rounder(dtype)(value), rounder(dtype)(value)]);
  });

  for (const backend of tested)
    test(`full holds the largest int64 on ${backend}`, () => {
      for (const value of [2n ** 63n - 1n, -(2n ** 63n), 2n ** 53n + 1n])
        expect([...on(backend, () => full([2], value)).dataSync()]).toEqual([value, value]);
    });

  test.each([
    [3, "float32"],
    [2.5, "float32"],
    [true, "bool"],
    [5n, "int64"],
    [Number.NaN, "float32"],
  ] as const)("full with the value %p makes %s", (value: Scalar, dtype) => expect(full([1], value).dtype).toBe(dtype));

  test("full loses fractions in integers, and keeps them in bool", () => {
    expect(numbersOf(full([1], -2.7, { dtype: "int32" }))).toEqual([-2]);
    expect(full([], 0.5, { dtype: "bool" }).item()).toBe(true);
  });

  eachBackend(
    "a fill reaches the elements of a view and no other",
    ["float32", "int8", "float16", "int64"],
    (dtype) => {
      const base = full([7, 9, 4], 2, { dtype });
      const view = new Tensor(base.storage, dtype, [3, 4, 2], [72, -9, 2], 27 + 1);
      fillInto(view, 5);
      const wanted = new Array(7 * 9 * 4).fill(2);
      for (let i = 0; i < 3; i++)
        for (let j = 0; j < 4; j++) for (let k = 0; k < 2; k++) wanted[28 + 72 * i - 9 * j + 2 * k] = 5;
      expect(numbersOf(base)).toEqual(wanted);
    },
  );

  test("the `…Like` functions keep shape and dtype", () => {
    const x = tensor([[1, 2, 3]], { dtype: "int8" });
    expect(zerosLike(x).toString()).toBe(zeros([1, 3], { dtype: "int8" }).toString());
    expect(numbersOf(onesLike(x, { dtype: "int8" }))).toEqual([1, 1, 1]);
    expect(numbersOf(fullLike(x, 9))).toEqual([9, 9, 9]);
    expect(emptyLike(x).describe()).toBe("int8[1, 3]");
    expect(empty([2, 3], { dtype: "bool" }).describe()).toBe("bool[2, 3]");
  });

  test("the caller may change its shape array afterwards", () => {
    const shape = [2];
    const made = zeros(shape);
    shape[0] = 5;
    expect(made.shape).toEqual([2]);
  });
});

test("requiresGrad makes a leaf", () => {
  const x = full([3], 2, { dtype: "float64", requiresGrad: true });
  expect(x.requiresGrad && x.isLeaf).toBe(true);
  const [gradient] = grad([mul(x, x)], [x], { gradOutputs: [ones([3], { dtype: "float64" })] });
  expect(numbersOf(gradient)).toEqual([4, 4, 4]);
});

test.skipIf(!tested.includes("metal"))("storage chooses the mode of a Metal buffer", () => {
  for (const storage of ["private", "shared"] as const) {
    const x = on("metal", () => full([40], 3, { storage }));
    expect((x.storage.memory as MetalMemory).storage).toBe(storage);
    expect(numbersOf(x)).toEqual(new Array(40).fill(3));
  }
});

describe("arange returns evenly spaced numbers", () => {
  const lines: readonly (readonly [number, number, number])[] = [
    [0, 1, 0.1],
    [-1, 1, 0.1],
    [5, -5, -0.37],
    [0.5, 3, 1],
    [0, 1000, 0.1],
    [1e-30, 4e-30, 1e-33],
    [1e30, 1.5e30, 1e27],
    [-1e-41, 1e-41, 1e-43],
    [16777210, 16777230, 0.5],
    [3, 3, 1],
    [0, 0.1, 1],
    [-2049, 2050, 1.0000001],
    [-70000, 70000, 333.3],
  ];
  eachBackend("start + i · step, rounded once", floats, (dtype) => {
    for (const [start, end, step] of lines) {
      const count = Math.ceil((end - start) / step);
      const wanted = Array.from({ length: count }, (_, i) => rounder(dtype)(start + i * step));
      const got = arange(start, end, step, { dtype });
      expect(got.shape).toEqual([count]);
      expect(numbersOf(got).findIndex((value, i) => !Object.is(value + 0, wanted[i] + 0))).toBe(-1);
    }
  });

  eachBackend("whole numbers", integers, (dtype) => {
    expect(numbersOf(arange(100, { dtype }))).toEqual(Array.from({ length: 100 }, (_, i) => i));
    expect(numbersOf(arange(7, 101, 9, { dtype }))).toEqual([7, 16, 25, 34, 43, 52, 61, 70, 79, 88, 97]);
    expect(numbersOf(arange(5, 0, -2, { dtype }))).toEqual([5, 3, 1]);
    expect(numbersOf(arange(5, 5, { dtype }))).toEqual([]);
  });

  for (const backend of tested)
    test(`arange is exact beyond 2^53 on ${backend}`, () => {
      const start = 2n ** 62n + 1n;
      const made = on(backend, () => arange(start, start + 6n, 2));
      expect([...(made as Tensor<"int64">).dataSync()]).toEqual([start, start + 2n, start + 4n]);
    });

  test("arange of numbers makes float32, and a bigint among them int64", () => {
    expect([arange(3).dtype, arange(0, 3).dtype, arange(0.5, 3).dtype]).toEqual(["float32", "float32", "float32"]);
    const whole: Tensor<"int64"> = arange(3n);
    expect([whole.dtype, arange(0n, 3n).dtype, arange(0, 3n, 2).dtype]).toEqual(["int64", "int64", "int64"]);
  });
});

describe("linspace includes both ends", () => {
  const lines = [
    [0, 1, 5],
    [0, 1, 7],
    [-1, 1, 1000],
    [1, -1, 4],
    [2, 5, 1],
    [2, 5, 2],
    [2, 5, 0],
    [2.5, 2.5, 3],
    [0, 0.7, 8],
    [-3e4, 6e4, 331],
  ] as const;
  eachBackend("from both ends", floats, (dtype) => {
    for (const [start, end, steps] of lines) {
      const got = numbersOf(linspace(start, end, steps, { dtype }));
      // The exact line, except for the rounding of the step, which is multiplied by the distance from the nearer end.
      const exact = Array.from({ length: steps }, (_, i) =>
        steps === 1 ? start : (start * (steps - 1 - i) + end * i) / (steps - 1),
      );
      const allowed = Math.max(Math.abs(start), Math.abs(end)) * 2 ** -51;
      for (const [i, value] of got.entries()) {
        const [low, high] = [exact[i] - allowed, exact[i] + allowed].map(rounder(dtype)) as [number, number];
        expect(value >= low && value <= high).toBe(true);
      }
      expect(got.length).toBe(steps);
      if (steps > 1) expect([got[0], got.at(-1)]).toEqual([start, end].map(rounder(dtype)));
    }
  });

  eachBackend("integers are cut toward zero", ["int64", "int32", "int8"], (dtype) => {
    for (const [start, end, steps] of [
      [0, 10, 4],
      [10, 0, 4],
      [-100, 100, 37],
      [100, -100, 77],
      [-7, -3, 9],
      [5, 5, 3],
      [-1, 1, 2],
      [3, 9, 1],
      [3, 9, 0],
    ] as const) {
      const wanted = Array.from({ length: steps }, (_, i) =>
        steps === 1 ? start : Number((BigInt(start * (steps - 1 - i)) + BigInt(end * i)) / BigInt(steps - 1)),
      );
      expect(numbersOf(linspace(start, end, steps, { dtype }))).toEqual(wanted);
    }
  });
});

describe("eye returns an identity matrix", () => {
  eachBackend("ones on the diagonal", dtypes, (dtype) => {
    for (const [n, m] of [
      [3, 3],
      [2, 5],
      [5, 2],
      [0, 0],
      [2, 0],
      [1, 1],
      [65, 129],
    ] as const) {
      const wanted = Array.from({ length: n * m }, (_, i) => (Math.floor(i / m) === i % m ? 1 : 0));
      expect(eye(n, m, { dtype }).describe()).toBe(`${dtype}[${n}, ${m}]`);
      expect(numbersOf(eye(n, m, { dtype }))).toEqual(wanted);
    }
    expect(numbersOf(eye(2, { dtype }))).toEqual([1, 0, 0, 1]);
  });

  test("an identity matrix can be a parameter", () => expect(eye(2, { requiresGrad: true }).requiresGrad).toBe(true));
});

describe("every backend stores the same bytes", () => {
  for (const dtype of floats.filter((name) => name !== "float64" && isFloat(name)))
    test(`every backend stores the same bytes of random lines in ${dtype}`, () => {
      let state = 12345;
      const next = () => {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
        return state / 2 ** 32;
      };
      for (let round = 0; round < 60; round++) {
        const scale = 2 ** Math.floor(next() * 60 - 40);
        const start = (next() - 0.5) * scale;
        const step = (next() - 0.5) * scale * 2 ** -Math.floor(next() * 12);
        const end = start + step * Math.floor(1 + next() * 700);
        const made = tested.map((backend) => bytesOf(on(backend, () => arange(start, end, step, { dtype }))));
        for (const other of made) expect(other).toBe(made[0]);
      }
    });
});
