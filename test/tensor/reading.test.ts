/** `data()` lets the event loop run, on every backend, and reads the right elements. */
import { describe, expect, test } from "bun:test";
import "../../src/checked_methods.ts";
import type { BackendName } from "../../src/backend/names.ts";
import { withBackend, withStrict } from "../../src/backend/policy.ts";
import { environmentFlag } from "../../src/core/environment.ts";
import { toDType } from "../../src/ops/copy/cast.ts";
import { ones, zeros } from "../../src/ops/creation/full.ts";
import { fromArray, tensor } from "../../src/ops/creation/tensor.ts";
import { exp } from "../../src/ops/elementwise/exponential.ts";
import { matmul } from "../../src/ops/matmul/matmul.ts";
import { transpose } from "../../src/ops/view/permute.ts";
import { type DataOf, dtypes, type RealDType } from "../../src/tensor/dtype.ts";
import { Tensor } from "../../src/tensor/tensor.ts";

const tested = (["metal", "cpu", "reference"] as const).filter(
  (name) => name !== "metal" || !environmentFlag("ORCHARD_SKIP_METAL"),
);
const on = <Result>(backend: BackendName, body: () => Result): Result =>
  withStrict(true, () => withBackend(backend, body));

/** How often a timer ran while a promise was awaited. */
async function turnsDuring(promise: Promise<unknown>): Promise<number> {
  let turns = 0;
  const timer = setInterval(() => turns++, 0);
  await promise;
  clearInterval(timer);
  return turns;
}

/** Sums of 1,024 products of ones, some tenths of a second of the software device's time. */
const longProduct = (): Tensor => {
  const ones = exp(zeros([128, 1024]));
  return matmul(ones, transpose(ones, 0, 1));
};

describe("a timer runs while data() is awaited", () => {
  test.if(tested.includes("metal" as never))(
    "a timer runs on metal during a long operation, whose call returns before it is done",
    async () => {
      on("metal", () => longProduct()).dataSync(); // compiles the kernel
      const result = on("metal", longProduct);
      expect(result.storage.memory.whenReady()).not.toBeNull();
      const pending = result.data();
      expect(await turnsDuring(pending)).toBeGreaterThan(3);
      expect((await pending)[16_383]).toBe(1024);
    },
  );

  test.each(tested)("a timer runs on %s while a large tensor is gathered or widened", async (backend) => {
    const values = Float32Array.from({ length: 2 ** 21 }, (_, index) => index % 256);
    const x = fromArray(values, [2 ** 11, 2 ** 10]);
    const turned = on(backend, () => transpose(x, 0, 1));
    const narrow = on(backend, () => toDType(x, "bfloat16"));
    narrow.dataSync(); // no work is left
    for (const large of [turned, narrow]) {
      const pending = large.data();
      expect(await turnsDuring(pending)).toBeGreaterThan(3);
      expect(await pending).toEqual(large.dataSync());
    }
  });
});

type Equal<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false;

