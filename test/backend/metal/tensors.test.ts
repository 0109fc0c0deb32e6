/** Kernels on tensors: `metalKernel` with `shapes`, and `apply`. */
import { describe, expect, test } from "bun:test";
import { AutogradError } from "../../../src/autograd/node.ts";
import { forgetFinished } from "../../../src/backend/metal/journal.ts";
import {
  add,
  BackendError,
  codepaths,
  grad,
  gradcheck,
  metalContext,
  metalKernel,
  mul,
  noGrad,
  resetCodepaths,
  sin,
  sum,
  type Tensor,
  tensor,
  withBackend,
  withStrict,
  zeros,
} from "../../../src/index.ts";
import { Tensor as TensorClass } from "../../../src/tensor/tensor.ts";

const header = "#include <metal_stdlib>\nusing namespace metal;\n";
const axpySource = `${header}
kernel void axpy(device const float* x, device const float* y, constant float& a, device float* z,
                 uint i [[thread_position_in_grid]]) {
  z[i] = y[i] + a * x[i];
}`;

type Axpy = { x: Tensor; y: Tensor; a: number };
const axpyFallback = ({ x, y, a }: Axpy): Tensor => add(y, mul(x, a));

const axpy = metalKernel({ name: "axpy", source: axpySource, shapes: { z: "x" } });
const differentiable = metalKernel({
  name: "axpy",
  source: axpySource,
  shapes: { z: "x" },
  fallback: axpyFallback,
  backward: ({ z }, { a }) => ({ x: mul(z, a), y: z }),
  saves: [],
});

const onMetal = <Result>(body: () => Result): Result => withBackend("metal", body);
const [x, y] = [tensor([1, 2, 3]), tensor([10, 20, 30])];
const rows = (result: Tensor): unknown => result.toArray();

/** Returns the error of a call: its class and message. */
function errorOf(body: () => unknown): [unknown, string] {
  try {
    body();
  } catch (error) {
    return [(error as Error).constructor, (error as Error).message];
  }
  return [undefined, "nothing was thrown"];
}

