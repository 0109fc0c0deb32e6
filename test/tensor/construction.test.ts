import { beforeEach, describe, expect, test } from "bun:test";
import { setBackend, withBackend } from "../../src/backend/policy.ts";
import { ArgumentError, DisposedError, DTypeError, OutOfMemoryError, ShapeError } from "../../src/core/errors.ts";
import { toDType } from "../../src/ops/copy/cast.ts";
import { zeros } from "../../src/ops/creation/full.ts";
import { fromArray, tensor } from "../../src/ops/creation/tensor.ts";
import { add } from "../../src/ops/elementwise/arithmetic.ts";
import { expand } from "../../src/ops/view/expand.ts";
import { reshape } from "../../src/ops/view/reshape.ts";
import { unsqueeze } from "../../src/ops/view/squeeze.ts";
import { type DType, dtypes } from "../../src/tensor/dtype.ts";
import { Tensor } from "../../src/tensor/tensor.ts";
import { memory } from "../../src/tensor/usage.ts";

beforeEach(() => setBackend("cpu"));

describe("tensors are made from nested arrays", () => {
  test("nested arrays determine shape and elements, and their kinds the dtype", () => {
    const cases = [
      [
        [
          [1, 2],
          [3, 4],
          [5, 6],
        ],
        "float32",
        [3, 2],
      ],
      [7, "float32", []],
      [true, "bool", []],
      [[1n, 2n], "int64", [2]],
      [[], "float32", [0]],
      [[[], []], "float32", [2, 0]],
      [[[[[[[[[1]]]]]]]], "float32", [1, 1, 1, 1, 1, 1, 1, 1]],
    ] as const;
    for (const [values, dtype, shape] of cases) {
      const made = tensor(values as never);
      expect([made.dtype, made.shape as unknown]).toEqual([dtype, [...shape]]);
      expect(made.toArray() as unknown).toEqual(values);
    }
  });

  test("typed arrays are copied with their dtype, and converted if another is given", () => {
    const source = new Float16Array([1, 2.5, -0.1]);
    const made = tensor(source);
    source[0] = 9;
    expect([made.dtype, [...made.dataSync()]]).toEqual(["float16", [1, 2.5, Math.f16round(-0.1)]]);
    expect([...tensor(new Float64Array([1.1]), { dtype: "float32" }).dataSync()]).toEqual([Math.fround(1.1)]);
    expect([...tensor(new Uint8Array([0, 7]), { dtype: "bool" }).dataSync()]).toEqual([0, 1]);
    expect([...tensor(new BigInt64Array([2n ** 63n - 1n])).dataSync()]).toEqual([2n ** 63n - 1n]);
    expect(tensor(new Int8Array(6), { shape: [2, 3] }).shape).toEqual([2, 3]);
  });

  test("bfloat16 rounds to the nearest, ties to even", () => {
    const values = [1, 1 + 2 ** -8, 1 + 3 * 2 ** -8, 1 + 2 ** -8 + 2 ** -30, 3.4e38, Number.NaN];
    expect([...tensor(values, { dtype: "bfloat16" }).dataSync()]).toEqual([
      1,
      1,
      1 + 2 ** -6,
      1 + 2 ** -7,
      Number.POSITIVE_INFINITY,
      Number.NaN,
    ]);
  });

  test("fromArray shares the array's memory on cpu and reference, from its offset in the buffer", () => {
    const source = new Float32Array([0, 1, 2, 3, 4, 5]).subarray(2);
    for (const backend of ["cpu", "reference"] as const)
      withBackend(backend, () => {
        const shared = fromArray(source, [2, 2]);
        expect(shared.toArray()).toEqual([
          [2, 3],
          [source[2], 5],
        ]);
        source[2] = source[2] + 10;
        expect(shared.toArray()).toEqual([
          [2, 3],
          [source[2], 5],
        ]);
        expect(shared.storage.memory.hostBuffer()).toBe(source.buffer);
      });
    expect(withBackend("metal", () => add(fromArray(source), 1).toArray())).toEqual([3, 4, source[2] + 1, 6]);
  });

  test("memory that a tensor can't use is rejected by fromArray", () => {
    expect(() => fromArray(new Uint16Array(2) as never)).toThrow(/fromArray.*Uint16Array/);
    expect(() => fromArray(new Float32Array(4), [3])).toThrow(/expected 3 elements for shape \[3\], got 4/);
    expect(() => fromArray(new Float32Array(new SharedArrayBuffer(8)))).toThrow(/SharedArrayBuffer.*tensor\(array\)/);
  });
});