describe("data() returns typed arrays", () => {
  test.each([...dtypes])("%s gives a typed array of the same kind, for a whole tensor and a part", async (dtype) => {
    const x = toDType(fromArray(Uint8Array.from({ length: 70_000 }, (_, index) => index % 100)), dtype);
    const view = new Tensor(x.storage, dtype, [2, 3, 11_000], [1, 2, 6], 5);
    const data = await view.data();
    expect(data.constructor.name).toBe(arrays[dtype]);
    const bool = (value: number) => (dtype === "bool" ? Number(value > 0) : value);
    const expected = Array.from({ length: 66_000 }, (_, index) => {
      const [a, b, c] = [Math.floor(index / 33_000), Math.floor(index / 11_000) % 3, index % 11_000];
      return bool((5 + a + 2 * b + 6 * c) % 100);
    });
    expect(Array.from(data, Number)).toEqual(expected);
    expect(view.dataSync()).toEqual(data);
  });

  test("types of data() follow the dtype", () => {
    const halves: Promise<Float16Array> = zeros([1], { dtype: "float16" }).data();
    const wide: Promise<Float32Array> = zeros([1], { dtype: "bfloat16" }).data();
    const longs: BigInt64Array = zeros([1], { dtype: "int64" }).dataSync();
    const truth: boolean = zeros([1], { dtype: "bool" }).item();
    const long: bigint = zeros([1], { dtype: "int64" }).item();
    const isExact: Equal<DataOf<"int32">, Int32Array> = true;
    expect([truth, long, longs.length, isExact]).toEqual([false, 0n, 1, true]);
    return Promise.all([halves, wide]);
  });

  test("data() has the elements even if the tensor is disposed of meanwhile", async () => {
    for (const backend of tested) {
      const x = on(backend, () => exp(zeros([300, 300])));
      const turned = transpose(x, 0, 1);
      const pending = turned.data();
      turned.dispose();
      x.dispose();
      expect((await pending).every((value) => value === 1)).toBe(true);
      expect(x.storage.isReleased).toBe(true);
    }
  });
});

const arrays: Readonly<Record<RealDType, string>> = {
  float64: "Float64Array",
  float32: "Float32Array",
  float16: "Float16Array",
  bfloat16: "Float32Array",
  int64: "BigInt64Array",
  int32: "Int32Array",
  uint32: "Uint32Array",
  int8: "Int8Array",
  uint8: "Uint8Array",
  bool: "Uint8Array",
};

test("sizes returns the shape of each rank", () => {
  for (let rank = 0; rank <= 8; rank++) {
    const shape = Array.from({ length: rank }, (_, axis) => axis + 1);
    const x = zeros(shape);
    const sizesOf = (of: number) => () => x.sizes(of as 8);
    expect<readonly number[]>(sizesOf(rank)()).toEqual(shape);
    for (let other = 0; other <= 8; other++)
      if (other !== rank)
        expect(sizesOf(other)).toThrow(`[sizes] expected a tensor of rank ${other}, got ${x.describe()}`);
  }
  const [rows, columns] = ones([2, 3]).sizes(2);
  expect(rows * columns).toBe(6);
  for (const [rank, got] of [
    [9, "9"],
    [-1, "-1"],
    [1.5, "1.5"],
  ] as const)
    expect(() => ones([2]).sizes(rank as 8)).toThrow(`[sizes] expected rank to be a rank from 0 to 8, got ${got}`);
});

test("toArray accepts only the tensor's rank", () => {
  const x = tensor([[1, 2], [3, 4]]); // biome-ignore format: a matrix
  const rows: number[][] = x.toArray({ rank: 2 });
  expect(rows).toEqual(x.toArray() as number[][]);
  expect(tensor(7n).toArray({ rank: 0 })).toBe(7n);
  const wrong =
    (...given: unknown[]) =>
    () =>
      (x.toArray as (...values: unknown[]) => unknown).call(x, ...given);
  expect(wrong({ rank: 1 })).toThrow("[toArray] expected a tensor of rank 1, got float32[2, 2]");
  expect(wrong({ rank: 9 })).toThrow("[toArray] expected rank to be a rank from 0 to 8, got 9");
  expect(wrong({ rnk: 2 })).toThrow('there is no option "rnk"; the options are rank; did you mean "rank"?');
  expect(wrong(2)).toThrow("[toArray] expected no arguments by position, got 1, with 2 as argument 1");
});

test("reading methods accept no arguments", async () => {
  const x = zeros([1]);
  for (const read of ["dataSync", "item"] as const)
    expect(() => (x[read] as (...values: unknown[]) => unknown).call(x, 3)).toThrow(
      `[Tensor.${read}] expected no arguments, got 1, with 3 as argument 1. Usage: Tensor.${read}()`,
    );
  const promise = (x.data as (...values: unknown[]) => Promise<unknown>).call(x, "float64");
  expect(promise).rejects.toMatchObject({ name: "ArgumentError", code: "tooManyArguments" });
});
