import { describe, expect, test } from "bun:test";
import { DeviceBuffer, MetalContext, metalKernel } from "../../../src/index.ts";

const source = `#include <metal_stdlib>
kernel void add(device const float* x, device float* y, constant float& a, uint i [[thread_position_in_grid]]) { y[i] += a * x[i]; }`;

const megabytes = (bytes: number) => Math.round(bytes / 1e5) / 10;

/** Resident memory at the end of each tenth of `steps` steps. */
function curve(steps: number, step: (index: number) => void): number[] {
  const points: number[] = [];
  for (let index = 1; index <= steps; index++) {
    step(index);
    if (index % (steps / 10) === 0) {
      Bun.gc(true);
      points.push(process.memoryUsage.rss());
    }
  }
  return points;
}

describe("memory stays flat", () => {
  test("10,000 dispatches, each with arrays of its own", () => {
    using context = new MetalContext();
    using kernel = metalKernel({ name: "add", source, context });
    const x = new Float32Array(4096).fill(1);
    const points = curve(10_000, () => kernel.run({ x, y: x, a: 2 }, { grid: 64 }));
    console.log(`      resident MB over 10,000 dispatches: ${points.map(megabytes).join(" ")}`);
    expect(context.statistics().liveBuffers).toBe(0);
    expect(context.statistics().dispatches).toBe(10_000);
    expect((points[9] as number) - (points[2] as number)).toBeLessThan(16e6);
  }, 120_000);

  test("buffers that nobody disposes of come back by collection", async () => {
    using context = new MetalContext();
    for (let index = 0; index < 2000; index++) new DeviceBuffer(65_536, { context });
    for (let round = 0; round < 50 && context.statistics().liveBuffers > 200; round++) {
      Bun.gc(true);
      await Bun.sleep(5);
    }
    expect(context.statistics().liveBuffers).toBeLessThanOrEqual(200);
  });

  test("100,000 calls with small arrays read what was written: no view moves under a call", () => {
    using context = new MetalContext();
    using buffer = new DeviceBuffer(64, { context });
    for (let index = 0; index < 50_000; index++) {
      buffer.write(new Uint32Array([index, ~index >>> 0]), 8);
      const [first, second] = buffer.read(Uint32Array, 8, 2);
      if (first !== index || second !== ~index >>> 0)
        expect([index, first, second]).toEqual([index, index, ~index >>> 0]);
    }
    expect(buffer.byteLength).toBe(64);
  }, 120_000);
});