describe("a kernel can compute with tensors", () => {
  test("tensors are returned, and the kernel runs on metal if it has no fallback", () => {
    resetCodepaths();
    const { z } = axpy.apply({ x, y, a: 2 });
    expect(rows(z)).toEqual([12, 24, 36]);
    expect(codepaths().find(({ operation }) => operation === "metalKernel axpy")).toEqual({
      operation: "metalKernel axpy",
      backend: "metal",
      reason: "preferred",
      calls: 1,
    });
    expect(z.storageMode).toBe("shared");
    expect(rows(add(z, 1))).toEqual([13, 25, 37]);
  });

  test("the fallback runs on other backends", () => {
    for (const backend of ["cpu", "reference", "metal"] as const) {
      resetCodepaths();
      expect(rows(withBackend(backend, () => differentiable.apply({ x, y, a: 2 })).z)).toEqual([12, 24, 36]);
      const own = codepaths().filter(({ operation }) => operation === "metalKernel axpy");
      expect(own.map((path) => [path.backend, path.reason])).toEqual([[backend, "preferred"]]);
    }
  });

  test("the fallback is not used in strict mode", () => {
    withStrict(true, () => {
      expect(rows(axpy.apply({ x, y, a: 1 }).z)).toEqual([11, 22, 33]);
      expect(rows(withBackend("cpu", () => differentiable.apply({ x, y, a: 1 })).z)).toEqual([11, 22, 33]);
      const wide = { x: x.to("float64"), y: y.to("float64"), a: 1 };
      const [Class, message] = errorOf(() => onMetal(() => differentiable.apply(wide)));
      expect([Class, message]).toEqual([BackendError, expect.stringContaining("metal: Metal has no float64")]);
    });
    const wide = { x: x.to("float64"), y: y.to("float64"), a: 1 };
    expect(onMetal(() => differentiable.apply(wide)).z.dtype).toBe("float64"); // computed by the fallback
  });

  test("strided operands are copied to contiguous memory, and stay unchanged", () => {
    const matrix = tensor([[1, 2, 3], [4, 5, 6]]); // biome-ignore format: a matrix
    const { z } = axpy.apply({ x: matrix.T, y: zeros([3, 2]), a: 1 });
    expect(rows(z)).toEqual([[1, 4], [2, 5], [3, 6]]); // biome-ignore format: a matrix
    expect(rows(axpy.apply({ x: x.flip(0), y: tensor(5).expand([3]), a: 1 }).z)).toEqual([8, 7, 6]);
    expect(rows(matrix)).toEqual([[1, 2, 3], [4, 5, 6]]); // biome-ignore format: a matrix
  });

  test("strides are read if the kernel declares them", () => {
    const source = `${header}
kernel void gather(device const float* x, constant int* x_shape, constant long* x_strides, constant uint& x_ndim,
                   constant uint& x_offset, constant uint& x_size, device float* z, device int* facts,
                   uint i [[thread_position_in_grid]]) {
  long at = x_offset;
  uint rest = i;
  for (int axis = int(x_ndim) - 1; axis >= 0; axis--) {
    at += (rest % x_shape[axis]) * x_strides[axis];
    rest /= x_shape[axis];
  }
  z[i] = x[at];
  if (i == 0) { facts[0] = int(x_strides[0]); facts[1] = int(x_size); facts[2] = int(x_offset); }
}`;
    const shapes = { z: "x", facts: [3] } as const;
    const options = { name: "gather", source, shapes, dtypes: { facts: "int32" } } as const;
    using strided = metalKernel({ ...options, strided: ["x"] });
    using dense = metalKernel(options);
    const matrix = tensor([[1, 2, 3], [4, 5, 6]]); // biome-ignore format: a matrix
    const backwards = new TensorClass(matrix.storage, "float32", [2, 3], [-3, 1], 3);
    for (const [operand, facts] of [
      [matrix.T, [1, 6, 0]],
      [backwards, [-3, 6, 3]],
      [matrix.slice(1, 1, 3), [3, 4, 0]],
      [tensor(7).expand([2, 2]), [0, 4, 0]],
      [tensor([1, 2, 3, 4]).slice(0, 1, 4), [1, 3, 0]],
    ] as const) {
      const own = strided.apply({ x: operand });
      expect([rows(own.z), rows(own.facts)]).toEqual([rows(operand), [...facts]]);
      const copied = dense.apply({ x: operand });
      expect(rows(copied.z)).toEqual(rows(operand));
      expect((rows(copied.facts) as number[])[2]).toBe(0);
    }
  });

  test("negative strides are copied if the kernel has no offset argument, and the copies are freed", () => {
    const source = `${header}
kernel void every(device const float* x, constant long* x_strides, device float* z,
                  uint i [[thread_position_in_grid]]) {
  z[i] = x[i * x_strides[0]];
}`;
    using every = metalKernel({ name: "every", source, shapes: { z: "x" }, strided: true });
    const line = onMetal(() => tensor([1, 2, 3, 4]));
    const backwards = new TensorClass(line.storage, "float32", [4], [-1], 3);
    expect(rows(every.apply({ x: backwards }).z)).toEqual([4, 3, 2, 1]);
    const live = () => {
      metalContext().wait();
      return metalContext().statistics().liveBuffers;
    };
    const before = live();
    for (let round = 0; round < 50; round++) every.apply({ x: backwards }).z.dispose();
    forgetFinished(metalContext(), { wait: true });
    expect(live()).toBeLessThanOrEqual(before);
  });

  test("a result starts as the tensor passed under its name, or as zeros if the kernel reads it", () => {
    const source = `${header}
kernel void count(device const int* x, device atomic_int* sums, uint i [[thread_position_in_grid]]) {
  atomic_fetch_add_explicit(&sums[x[i]], 1, memory_order_relaxed);
}`;
    using count = metalKernel({
      name: "count",
      source,
      shapes: { sums: [3] },
      dtypes: { sums: "int32" },
      grid: ({ x }) => x?.[0] ?? 0,
    });
    const labels = tensor([0, 2, 2, 1, 2], { dtype: "int32" });
    expect(rows(count.apply({ x: labels }).sums)).toEqual([1, 1, 3]);
    const before = tensor([[5, 6, 7]], { dtype: "int32" }).squeeze();
    expect(rows(count.apply({ x: labels, sums: before }).sums)).toEqual([6, 7, 10]);
    expect(rows(before)).toEqual([5, 6, 7]);
  });

  test("shapes, dtypes and grids are computed; a call may pass another grid", () => {
    const source = `${header}
kernel void outer(device const float* x, device const float* y, device half* z, constant uint& z_size,
                  constant uint2& z_shape, threadgroup float* room, uint2 at [[thread_position_in_grid]],
                  uint lane [[thread_index_in_threadgroup]]) {
  room[lane] = x[at.y];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  z[at.y * z_shape.y + at.x] = half(room[lane] * y[at.x] + z_size);
}`;
    using outer = metalKernel({
      name: "outer",
      source,
      dtypes: { z: "float16" },
      threadgroup: [2, 2],
      threadgroupMemory: { room: 16 },
      shapes: { z: ({ x, y }) => [x?.[0], y?.[0]] },
      threadgroups: ({ z }) => [z[1] / 2, z[0] / 2],
    });
    const [a, b] = [tensor([1, 2]), tensor([1, 2, 3, 4])];
    const expected = [[9, 10, 11, 12], [10, 12, 14, 16]]; // biome-ignore format: a matrix
    const { z } = outer.apply({ x: a, y: b });
    expect([z.dtype, rows(z)]).toEqual(["float16", expected]);
    expect(rows(outer.apply({ x: a, y: b }, { grid: [4, 2], label: "own" }).z)).toEqual(expected);
    expect(rows(withBackend("cpu", () => outer.apply({ x: a, y: b })).z)).toEqual(expected);
  });

  test("an empty result needs no dispatch", () => {
    expect(axpy.apply({ x: zeros([0, 3]), y: zeros([0, 3]), a: 1 }).z.shape).toEqual([0, 3]);
  });

  test("consecutive kernels run without a wait, and see each other's results", () => {
    let z: Tensor = onMetal(() => zeros([1000]));
    const ones = onMetal(() => add(zeros([1000]), 1));
    for (let step = 0; step < 100; step++) z = axpy.apply({ x: ones, y: z, a: 0.5 }).z;
    expect(rows(sum(z))).toBe(50_000);
  });
});

