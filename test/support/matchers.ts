/** `orchard-metal/test`, as a test program uses it. */
import { describe, expect, test } from "bun:test";
import "../../src/test.ts";
import { tensor, zeros } from "../../src/index.ts";

const { NaN: nan } = Number;
const messageOf = (body: () => void): string => {
  try {
    body();
  } catch (error) {
    return Bun.stripANSI((error as Error).message);
  }
  throw new Error("nothing was thrown");
};

describe("toEqual and toStrictEqual compare tensors", () => {
  test("tensors are equal by dtype, shape and elements", () => {
    expect(tensor([1])).toEqual(tensor([1]));
    expect(tensor([1])).not.toEqual(tensor([2]));
    expect(tensor([1])).not.toEqual(tensor([1n]));
    expect(tensor([1, 2])).not.toEqual(tensor([[1, 2]]));
    expect(tensor([nan])).toEqual(tensor([nan]));
    expect(tensor([1, 2])).toStrictEqual(tensor([1, 2]));
    expect(tensor([1, 2])).not.toStrictEqual(tensor([1, 3]));
    expect(tensor([1], { requiresGrad: true })).toEqual(tensor([1]));
  });

  test("views are equal by their elements", () => {
    expect(tensor([[1, 2], [3, 4]]).T).toEqual(tensor([[1, 3], [2, 4]])); // biome-ignore format: matrices
  });

  test("tensors are compared inside lists and plain objects, with other values and matchers", () => {
    expect({ a: [tensor([1])], b: 2 }).toEqual({ a: [tensor([1])], b: 2 });
    expect({ a: [tensor([1])], b: 2 }).not.toEqual({ a: [tensor([2])], b: 2 });
    expect({ a: tensor([1]), b: "x" }).toEqual({ a: tensor([1]), b: expect.any(String) });
    expect([tensor([1])]).not.toEqual([[1]]);
  });

  test("a tensor equals no other kind of value", () => {
    expect(tensor([1])).not.toEqual([1]);
    expect(tensor(1)).not.toEqual(1);
    expect(null).not.toEqual(tensor([1]));
  });

  test("values without tensors are compared as before", () => {
    const circle: { self?: unknown } = {};
    circle.self = circle;
    expect(circle).toEqual(circle);
    expect(new Map([[1, 2]])).toEqual(new Map([[1, 2]]));
    expect<object>({ a: undefined }).toEqual({});
    expect<object>({ a: undefined }).not.toStrictEqual({});
    expect(() => expect([1, 2]).toEqual([1, 3])).toThrow();
  });

  test("a failure shows both tensors", () => {
    const message = messageOf(() => expect(tensor([1, 2])).toEqual(tensor([1, 3])));
    expect(message).toMatch(/-\s+3,\n\+\s+2,/);
  });
});

describe("toBeCloseToTensor compares within bounds", () => {
  test("toBeCloseToTensor accepts elements within atol + rtol · |expected|", () => {
    expect(tensor([10])).toBeCloseToTensor(tensor([11]), { rtol: 0.095, atol: 0 });
    expect(tensor([11])).not.toBeCloseToTensor(tensor([10]), { rtol: 0.095, atol: 0 });
    expect(tensor([1])).toBeCloseToTensor(tensor([1.000001]));
    expect(tensor([1])).not.toBeCloseToTensor(tensor([1.001]));
    expect(tensor([nan])).not.toBeCloseToTensor(tensor([nan]));
    expect(tensor([nan])).toBeCloseToTensor(tensor([nan]), { equalNan: true });
  });

  test("toBeCloseToTensor broadcasts no shape, and converts no dtype", () => {
    expect(messageOf(() => expect(zeros([2])).toBeCloseToTensor(zeros([1])))).toContain("float32[1], got float32[2]");
    expect(messageOf(() => expect(tensor([1n])).toBeCloseToTensor(tensor([1])))).toContain("float32[1], got int64[1]");
    expect(messageOf(() => expect(1 as unknown).toBeCloseToTensor(zeros([1])))).toContain("expected a tensor, got 1");
  });
});

test("toHaveShape compares shapes", () => {
  expect(zeros([2, 3])).toHaveShape([2, 3]);
  expect(zeros([2, 3])).not.toHaveShape([3, 2]);
  expect(zeros([])).toHaveShape([]);
  expect(messageOf(() => expect(zeros([2, 3])).toHaveShape([2]))).toContain("expected shape [ 2 ], got float32[2, 3]");
});
