/** Methods under PyTorch's names. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import * as o from "../../src/index.ts";
import { type DType, dtypes } from "../../src/tensor/dtype.ts";
import { Random } from "./samples.ts";

const conversions = {
  bfloat16: "bfloat16",
  bool: "bool",
  byte: "uint8",
  char: "int8",
  double: "float64",
  float: "float32",
  half: "float16",
  int: "int32",
  long: "int64",
} as const;

test("conversions match to()", () => {
  for (const from of dtypes)
    for (const [name, dtype] of Object.entries<DType>(conversions)) {
      const x = o.tensor([0, 1.75, 100], { dtype: "float32" }).to(from);
      const converted = x[name as keyof typeof conversions]() as o.Tensor;
      expect(converted.dtype).toBe(dtype);
      expect(converted.toArray()).toEqual(x.to(dtype).toArray());
      expect(x.typeAs(converted).dtype).toBe(dtype);
      const parts = [x.elementSize() * x.numel(), x.isFloatingPoint()];
      expect(parts).toEqual([x.dataSync().byteLength * (from === "bfloat16" ? 0.5 : 1), from.includes("float")]);
    }
});

test("numel, dim, size, tolist and others return sizes and lists", () => {
  const random = new Random(3);
  for (let round = 0; round < 20; round++) {
    const shape = Array.from({ length: random.integer(0, 4) }, () => random.integer(0, 3));
    const x = o.rand(shape);
    const count = shape.reduce((product, size) => product * size, 1);
    expect([x.numel(), x.nelement(), x.dim(), x.ndimension()]).toEqual([count, count, shape.length, shape.length]);
    expect(x.tolist()).toEqual(x.toArray());
  }
});

test("view shares memory, or is an error where reshape copies", () => {
  const x = o.arange(24).reshape([4, 6]);
  const y = x.view(2, -1);
  y.fill_(1);
  expect(x.sum().item()).toBe(24);
  expect(x.viewAs(o.empty([3, 8])).shape).toEqual([3, 8]);
  expect(x.reshapeAs(o.empty([8, 3])).shape).toEqual([8, 3]);
  expect(o.ones([1, 6]).expandAs(x).shape).toEqual([4, 6]);
  expect(x.t().view(6, 2, 2).storage).toBe(x.storage); // only splits axes
  expect(() => x.t().view(-1)).toThrow(
    /^\[view\] the strides \[1, 6\] of float32\[6, 4\] allow no view of shape \[-1\]/,
  );
  expect(() => x.t().viewAs(x)).toThrow(/^\[viewAs\] the strides/);
  expect(x.t().reshape(-1).shape).toEqual([24]);
  const weight = o.ones([2, 2], { requiresGrad: true });
  weight.view(4).mul(3).sum().backward();
  expect(weight.grad?.toArray()).toEqual([
    [3, 3],
    [3, 3],
  ]);
});

test("t transposes matrices only", () => {
  expect(o.ones([2, 3]).t().shape).toEqual([3, 2]);
  expect([o.ones([2]).t().shape, o.ones([]).t().shape]).toEqual([[2], []]);
  expect(() => o.ones([2, 3, 4]).t()).toThrow(/^\[t\] expected at most two axes/);
});

test("newZeros and others have the tensor's dtype, or the option's", () => {
  const x = o.ones([2], { dtype: "float16" });
  expect(x.newZeros(2, 3).toArray()).toEqual([
    [0, 0, 0],
    [0, 0, 0],
  ]);
  expect([x.newOnes([2]).dtype, x.newFull([2], 3).dtype, x.newEmpty(2).dtype]).toEqual([
    "float16",
    "float16",
    "float16",
  ]);
  expect(x.newOnes([2], { dtype: "int64", requiresGrad: false }).toArray()).toEqual([1n, 1n]);
  expect(x.newFull([2], 3).toArray()).toEqual([3, 3]);
  expect(x.newZeros([2], { requiresGrad: true }).requiresGrad).toBe(true);
});

test("clip equals clamp", () => {
  const x = o.tensor([-2, 0.5, 2]);
  expect(x.clip(-1, 1).toArray()).toEqual([-1, 0.5, 1]);
  expect(x.clip_({ max: 1 })).toBe(x);
  expect(x.toArray()).toEqual([-2, 0.5, 1]);
  expect(() => x.clip_()).toThrow(/^\[clip_\] expected min, max or both/);
});

test("requiresGrad_ and detach_ change the tensor", () => {
  const w = o.ones([2]).requiresGrad_();
  expect(w.requiresGrad).toBe(true);
  const y = w.mul(2);
  expect(y.requiresGrad_()).toBe(y);
  expect(() => y.requiresGrad_(false)).toThrow("expected a leaf");
  expect(w.requiresGrad_(false).requiresGrad).toBe(false);
  expect(() => o.ones([2], { dtype: "int32" }).requiresGrad_()).toThrow("expected a float dtype");
  w.requiresGrad_();
  const z = w.mul(3);
  expect(z.detach_()).toBe(z);
  expect([z.requiresGrad, z.isLeaf]).toEqual([false, true]);
  z.mul(w).sum().backward();
  expect(w.grad?.toArray()).toEqual([3, 3]);
});

/** `fill_diagonal_` by its definition: equal indices; with wrap, each (columns + 1)th element of a tall matrix. */
test("fillDiagonal_ fills the diagonal", () => {
  const random = new Random(7);
  for (let round = 0; round < 40; round++) {
    const isCube = random.integer(0, 4) === 0;
    const [rows, columns, wrap] = [random.integer(1, 12), random.integer(1, 4), random.integer(0, 1) === 1];
    const shape = isCube ? [columns, columns, columns] : [rows, columns];
    const base = o.zeros(shape.toReversed());
    const x = random.integer(0, 1) === 0 ? o.zeros(shape) : base.permute(shape.map((_, at) => shape.length - 1 - at));
    expect(x.fillDiagonal_(5, wrap)).toBe(x);
    const flat = x.reshape(-1).toArray() as number[];
    const step = isCube ? columns ** 2 + columns + 1 : columns + 1;
    const last = isCube || wrap ? flat.length : Math.min(rows, columns) * (columns + 1);
    expect(flat).toEqual(flat.map((_, at) => (at % step === 0 && at < last ? 5 : 0)));
  }
  expect(() => o.zeros([3]).fillDiagonal_(1)).toThrow("expected at least two axes");
  expect(() => o.zeros([2, 3, 3]).fillDiagonal_(1)).toThrow("to have one size");
  expect(() => o.zeros([2, 2], { requiresGrad: true }).fillDiagonal_(1)).toThrow("in an autograd graph");
});

test("surplus arguments are rejected", () => {
  const x = o.ones([2, 2]);
  for (const call of [() => (x.float as (own: number) => unknown)(1), () => (x.numel as (own: number) => unknown)(1)])
    expect(call).toThrow(o.ArgumentError);
});

test("docs/from-pytorch.md lists every method in place, and no other", () => {
  const page = readFileSync(join(packageRoot, "docs", "from-pytorch.md"), "utf8");
  const section = page.slice(page.indexOf("## Methods in place"), page.indexOf("```ts", page.indexOf("## Methods in")));
  const listed = [...section.matchAll(/`(\w+_)`/g)].map(([, name]) => name);
  const here = Object.getOwnPropertyNames(o.Tensor.prototype).filter((name) => name.endsWith("_"));
  expect(listed.toSorted()).toEqual(here.toSorted());
  const [absent] = page.slice(page.indexOf("Views in place are not supported")).split("\n- ") as [string];
  const names = [...absent.matchAll(/`(\w+)`/g)].map(([, name]) => name);
  expect(names.length).toBeGreaterThan(8);
  expect(names.filter((name) => here.includes(name))).toEqual([]);
});
