import { describe, expect, test } from "bun:test";
import { DeviceBuffer, MetalContext, metalKernel } from "../../../src/index.ts";

const sums = (barrier: string) => `#include <metal_stdlib>
using namespace metal;
kernel void pair_sums(device const float* x [[buffer(0)]], device float* sums [[buffer(1)]],
                      uint t [[thread_index_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[t] = x[t];
  ${barrier}
  sums[t] = tile[t] + tile[(t + 1) % 64];
}`;

const thread = "uint i [[thread_position_in_grid]]";
const past = (limit: number) => `#include <metal_stdlib>
kernel void copy(device const float* from, device float* to, ${thread}) { if (i < ${limit}) to[i] = from[i + 1]; }`;

/** Returns the findings of one run under the checker; on Apple's device there are none, and only the run is tested. */
function findings(source: string, name: string, bindings: Record<string, Float32Array>) {
  using context = new MetalContext({ exact: true });
  const software = context.isSoftware;
  if (software) context.configure("check", true);
  try {
    using kernel = metalKernel({ name, source, context });
    kernel.run(bindings, { grid: 64, threadgroup: 64 });
    return { software, list: context.report({ clear: true }).findings };
  } finally {
    if (software) context.configure("check", false);
  }
}

const x = () => Float32Array.from({ length: 64 }, (_, i) => i);

describe("the checker, from TypeScript", () => {
  test("a race names the kernel, both lines, both threads and the variable", () => {
    const { software, list } = findings(sums(""), "pair_sums", { x: x(), sums: x() });
    if (!software) return expect(list).toEqual([]);
    const race = list.find(({ kind }) => kind === "threadgroup-race");
    expect(race).toMatchObject({ severity: "error", kernel: "pair_sums", count: expect.any(Number) });
    const access = String.raw`thread \(\d+, 0, 0\).*line [68]`;
    expect(race?.message).toMatch(new RegExp(`kernel 'pair_sums': ${access}.*'tile'.*${access}.*threadgroup_barrier`));
  });

  test("a run returns only its findings", () => {
    using context = new MetalContext({ exact: true });
    if (!context.isSoftware) return expect(context.report().findings).toEqual([]);
    context.configure("check", true);
    try {
      using racy = metalKernel({ name: "pair_sums", source: sums(""), context });
      using sound = metalKernel({
        name: "pair_sums",
        source: sums("threadgroup_barrier(mem_flags::mem_threadgroup);"),
        context,
      });
      const run = (kernel: typeof racy) =>
        kernel.run({ x: x(), sums: x() }, { grid: 64, threadgroup: 64 }).findings.length;
      expect(run(racy)).toBeGreaterThan(0);
      expect(run(sound)).toBe(0);
      expect(context.report({ clear: true }).findings.length).toBeGreaterThan(0);
    } finally {
      context.configure("check", false);
    }
  });

  test("the same kernel with a barrier has no findings", () => {
    expect(
      findings(sums("threadgroup_barrier(mem_flags::mem_threadgroup);"), "pair_sums", { x: x(), sums: x() }).list,
    ).toEqual([]);
  });

  test("a read past the end names the buffer by its argument", () => {
    const { software, list } = findings(past(64), "copy", { from: new Float32Array(2048), to: x() });
    expect(list).toEqual([]); // a buffer of 2048 elements is long enough
    if (!software) return;
    const [finding] = findings(past(64), "copy", { from: x().subarray(0, 64), to: x() }).list;
    expect(finding?.kind).toBe("out-of-bounds");
    expect(finding?.message).toMatch(/kernel 'copy': thread \(63, 0, 0\).*line 2/);
    expect(findings(past(63), "copy", { from: x(), to: x() }).list).toEqual([]);
  });

  test("findings of a failed run do not appear in the next run of a kernel of that name", async () => {
    using context = new MetalContext({ exact: true });
    if (!context.isSoftware) return expect(context.report().findings).toEqual([]);
    const write = (index: string) =>
      metalKernel({ name: "put", source: `kernel void put(device float* y, ${thread}) { y[${index}] = i; }`, context });
    context.configure("check", true);
    try {
      using wild = write("(i + 1) << 24");
      using sound = write("i");
      const run = (kernel: typeof wild) => kernel.run({ y: x() }, { grid: 64, threadgroup: 64 });
      expect(() => run(wild)).toThrow("kernel 'put'");
      expect(run(sound).findings).toEqual([]);
      await expect(wild.runAsync({ y: x() }, { grid: 64, threadgroup: 64 })).rejects.toThrow("kernel 'put'");
      expect((await sound.runAsync({ y: x() }, { grid: 64, threadgroup: 64 })).findings).toEqual([]);
      const { findings } = context.report({ clear: true });
      expect(findings.map(({ kind }) => kind)).toContain("page-fault");
    } finally {
      context.configure("check", false);
    }
  });

  test("every run reports a variable that is read before it is written", () => {
    using context = new MetalContext({ exact: true });
    if (!context.isSoftware) return expect(context.report().findings).toEqual([]);
    const source = (declaration: string) =>
      `kernel void add(device float* x, ${thread}) {\n  ${declaration}\n  c += x[i];\n  x[i] = c;\n}`;
    const run = (kernel: { run: typeof wrong.run }) => kernel.run({ x: x() }, { grid: 64 }).findings;
    using early = metalKernel({ name: "add", source: source("float c; // early"), context });
    context.configure("check", true);
    using wrong = metalKernel({ name: "add", source: source("float c;"), context });
    using right = metalKernel({ name: "add", source: source("float c = 0;"), context });
    try {
      for (const kernel of [early, wrong, wrong, early])
        expect(run(kernel)).toMatchObject([{ kind: "uninitialized-read", severity: "error", line: 3 }]);
      expect(run(right)).toEqual([]);
      expect(run(wrong)).toHaveLength(1);
    } finally {
      context.configure("check", false);
      context.report({ clear: true });
    }
  });

  test("a read through a const argument after a write through another one that shares its memory is reported", () => {
    using context = new MetalContext({ exact: true });
    if (!context.isSoftware) return expect(context.report().findings).toEqual([]);
    const twice = (read: string) =>
      metalKernel({
        name: "twice",
        source: `#include <metal_stdlib>
using namespace metal;
kernel void twice(device const float* x, device float* y, device float* z, uint i [[thread_position_in_grid]]) {
  y[i] = 2 * x[i];
  threadgroup_barrier(mem_flags::mem_device);
  z[i] = ${read};
}`,
        context,
      });
    context.configure("check", true);
    try {
      using both = new DeviceBuffer(new Float32Array(128).fill(1), { label: "both", context });
      using z = new DeviceBuffer(256, { label: "z", zero: true, context });
      const run = (read: string, byteOffset: number) => {
        using kernel = twice(read);
        const x = { buffer: both, byteOffset };
        return kernel.run({ x, y: both, z }, { grid: 64, threadgroup: 64 }).findings;
      };
      expect(run("x[63 - i]", 0)).toMatchObject([
        { kind: "const-alias", severity: "error", line: 6, message: expect.stringMatching(/'x'.*'y' at line 4/) },
      ]);
      expect(run("y[63 - i]", 0)).toEqual([]);
      expect(run("x[63 - i]", 256)).toEqual([]); // a different part of the buffer
    } finally {
      context.configure("check", false);
      context.report({ clear: true });
    }
  });
});