describe("the error for an invalid value states its position", () => {
  test.each([
    [[1, 256], "uint8", /expected whole numbers from 0 to 255 for uint8, got 256 at \[1\]/],
    [[-129], "int8", /for int8, got -129 at \[0\]/],
    [[2 ** 31], "int32", /expected whole numbers from -2147483648 to 2147483647 for int32/],
    [[-1], "uint32", /got -1 at \[0\]/],
    [[0, 1.5], "int32", /got 1.5 at \[1\]/],
    [[Number.NaN], "int64", /got NaN at \[0\]/],
    [[Number.POSITIVE_INFINITY], "int32", /got Infinity at \[0\]/],
    [[2n ** 63n], "int64", /int64/],
  ] as const)("the error for %p as %s states the position", (values, dtype, message) => {
    const make = () => tensor(values as never, { dtype });
    expect(make).toThrow(DTypeError);
    expect(make).toThrow(message);
  });

  test("the error for values that are not numbers states the position", () => {
    for (const value of ["1", null, undefined, {}]) expect(() => tensor([1, value] as never)).toThrow(ArgumentError);
    expect(() => tensor(["x"] as never)).toThrow(
      /\[tensor\] expected elements to be numbers, bigints, booleans or complex numbers \{ re, im \}, got "x"/,
    );
    expect(() => tensor([1], { dtype: "float8" as never })).toThrow(
      /expected dtype to be one of float64, .*, got "float8"/,
    );
    expect(() => tensor(new Uint16Array(1) as never)).toThrow(DTypeError);
  });

  test("the error for ragged arrays states the position", () => {
    expect(() => tensor([[1, 2], [3]])).toThrow(/with an array of 2 at depth 1, got an array of 1/);
    expect(() => tensor([[1], 2])).toThrow(/with an array of 1 at depth 1, got a single value/);
    expect(() => tensor([1, [2]])).toThrow(/with a single value at depth 1, got an array of 1/);
  });
});

describe("invalid shapes are rejected", () => {
  const nine = [1, 1, 1, 1, 1, 1, 1, 1, 1];

  test("a rank over 8 is an error, from any operation", () => {
    const x = tensor(1);
    for (const make of [
      () => tensor([1], { shape: nine }),
      () => zeros(nine),
      () => expand(x, nine),
      () => reshape(x, nine),
      () => unsqueeze(expand(x, nine.slice(1)), 0),
      () => add(expand(x, nine.slice(1)), zeros(nine)),
      () => fromArray(new Float32Array(1), nine),
      () => tensor([[[[[[[[[1]]]]]]]]]),
    ])
      expect(make).toThrow(/rank of at most 8, got rank 9 \(\[1, 1, 1, 1, 1, 1, 1, 1, 1\]\)/);
  });

  test.each([[[-2]], [[1.5]], [[Number.NaN]], [[Number.POSITIVE_INFINITY]], [[2 ** 30, 2 ** 30]]])(
    "the shape %p is invalid",
    (shape) => {
      expect(() => zeros(shape)).toThrow(ShapeError);
      expect(() => tensor([], { shape })).toThrow(ShapeError);
    },
  );

  test("values that are not arrays are rejected", () => {
    for (const shape of ["3", null]) {
      expect(() => zeros(shape as never)).toThrow(ShapeError);
      expect(() => tensor([1, 2, 3], { shape: (shape ?? {}) as never })).toThrow(ShapeError);
    }
    expect(() => zeros("3" as never)).toThrow('[zeros] expected shape to be a list of sizes, got "3"');
  });

  test("another number of elements is rejected", () => {
    expect(() => tensor([1, 2, 3], { shape: [2, 2] })).toThrow("[tensor] expected 4 elements for shape [2, 2], got 3");
    expect(() => reshape(tensor([1, 2, 3]), [2, -1])).toThrow(/reshape.*3 elements/);
    expect(() => add(tensor([1, 2, 3]), tensor([1, 2]))).toThrow(
      "[add] [3] and [2] can't be broadcast together: axis -1 has 3 and 2",
    );
  });

  test("an operand that is not a tensor is rejected", () => {
    expect(() => add(tensor([1]), "1" as never)).toThrow(
      /\[add\] expected b to be a tensor, a number, a bigint or a boolean, got "1"/,
    );
  });
});

