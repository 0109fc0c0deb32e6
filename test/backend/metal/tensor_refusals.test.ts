/** Kernels called with tensors: rejected arguments, failures of Metal, and that nothing leaks. */
import { afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { forgetFailures } from "../../../src/backend/failure.ts";
import {
  add,
  codepaths,
  DeviceBuffer,
  type KernelValues,
  MetalContext,
  metalContext,
  metalKernel,
  mul,
  resetCodepaths,
  type Tensor,
  tensor,
  withBackend,
  withStrict,
  zeros,
} from "../../../src/index.ts";
import { collectGarbage } from "../../support/garbage.ts";

const source = `#include <metal_stdlib>
using namespace metal;
kernel void axpy(device const float* x, device const float* y, constant float& a, device float* z,
                 uint i [[thread_position_in_grid]]) {
  z[i] = y[i] + a * x[i];
}`;
const axpy = metalKernel({ name: "axpy", source, shapes: { z: "x" } });
const [x, y] = [tensor([1, 2, 3]), tensor([10, 20, 30])];
const gone = tensor([1]);
gone.dispose();
const good = { x, y, a: 1 };
/** The function as an untyped caller sees it. */
const apply = (values: object, kernel = axpy): unknown => kernel.apply(values as KernelValues);
const made = (options: object, values: object = good): unknown => {
  using kernel = metalKernel({ name: "axpy", source, ...options });
  return kernel.apply(values as KernelValues);
};
const otherContext = new MetalContext();
const buffer = new DeviceBuffer(16);

const refusals: readonly (readonly [error: string, message: string, call: () => unknown])[] = [
  ["ArgumentError", "argument y has no value; expected values for: x, y, a, z", () => apply({ x, a: 1 })],
  ["ArgumentError", "there is no argument w; the kernel has: x, y, a, z", () => apply({ ...good, w: y })],
  [
    "ArgumentError",
    "argument a: expected 1 value(s) for float, got 2 (it is float)",
    () => apply({ ...good, a: [1, 2] }),
  ],
  [
    "ArgumentError",
    "argument a: expected a tensor, a number, a bigint, a boolean, a list of up to 4 of them or a typed array, " +
      "got a DeviceBuffer; run() accepts device buffers",
    () => apply({ ...good, a: buffer }),
  ],
  [
    "DTypeError",
    "argument y: expected float32 (the kernel has float), got int32[3]",
    () => made({ shapes: { z: "x" }, dtypes: { z: "float32" } }, { ...good, y: y.to("int32") }),
  ],
  [
    "DTypeError",
    "dtypes.z is required if the arguments have different dtypes, got float32, int32",
    () => apply({ ...good, y: y.to("int32") }),
  ],
  [
    "ShapeError",
    "result z: expected its initial value to be float32[3], got float32[2]",
    () => apply({ ...good, z: zeros([2]) }),
  ],
  ["DisposedError", "a tensor float32[1] was used after dispose()", () => apply({ ...good, x: gone })],
  ["ArgumentError", "expected shapes in metalKernel(): they name and size the results", () => made({})],
  [
    "ArgumentError",
    "argument w: shapes lists it as a result, but the kernel has no such argument; it has: x, y, a, z",
    () => made({ shapes: { w: "x" } }),
  ],
  [
    "ArgumentError",
    "argument y: shapes lists it as a result, but the kernel only reads it",
    () => made({ shapes: { y: "x", z: "x" } }),
  ],
  [
    "ArgumentError",
    "argument z: the kernel writes it; add it to shapes as a result",
    () => {
      using own = metalKernel({ name: "f", source: source.replace("axpy", "f").replace("const float* y", "float* y") });
      using two = metalKernel({
        name: "f",
        source: "kernel void f(device float* z, device float* w) { z[0] = 1; w[0] = 1; }",
        shapes: { w: [1] },
        dtypes: { w: "float32" },
      });
      expect(own.info.bindings).toHaveLength(4);
      return two.apply({ z: x });
    },
  ],
  [
    "ArgumentError",
    "result z has the shape of argument w, which is not a tensor; tensors: x, y",
    () => made({ shapes: { z: "w" } }),
  ],
  ["ShapeError", "result z: expected a list of sizes, got null", () => made({ shapes: { z: () => null } })],
  ["ShapeError", "result z: ", () => made({ shapes: { z: () => [undefined] } })],
  ["ShapeError", "result z: ", () => made({ shapes: { z: [-1] } })],
  ["DTypeError", "result z: expected one of ", () => made({ shapes: { z: "x" }, dtypes: { z: "float" } })],
  [
    "ArgumentError",
    "dtypes: there is no result y; shapes names: z",
    () => made({ shapes: { z: "x" }, dtypes: { y: "int8" } }),
  ],
  [
    "ShapeError",
    "expected grid to give a number or a list of one to three numbers, got ",
    () => made({ shapes: { z: "x" }, grid: () => "3" }),
  ],
  [
    "ShapeError",
    "expected grid to be integers of at least 1, got [0, 1, 1]",
    () => made({ shapes: { z: "x" }, grid: 0 }),
  ],
  [
    "ShapeError",
    "give either grid (threads) or threadgroups",
    () => made({ shapes: { z: "x" }, grid: 3, threadgroups: 1 }),
  ],
  ["ShapeError", "expected a threadgroup of at most ", () => made({ shapes: { z: "x" }, threadgroup: 4096 })],
  [
    "ArgumentError",
    "it was created with another Metal context than the shared one, which has the tensors; omit context, or call run()",
    () => made({ shapes: { z: "x" }, context: otherContext }),
  ],
  [
    "ArgumentError",
    "expected the fallback to return a tensor for result z, got undefined",
    () => made({ shapes: { z: "x" }, fallback: () => ({}) }),
  ],
  [
    "ShapeError",
    "expected float32[3] from the fallback for result z, got float32[]",
    () => made({ shapes: { z: "x" }, fallback: () => tensor(1) }),
  ],
  [
    "DTypeError",
    "expected float32[3] from the fallback for result z, got int32[3]",
    () => made({ shapes: { z: "x" }, fallback: () => x.to("int32") }),
  ],
  ["KernelCompileError", "error: ", () => made({ source: "kernel void axpy(", shapes: { z: "x" } })],
  ["BackendError", "Metal has no float64", () => apply({ x: x.to("float64"), y: y.to("float64"), a: 1 })],
];

describe("invalid arguments are rejected with an error that names the kernel and argument", () => {
  test.each(refusals)("%s is rejected: %s", (name, message, call) => {
    let error: Error | undefined;
    try {
      call();
    } catch (cause) {
      error = cause as Error;
    }
    expect(error?.name).toBe(name);
    expect(error?.message).toMatch(/^\[metalKernel (axpy|f)\] /);
    expect(error?.message).toContain(message);
  });

  test("rejected calls leak nothing and do not reach the device", async () => {
    const context = metalContext();
    const used = () => {
      const { liveBuffers, liveBytes, dispatches } = context.statistics();
      return { liveBuffers, liveBytes, dispatches };
    };
    const round = () => {
      for (const [, , call] of refusals) expect(call).toThrow();
    };
    round(); // operands are moved to the device once
    context.wait();
    await collectGarbage();
    const before = used();
    for (let time = 0; time < 20; time++) round();
    context.wait();
    // Objects that an error or a frame refers to become garbage later, at a time that the collector chooses; a leak
    // remains.
    for (let time = 0; time < 80 && used().liveBuffers > before.liveBuffers; time++) await collectGarbage();
    const after = used();
    expect(after.dispatches).toBe(before.dispatches);
    expect(after.liveBuffers).toBeLessThanOrEqual(before.liveBuffers);
    expect(after.liveBytes).toBeLessThanOrEqual(before.liveBytes);
  });

  test("calls after dispose() are rejected", () => {
    const own = metalKernel({ name: "axpy", source, shapes: { z: "x" }, fallback: () => x });
    own.dispose();
    expect(() => own.apply(good)).toThrow("[metalKernel axpy] it was used after dispose()");
  });
});

describe("an operation falls back if Metal fails", () => {
  let warned: ReturnType<typeof spyOn>;
  type Axpy = { x: Tensor; y: Tensor; a: number | Float32Array };
  const fallback = ({ x, y, a }: Axpy): Tensor => add(y, mul(x, typeof a === "number" ? a : a[0]));
  beforeEach(() => {
    forgetFailures();
    resetCodepaths();
    warned = spyOn(console, "warn").mockImplementation(() => undefined);
  });
  afterEach(() => {
    metalContext().injectFault("command-buffer", { count: 0 });
    warned.mockRestore();
  });
  const paths = (): unknown =>
    codepaths()
      .filter(({ operation }) => operation === "metalKernel axpy")
      .map(({ backend, reason }) => `${backend}: ${reason}`);

  test("a kernel that does not compile falls back, but not in strict mode; another kernel with its name runs", () => {
    using broken = metalKernel({ name: "axpy", source: "kernel void axpy(", shapes: { z: "x" }, fallback });
    withBackend("metal", () => {
      expect(broken.apply(good).z.toArray()).toEqual([11, 22, 33]);
      expect(paths()).toEqual([expect.stringMatching(/^cpu: metal: \[metalKernel axpy\] it does not compile: /)]);
      expect(() => withStrict(true, () => broken.apply(good))).toThrow("strict mode allows no fallback");
      resetCodepaths();
      expect(
        metalKernel({ name: "axpy", source, shapes: { z: "x" }, fallback })
          .apply(good)
          .z.toArray(),
      ).toEqual([11, 22, 33]);
      expect(paths()).toEqual(["metal: preferred"]);
    });
  });

  test("the fallback recomputes results that a command buffer lost, even if operands were disposed of", () => {
    using kernel = metalKernel({ name: "axpy", source, shapes: { z: "x" }, fallback });
    withBackend("metal", () => {
      const own = tensor([1, 2, 3]);
      const factor = new Float32Array([2]);
      metalContext().injectFault("command-buffer");
      const { z } = kernel.apply({ x: own, y, a: factor });
      own.dispose();
      factor[0] = 5;
      expect(z.toArray()).toEqual([12, 24, 36]);
      expect(paths()).toEqual(["metal: preferred", "cpu: metal: the command buffer failed"]);
    });
  });

  test("without a fallback, reading the result throws the error", () => {
    metalContext().injectFault("command-buffer");
    const { z } = axpy.apply(good) as { z: Tensor };
    expect(() => z.toArray()).toThrow("no other backend could recompute the results");
    expect((axpy.apply(good) as { z: Tensor }).z.toArray()).toEqual([11, 22, 33]);
  });
});
