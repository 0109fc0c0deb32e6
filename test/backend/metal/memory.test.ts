import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { DeviceBuffer, MetalContext } from "../../../src/index.ts";

const program = join(import.meta.dir, "..", "..", "support", "dispatches.ts");
const megabytes = (bytes: number) => Math.round(bytes / 1e5) / 10;

describe("memory stays flat", () => {
  test("20,000 dispatches, each with arrays of its own", () => {
    // In a process of its own: what other tests left behind is no matter of this one.
    const { stdout } = Bun.spawnSync([process.execPath, program]);
    const { resident, liveBuffers, dispatches } = JSON.parse(stdout.toString());
    console.log(`      resident MB over 20,000 dispatches: ${resident.map(megabytes).join(" ")}`);
    expect([liveBuffers, dispatches]).toEqual([0, 20_000]);
    // The first 4096 that are freed keep their addresses, and JavaScript's engine compiles until the eighth thousand.
    expect(resident[19] - resident[9]).toBeLessThan(6e6);
  });

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
  });
});
