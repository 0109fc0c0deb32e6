/** Tensors as JSON, and their transfer to other threads. */
import { describe, expect, test } from "bun:test";
import { ArgumentError } from "../../src/core/errors.ts";
import { fromArray, nn, quantizeGgml, type Tensor, tensor, zeros } from "../../src/index.ts";
import { dtypes } from "../../src/tensor/dtype.ts";
import { errorOf } from "../support/errors.ts";

const read = (x: Tensor) => JSON.parse(JSON.stringify(x));

describe("JSON.stringify writes a tensor's elements", () => {
  test.each(dtypes)("%s becomes its dtype, shape and nested arrays", (dtype) => {
    for (const shape of [[], [0], [3], [2, 0], [2, 3], [1, 2, 2]]) {
      const x = zeros(shape, { dtype });
      const isBool = dtype === "bool";
      const expected = JSON.parse(JSON.stringify(x.toArray(), (_, value) => (typeof value === "bigint" ? 0 : value)));
      expect(read(x)).toEqual({ dtype, shape, data: expected });
      if (shape.length === 0) expect(read(x).data).toBe(isBool ? false : 0);
    }
  });

  test("numbers that JSON lacks are written as texts", () => {
    const values = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0.5];
    expect(read(tensor(values)).data).toEqual(["NaN", "Infinity", "-Infinity", 0.5]);
    expect(read(tensor([2n ** 53n, 2n ** 53n - 1n])).data).toEqual(["9007199254740992", 9007199254740991]);
  });

  test("views, and tensors in objects, are written", () => {
    const x = tensor([[1, 2], [3, 4]]); // biome-ignore format: a matrix
    expect(JSON.stringify({ x: x.T })).toBe('{"x":{"dtype":"float32","shape":[2,2],"data":[[1,3],[2,4]]}}');
  });

  test("at most a million elements are written", () => {
    expect(read(zeros(1_000_000, { dtype: "bool" })).data.length).toBe(1_000_000);
    const error = errorOf(() => JSON.stringify(zeros(1_000_001, { dtype: "bool" })));
    expect(error).toBeInstanceOf(ArgumentError);
    expect(error.message).toContain("io.saveSafetensors");
  });
});

describe("structuredClone rejects tensors", () => {
  test.each([
    ["a tensor", () => tensor([1, 2])],
    ["a tensor in an object", () => ({ x: [tensor([1, 2])] })],
    ["a quantized tensor", () => quantizeGgml(zeros([1, 32]), "q4_0")],
    ["a module", () => new nn.Linear(2, 2)],
  ])("%s is an error, not an empty object", (_, make) => {
    expect(() => structuredClone(make())).toThrow("can not be cloned");
  });

  test("data, shape and dtype pass without a copy", async () => {
    const x = tensor([[1, 2], [3, 4]]); // biome-ignore format: a matrix
    const data = await x.data();
    const message = structuredClone({ data, shape: x.shape }, { transfer: [data.buffer as ArrayBuffer] });
    expect(data.length).toBe(0); // moved, not copied
    expect(fromArray(message.data, message.shape).toArray()).toEqual(x.toArray());
  });
});
