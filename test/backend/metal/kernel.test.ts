import { afterAll, describe, expect, test } from "bun:test";
import {
  ArgumentError,
  BackendError,
  DeviceBuffer,
  DisposedError,
  KernelCompileError,
  MetalContext,
  metalContext,
  metalKernel,
  output,
  ShapeError,
} from "../../../src/index.ts";
import { collectGarbage } from "../../support/garbage.ts";

const header = "#include <metal_stdlib>\nusing namespace metal;\n";

const saxpy = `${header}
kernel void saxpy(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], constant float& a [[buffer(2)]],
                  uint i [[thread_position_in_grid]]) {
  y[i] += a * x[i];
}`;

const scale = `${header}
constant uint factor [[function_constant(0)]];
constant bool on [[function_constant(1)]];
kernel void scale(device float* x [[buffer(0)]]) { if (on) x[0] *= factor; }`;

const numbers = (length: number, of: (index: number) => number) =>
  Float32Array.from({ length }, (_, index) => of(index));

describe("a kernel of the user runs on typed arrays", () => {
  test("a kernel runs on typed arrays and returns what it wrote", () => {
    using kernel = metalKernel({ name: "saxpy", source: saxpy });
    const x = numbers(1000, (i) => i / 7);
    const y = numbers(1000, (i) => 3 - i);
    const { outputs } = kernel.run({ x, y, a: 2.5 }, { grid: 1000 });
    expect(outputs.y).toEqual(
      numbers(1000, (i) => Math.fround(Math.fround(3 - i) + Math.fround(2.5 * Math.fround(i / 7)))),
    );
    expect(y[5]).toBe(-2); // the caller's array is unchanged
  });

  test("a kernel can be awaited, without blocking the event loop", async () => {
    using kernel = metalKernel({
      name: "busy",
      source: `${header}
kernel void busy(device float* y, constant uint& steps, uint i [[thread_position_in_grid]]) {
  float sum = 0;
  for (uint k = 0; k < steps; k++) sum += sin(float(i + k));
  y[i] = sum;
}`,
    });
    const steps = metalContext().deviceInfo().isSoftware ? 20_000 : 2_000_000; // a GPU would complete few within a tick
    let ticks = 0;
    const timer = setInterval(() => ticks++, 1);
    const { outputs } = await kernel.runAsync({ y: output(Float32Array, 256), steps }, { grid: 256 });
    clearInterval(timer);
    expect(outputs.y.every(Number.isFinite)).toBe(true);
    expect(ticks).toBeGreaterThan(3);
  });

  test("a kernel works on shared and private device buffers, in the order of the calls", () => {
    using kernel = metalKernel({ name: "saxpy", source: saxpy });
    for (const storage of ["shared", "private"] as const) {
      using x = new DeviceBuffer(
        numbers(64, (i) => i),
        { label: "x", storage },
      );
      using y = new DeviceBuffer(256, { label: "y", storage, zero: true });
      for (let step = 0; step < 5; step++) kernel.encode({ x, y, a: 2 }, { grid: 64 });
      expect(y.read(Float32Array)).toEqual(numbers(64, (i) => 10 * i));
      expect(y.storage).toBe(storage);
    }
  });

  test("a kernel binds a part of a buffer", () => {
    using kernel = metalKernel({ name: "saxpy", source: saxpy });
    using all = new DeviceBuffer(numbers(128, (i) => i));
    const { outputs } = kernel.run(
      { x: { buffer: all, byteOffset: 256 }, y: numbers(64, () => 0), a: 1 },
      { grid: 64 },
    );
    expect(outputs.y[0]).toBe(64);
  });

  test("function constants, macros, headers, threadgroup memory and an output without an input are accepted", () => {
    using kernel = metalKernel({
      name: "reduce",
      headers: { "scale.h": "inline float scaled(float x) { return x * SCALE; }" },
      macros: { SCALE: 4 },
      constants: { negate: true, width: 32 },
      source: `${header}
#include "scale.h"
constant bool negate [[function_constant(0)]];
constant uint width [[function_constant(3)]];
kernel void reduce(device const float* x, device float* sums, threadgroup float* tile [[threadgroup(0)]],
                   uint i [[thread_position_in_grid]], uint t [[thread_position_in_threadgroup]],
                   uint g [[threadgroup_position_in_grid]]) {
  tile[t] = scaled(x[i]);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (t == 0) {
    float sum = 0;
    for (uint k = 0; k < width; k++) sum += tile[k];
    sums[g] = negate ? -sum : sum;
  }
}`,
    });
    const { outputs } = kernel.run(
      { x: numbers(64, (i) => i), sums: output(Float32Array, 2) },
      { threadgroups: 2, threadgroup: 32, threadgroupMemory: { tile: 128 } },
    );
    expect(outputs.sums).toEqual(new Float32Array([-4 * 496, -4 * 1520]));
  });

  test("half, bfloat and integers of every width are passed in and out", () => {
    using kernel = metalKernel({
      name: "mix",
      source: `${header}
kernel void mix(device const half* h, device const long* l, device uchar* c, device half* out, constant bfloat& b,
                uint i [[thread_position_in_grid]]) {
  out[i] = h[i] * half(float(b)) + half(l[i]);
  c[i] = c[i] + 250;
}`,
    });
    const { outputs } = kernel.run(
      {
        h: new Float16Array([0.5, 1.5]),
        l: new BigInt64Array([3n, -4n]),
        c: new Uint8Array([1, 10]),
        out: output(Float16Array, 2),
        b: 2,
      },
      { grid: 2 },
    );
    expect(outputs.out).toEqual(new Float16Array([4, -1]));
    expect(outputs.c).toEqual(new Uint8Array([251, 4]));
  });

  test("the software device counts memory traffic; Apple's device counts nothing", () => {
    using kernel = metalKernel({ name: "saxpy", source: saxpy });
    const { counters } = kernel.run(
      { x: numbers(2048, (i) => i), y: numbers(2048, (i) => i), a: 2 },
      { grid: 2048, counters: true },
    );
    if (!metalContext().deviceInfo().isSoftware) return expect([process.platform, counters]).toEqual(["darwin", null]);
    expect(counters).toMatchObject({ threads: 2048, threadgroups: 8, device_bytes_written: 8192, barriers: 0 });
    expect(counters?.device_bytes_read).toBe(2048 * 4 * 2);
    expect(counters?.constant_bytes_read).toBe(2048 * 4);
    expect(counters?.cache_lines_written).toBe(64);
  });
});

