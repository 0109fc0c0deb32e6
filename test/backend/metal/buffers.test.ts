/** Many device buffers: each is collected, and each call uses the right one. */
import { expect, test } from "bun:test";
import { ArgumentError, DeviceBuffer, MetalContext } from "../../../src/index.ts";
import { waitFor } from "../../support/wait.ts";

test("buffers that are not disposed of are collected", async () => {
  using context = new MetalContext();
  for (let index = 0; index < 2000; index++) new DeviceBuffer(65_536, { context });
  const live = () => context.statistics().liveBuffers;
  const isCollected = () => {
    Bun.gc(true);
    return live() <= 200;
  };
  await waitFor("the collection of all but 200 of 2000 buffers", isCollected, { state: live });
});

test("buffers have at least one byte, from a length or an array", () => {
  using context = new MetalContext();
  for (const content of [0, new Float32Array(0)]) {
    const make = () => new DeviceBuffer(content, { context });
    expect(make).toThrow(ArgumentError);
    expect(make).toThrow("expected a length of at least 1 byte, got 0");
  }
  for (const content of [1, Uint8Array.of(7)]) {
    using buffer = new DeviceBuffer(content, { context });
    expect(buffer.byteLength).toBe(1);
  }
});

test("100,000 calls with small arrays read the right data: no view moves during a call", () => {
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