describe("kernels can have gradients", () => {
  test("a `backward` made of tensor operations computes gradients on every backend", () => {
    for (const backend of ["metal", "cpu", "reference"] as const)
      withBackend(backend, () => {
        const [p, q] = [tensor([1, 2, 3], { requiresGrad: true }), tensor([4, 5, 6], { requiresGrad: true })];
        const { z } = differentiable.apply({ x: p, y: q, a: 3 });
        const [dp, dq] = grad(sum(mul(z, z)), [p, q]);
        expect(rows(dp)).toEqual([42, 66, 90]); // 2·z·a with z = [7, 11, 15]
        expect(rows(dq)).toEqual([14, 22, 30]);
      });
  });

  test("nothing is recorded in noGrad, or if no operand requires a gradient", () => {
    const p = tensor([1, 2, 3], { requiresGrad: true });
    expect(noGrad(() => differentiable.apply({ x: p, y, a: 3 })).z.requiresGrad).toBe(false);
    expect(differentiable.apply({ x, y, a: 3 }).z.requiresGrad).toBe(false);
    expect(differentiable.apply({ x: p, y, a: 3 }).z.requiresGrad).toBe(true);
  });

  const cubeSource = `${header}
kernel void cube(device const float* x, device float* z, uint i [[thread_position_in_grid]]) { z[i] = x[i]*x[i]*x[i]; }
kernel void cube_backward(device const float* x, device const float* grad_z, device float* grad_x,
                          uint i [[thread_position_in_grid]]) {
  grad_x[i] = 3 * x[i] * x[i] * grad_z[i];
}`;
  const cubeBackward = metalKernel({
    name: "cube_backward",
    source: cubeSource,
    shapes: { grad_x: "x" },
    fallback: ({ x, grad_z: g }: { x: Tensor; grad_z: Tensor }) => mul(mul(x, x), mul(g, 3)),
    backward: ({ grad_x: h }, { x, grad_z: g }) => ({
      x: mul(mul(h, g), mul(x, 6)),
      grad_z: mul(h, mul(mul(x, x), 3)),
    }),
  });
  const cube = metalKernel({
    name: "cube",
    source: cubeSource,
    shapes: { z: "x" },
    saves: ["x"],
    fallback: ({ x }: { x: Tensor }) => mul(x, mul(x, x)),
    backward: cubeBackward,
  });

  test("another kernel computes gradients, to any order if its backward is differentiable", () => {
    for (const backend of ["metal", "cpu"] as const)
      withBackend(backend, () => {
        const p = tensor([1, 2, -3], { requiresGrad: true });
        const [first] = grad(sum(cube.apply({ x: p }).z), p, { createGraph: true });
        const [second] = grad(sum(first), p, { createGraph: true });
        const [third] = grad(sum(second), p);
        expect([first, second, third].map((own) => own.toArray())).toEqual([
          [3, 12, 27],
          [6, 12, -18],
          [6, 6, 6],
        ]);
      });
  });

  test("gradients of kernels agree with finite differences", () => {
    const p = tensor([0.5, -1.25, 2], { requiresGrad: true, dtype: "float64" });
    expect(gradcheck((own: Tensor) => cube.apply({ x: own }).z, [p])).toBe(true);
    expect(gradcheck((own: Tensor) => differentiable.apply({ x: own, y: sin(own), a: 2 }).z, [p])).toBe(true);
  });

  test("an unused result has zeros as its gradient", () => {
    const source = `${header}
kernel void both(device const float* x, device float* s, device float* p, uint i [[thread_position_in_grid]]) {
  s[i] = x[i] + x[i]; p[i] = x[i] * x[i];
}`;
    const seen: unknown[] = [];
    using both = metalKernel({
      name: "both",
      source,
      shapes: { s: "x", p: "x" },
      backward({ s, p }, { x }, results) {
        seen.push(rows(p), rows(results.s));
        return { x: add(mul(s, 2), mul(p, mul(x as Tensor, 2))) };
      },
    });
    const own = tensor([1, 2], { requiresGrad: true });
    expect(rows(grad(sum(both.apply({ x: own }).s), own)[0])).toEqual([2, 2]);
    expect(seen).toEqual([[0, 0], [2, 4]]); // biome-ignore format: rows
  });

  test("the error for an invalid gradient names the kernel and argument", () => {
    const of = (backward: (gradients: { z: Tensor }) => Readonly<Record<string, Tensor | null>>) => {
      const own = tensor([1, 2, 3], { requiresGrad: true });
      using kernel = metalKernel({ name: "axpy", source: axpySource, shapes: { z: "x" }, backward });
      return errorOf(() => grad(sum(kernel.apply({ x: own, y, a: 1 }).z), own));
    };
    const start = "[metalKernel axpy] ";
    expect(of(({ z }) => ({ w: z }))).toEqual([
      AutogradError,
      `${start}backward returned gradients of w; the tensors are x, y`,
    ]);
    const expected = `${start}expected backward to return float32[3] or null as the gradient of x`;
    expect(of(() => ({}))).toEqual([AutogradError, `${expected}, got undefined`]);
    expect(of(({ z }) => ({ x: sum(z) }))).toEqual([AutogradError, `${expected}, got float32[]`]);
    expect(of(() => zeros([1]) as never)).toEqual([
      AutogradError,
      expect.stringContaining("expected backward to return gradients by name, got "),
    ]);
    const own = tensor([1, 2, 3], { requiresGrad: true });
    expect(errorOf(() => grad(sum(axpy.apply({ x: own, y, a: 1 }).z), own))).toEqual([
      AutogradError,
      `${start}the kernel has no gradient; give metalKernel() a backward, or for tangents a jvp rule`,
    ]);
  });

  test("an operand that was changed later is rejected, unless the gradient does not need it", () => {
    const own = tensor([1, 2, 3], { requiresGrad: true });
    const before = mul(own, 1);
    const { z } = cube.apply({ x: before });
    noGrad(() => before.copy_(y));
    expect(() => grad(sum(z), own)).toThrow("was changed in place");
    const other = mul(own, 1);
    const linear = differentiable.apply({ x: other, y, a: 2 }).z;
    noGrad(() => other.copy_(y));
    expect(rows(grad(sum(linear), own)[0])).toEqual([2, 2, 2]);
  });
});
