import { describe, expect, test } from "bun:test";
import { BackendError, DeviceBuffer, MetalContext, metalKernel, OutOfMemoryError } from "../../../src/index.ts";
import { withoutAnnouncement } from "../../support/child.ts";
import { bunWords } from "../../support/program.ts";

const doubling = `#include <metal_stdlib>
kernel void twice(device float* x, uint i [[thread_position_in_grid]]) { x[i] *= 2; }`;

const run = (context: MetalContext) => {
  using kernel = metalKernel({ name: "twice", source: doubling, context });
  return kernel.run({ x: new Float32Array([1, 2, 3]) }, { grid: 3 }).outputs.x;
};

describe("the next call works after the device failed, and the error says why", () => {
  test("the error for a failed command buffer contains the device's reason, also when awaited", async () => {
    using context = new MetalContext();
    using kernel = metalKernel({ name: "twice", source: doubling, context });
    context.injectFault("command-buffer", { code: 8 });
    expect(() => kernel.run({ x: new Float32Array(4) }, { grid: 4 })).toThrow(BackendError);
    context.injectFault("command-buffer", { code: 3 });
    await expect(kernel.runAsync({ x: new Float32Array(4) }, { grid: 4 })).rejects.toThrow(BackendError);
    expect(run(context)).toEqual(new Float32Array([2, 4, 6]));
    expect(context.statistics().failedTickets).toBe(2);
  });

  test("an allocation that fails is an error with the figures", () => {
    using context = new MetalContext({ cacheLimit: 0 });
    context.injectFault("allocate");
    expect(() => new DeviceBuffer(1 << 20, { context })).toThrow(OutOfMemoryError);
    expect(run(context)).toEqual(new Float32Array([2, 4, 6]));
  });

  test("an allocation over the memory limit names the figures", () => {
    using context = new MetalContext({ memoryLimit: 1 << 20 });
    expect(() => new DeviceBuffer(2 << 20, { context })).toThrow(/2097152|2 MB|2\.0 MB|2 MiB|2\.0 MiB/);
    using fits = new DeviceBuffer(1 << 18, { context });
    expect(fits.byteLength).toBe(1 << 18);
  });

  test("a library or pipeline that can't be created is an error", () => {
    using context = new MetalContext();
    for (const kind of ["library", "pipeline"] as const) {
      context.injectFault(kind);
      expect(() => run(context)).toThrow();
      expect(run(context)).toEqual(new Float32Array([2, 4, 6]));
    }
  });

  test("a failed call releases every buffer", () => {
    using context = new MetalContext({ cacheLimit: 0 });
    using kernel = metalKernel({ name: "twice", source: doubling, context });
    for (let round = 0; round < 20; round++) {
      context.injectFault("command-buffer", { code: 8 });
      expect(() => kernel.run({ x: new Float32Array(1024) }, { grid: 1024 })).toThrow();
    }
    expect(context.statistics().liveBuffers).toBe(0);
  });
});

describe("a process that ends with work in flight ends cleanly", () => {
  const endings = {
    "by running out": "",
    "by process.exit": "process.exit(0);",
    "by an error":
      "process.exitCode = 0; process.on('uncaughtException', () => process.exit(0)); throw new Error('x');",
  };
  for (const [how, ending] of Object.entries(endings)) {
    test(how, async () => {
      const script = `
        import { DeviceBuffer, metalContext, metalKernel } from "./src/index.ts";
        const kernel = metalKernel({ name: "twice", source: ${JSON.stringify(doubling)} });
        const x = new DeviceBuffer(new Float32Array(1 << 20));
        for (let step = 0; step < 50; step++) kernel.encode({ x }, { grid: 1 << 20 });
        metalContext().commit();
        console.log("left");
        ${ending}`;
      const child = Bun.spawn([...bunWords, "-e", script], {
        stdout: "pipe",
        stderr: "pipe",
        cwd: `${import.meta.dir}/../../..`,
      });
      const [out, err, code] = await Promise.all([
        new Response(child.stdout).text(),
        new Response(child.stderr).text(),
        child.exited,
      ]);
      expect([out.trim(), withoutAnnouncement(err).trim(), code]).toEqual(["left", "", 0]);
    });
  }
});