test("an error leaks no memory", () => {
  const big = new Float32Array(2 ** 16);
  const kept = tensor(big);
  Bun.gc(true);
  const before = memory().host;
  const attempts = [
    () => tensor(new Float64Array(2 ** 16).fill(0.5), { dtype: "int32" }),
    () => tensor(big, { shape: [3] }),
    () => add(kept, tensor([1, 2])),
    () => reshape(kept, [3, -1]),
    () => expand(kept, [2]),
  ];
  for (const attempt of attempts) {
    expect(attempt).toThrow();
    Bun.gc(true);
    expect([String(attempt), memory().host.liveBytes]).toEqual([String(attempt), before.liveBytes]);
  }
});

test("the error for an allocation beyond any memory states the bytes", () => {
  expect(() => withBackend("cpu", () => zeros([2 ** 50]))).toThrow(OutOfMemoryError);
  expect(() => withBackend("reference", () => zeros([2 ** 50]))).toThrow(OutOfMemoryError);
  expect(() => withBackend("metal", () => zeros([2 ** 50]))).toThrow(OutOfMemoryError);
});

describe("elements of a tensor can be read", () => {
  const one: Record<DType, unknown> = Object.fromEntries(
    dtypes.map((dtype) => [dtype, dtype === "bool" ? true : dtype === "int64" ? 1n : 1]),
  ) as Record<DType, unknown>;

  test.each([...dtypes])("%s: data, dataSync, item and toArray return the elements, of a view too", async (dtype) => {
    for (const backend of ["cpu", "reference", "metal"] as const)
      await withBackend(backend, async () => {
        const x = tensor(
          [
            [1, 0],
            [0, 1],
            [1, 1],
          ],
          { dtype },
        );
        const view = new Tensor(x.storage, dtype, [2, 3], [1, 2]); // transposed
        expect(Array.from(await view.data(), Number)).toEqual([1, 0, 1, 0, 1, 1]);
        expect(Array.from(view.dataSync(), Number)).toEqual([1, 0, 1, 0, 1, 1]);
        expect((view.toArray() as unknown[][])[0][0]).toBe(one[dtype] as never);
        expect(tensor(1, { dtype }).item() as unknown).toBe(one[dtype]);
      });
  });

  test("data() is a separate copy", async () => {
    const x = tensor([1, 2]);
    (await x.data())[0] = 9;
    x.dataSync()[1] = 9;
    expect(x.toArray()).toEqual([1, 2]);
  });

  test("the error of item() for several elements, and of any call after dispose, names the call", async () => {
    expect(() => tensor([1, 2]).item()).toThrow("[item] expected a tensor of one element, got float32[2]");
    const x = tensor([1]);
    x.dispose();
    x.dispose();
    expect(() => x.item()).toThrow(/^\[item\] a tensor float32\[1\] was used after dispose/);
    expect(() => x.toArray()).toThrow(/^\[toArray\]/);
    expect(() => x.dataSync()).toThrow(DisposedError);
    expect(() => add(x, 1)).toThrow(/^\[add\]/);
    expect(() => reshape(x, [1, 1])).toThrow(/^\[reshape\]/);
    expect(() => toDType(x, "int32")).toThrow(DisposedError);
    await expect(x.data()).rejects.toThrow(/^\[data\]/);
    expect(x.toString()).toBe("Tensor float32[1] (disposed)");
  });
});