describe("invalid arguments are rejected with an error that names them", () => {
  const kernel = metalKernel({ name: "saxpy", source: saxpy });
  const x = new Float32Array(8);
  const good = { x, y: x, a: 1 };
  afterAll(() => kernel.dispose());

  const refusals: [string, () => unknown, new (...args: never[]) => Error, string | RegExp][] = [
    [
      "source that does not compile",
      () => metalKernel({ name: "k", source: `${header}kernel void k(device float* x) {\n  x[0] = y;\n}` }),
      KernelCompileError,
      /program_source:4:\d+: error: .*'y'/,
    ],
    ["an unknown kernel", () => metalKernel({ name: "saxpi", source: saxpy }), KernelCompileError, /saxpi[\s\S]*saxpy/],
    [
      "an unknown constant",
      () => metalKernel({ name: "saxpy", source: saxpy, constants: { n: 1 } }),
      KernelCompileError,
      "no function constant n; it has: none",
    ],
    [
      "a constant that is not given",
      () => metalKernel({ name: "scale", source: scale }),
      KernelCompileError,
      /'scale' needs function constant 'factor' \(index 0\), 'on' \(index 1\)/,
    ],
    [
      "a constant of another kind",
      () => metalKernel({ name: "scale", source: scale, constants: { factor: 2, on: 3.5 } }),
      KernelCompileError,
      "function constant on: ",
    ],
    [
      "a missing header",
      () => metalKernel({ name: "k", source: '#include "nothing.h"\nkernel void k() {}' }),
      KernelCompileError,
      "nothing.h",
    ],
    ["a missing binding", () => kernel.run({ x, a: 1 }, { grid: 8 }), ArgumentError, "argument y has no value"],
    [
      "an unknown binding",
      () => kernel.run({ ...good, z: 1 }, { grid: 8 }),
      ArgumentError,
      "there is no argument z; the kernel has: x, y, a",
    ],
    [
      "a number for a pointer that is written",
      () => kernel.run({ ...good, y: 3 }, { grid: 8 }),
      ArgumentError,
      "argument y: the kernel writes it",
    ],
    [
      "an output that is only read",
      () => kernel.run({ ...good, x: output(Float32Array, 8) }, { grid: 8 }),
      ArgumentError,
      "only reads it",
    ],
    ["an empty array", () => kernel.run({ ...good, x: new Float32Array(0) }, { grid: 8 }), ArgumentError, "empty"],
    [
      "a boolean for a float",
      () => kernel.run({ ...good, a: true }, { grid: 8 }),
      ArgumentError,
      "expected a number for float",
    ],
    ["a grid of zero", () => kernel.run(good, { grid: 0 }), ShapeError, "at least 1"],
    [
      "a fraction of a grid",
      () => kernel.run(good, { grid: 1.5 }),
      ShapeError,
      "expected grid to be integers of at least 1, got [1.5, 1, 1]",
    ],
    ["no grid", () => kernel.run(good, {}), ShapeError, "either grid"],
    [
      "a threadgroup over the limit",
      () => kernel.run(good, { grid: 8, threadgroup: 2048 }),
      ShapeError,
      /at most 1024 threads, got 2048/,
    ],
    [
      "threadgroup memory that is not an argument",
      () => kernel.run(good, { grid: 8, threadgroupMemory: { tile: 16 } }),
      ArgumentError,
      "tile",
    ],
    [
      "encode with an array to return",
      () => kernel.encode(good, { grid: 8 }),
      ArgumentError,
      "encode() can't return y",
    ],
    ["a buffer of no length", () => new DeviceBuffer(0), ArgumentError, "at least 1 byte"],
  ];

  for (const [what, call, type, message] of refusals) {
    test(what, () => {
      let thrown: unknown;
      try {
        call();
      } catch (error) {
        thrown = error;
      }
      expect(thrown).toBeInstanceOf(type);
      expect((thrown as Error).message).toMatch(message);
    });
  }

  test("an unknown setting is rejected, and on Apple's device also a setting that only the software device has", () => {
    const context = metalContext();
    const type = context.deviceInfo().isSoftware ? ArgumentError : BackendError;
    expect(() => context.configure("color", "red")).toThrow(type);
    expect(() => context.configure("color", "red")).toThrow("color");
  });

  test("no rejected call leaks anything or reaches the device", async () => {
    const context = metalContext();
    context.wait();
    await collectGarbage(); // garbage of other tests is collected now, not between two readings
    const before = context.statistics();
    for (let round = 0; round < 10; round++) for (const [, call] of refusals) expect(call).toThrow();
    const after = context.statistics();
    const used = ({ liveBuffers, liveBytes, dispatches }: typeof before) => ({ liveBuffers, liveBytes, dispatches });
    expect(used(after)).toEqual(used(before));
  });

  test("use after dispose is an error", () => {
    const spent = metalKernel({ name: "saxpy", source: saxpy });
    spent.dispose();
    spent.dispose();
    expect(() => spent.run(good, { grid: 8 })).toThrow(DisposedError);
    expect(new DeviceBuffer(1).read(Uint8Array).length).toBe(1); // the shortest valid source
    const buffer = new DeviceBuffer(16);
    buffer.dispose();
    expect(() => buffer.read(Float32Array)).toThrow(DisposedError);
    expect(() => kernel.run({ ...good, x: buffer }, { grid: 8 })).toThrow("dispose()");
  });

  test("use after close is an error", () => {
    const context = new MetalContext();
    const own = metalKernel({ name: "saxpy", source: saxpy, context });
    const buffer = new DeviceBuffer(16, { context });
    context.close();
    context.close();
    expect(() => own.run(good, { grid: 8 })).toThrow(DisposedError);
    expect(() => buffer.read(Float32Array)).toThrow(DisposedError);
    expect(() => context.deviceInfo()).toThrow(DisposedError);
    buffer.dispose();
  });

  test("a buffer of another context is rejected", () => {
    using context = new MetalContext();
    using buffer = new DeviceBuffer(32, { context });
    expect(() => kernel.run({ ...good, x: buffer }, { grid: 8 })).toThrow("another Metal context");
  });
});
