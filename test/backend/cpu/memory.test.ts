import { ptr } from "bun:ffi";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { Status } from "../../../src/backend/cpu/abi.ts";
import { cpuLibrary } from "../../../src/backend/cpu/loader.ts";
import { allocateBlock } from "../../../src/backend/cpu/memory.ts";
import { cpuStatistics } from "../../../src/backend/cpu/report.ts";
import { OutOfMemoryError } from "../../../src/core/errors.ts";

const { native } = cpuLibrary();
const megabyte = 2 ** 20;
const statistics = () => cpuStatistics(native);
const initial = statistics();

beforeEach(() => {
  Bun.gc(true);
  native.orchard_cpu_trim();
});
afterEach(() => {
  native.orchard_cpu_set_memory_limit(initial.memoryLimit);
  native.orchard_cpu_set_cache_limit(initial.cacheLimit);
  native.orchard_cpu_fail_allocations(0);
});

describe("blocks of memory are aligned and of the right size", () => {
  test("blocks are aligned to 64, writable to the last byte, and at most an eighth larger than requested", () => {
    for (const bytes of [1, 63, 64, 65, 4097, 65_537, 100_000, megabyte, megabyte + 1, 7_777_777, 2 ** 25 + 3]) {
      const before = statistics().liveBytes;
      const block = allocateBlock(native, bytes, "test");
      const { buffer } = block;
      const view = new Uint8Array(buffer);
      view[0] = 1;
      view[bytes - 1] = 2;
      const taken = statistics().liveBytes - before;
      expect([bytes, buffer.byteLength, ptr(view) % 64]).toEqual([bytes, bytes, 0]);
      expect(taken).toBeGreaterThanOrEqual(bytes);
      expect(taken).toBeLessThanOrEqual(Math.max(bytes + 64, bytes * 1.125));
      block.release();
    }
  });

  test("a released block is reused first for its size class, and its bytes count once", () => {
    const first = allocateBlock(native, megabyte, "test");
    const address = ptr(new Uint8Array(first.buffer));
    const { liveBytes, cacheHits } = statistics();
    first.release();
    first.release();
    expect(statistics()).toMatchObject({ liveBytes: liveBytes - megabyte, cachedBytes: megabyte, cachedBlocks: 1 });
    const second = allocateBlock(native, megabyte - 5, "test");
    expect(ptr(new Uint8Array(second.buffer))).toBe(address);
    expect(statistics()).toMatchObject({ liveBytes, cacheHits: cacheHits + 1, cachedBytes: 0 });
    second.release();
  });

  test("a released block of the same size is allocated again with its buffer", () => {
    const bytes = 3 * megabyte - 7;
    const first = allocateBlock(native, bytes, "test");
    const { liveBytes, liveBlocks, cacheHits, allocations } = statistics();
    first.release();
    const second = allocateBlock(native, bytes, "test");
    expect(second.buffer).toBe(first.buffer);
    expect(statistics()).toMatchObject({ liveBytes, liveBlocks, cacheHits: cacheHits + 1, cachedBytes: 0 });
    expect(statistics().allocations).toBe(allocations + 1);
    second.release();
    native.orchard_cpu_set_memory_limit(liveBytes - 1);
    expect(() => allocateBlock(native, bytes, "test")).toThrow(OutOfMemoryError);
  });

  test("a released buffer is not used again if its memory is in use, was unmapped, or was transferred", () => {
    const bytes = 3 * megabyte - 9;
    const first = allocateBlock(native, bytes, "test");
    first.release();
    const other = allocateBlock(native, bytes - 1, "test"); // takes its memory
    const second = allocateBlock(native, bytes, "test");
    expect(second.buffer).not.toBe(first.buffer);
    expect(ptr(second.bytes)).not.toBe(ptr(other.bytes));
    second.release();
    native.orchard_cpu_trim();
    const third = allocateBlock(native, bytes, "test");
    expect(third.buffer).not.toBe(second.buffer);
    expect(statistics().cachedBytes).toBe(0);
    const elsewhere = third.buffer.transfer();
    third.release();
    const fourth = allocateBlock(native, bytes, "test");
    expect([fourth.buffer.byteLength, fourth.buffer === elsewhere]).toEqual([bytes, false]);
    for (const block of [other, fourth]) block.release();
  });

  test("disposing of a buffer and collecting it returns its block only once", async () => {
    const { liveBlocks } = statistics();
    for (let index = 0; index < 50; index++) allocateBlock(native, megabyte, "test").release();
    await collect();
    expect(statistics().liveBlocks).toBe(liveBlocks);
    const held = [allocateBlock(native, megabyte, "test"), allocateBlock(native, megabyte, "test")];
    expect(new Set(held.map(({ buffer }) => ptr(new Uint8Array(buffer)))).size).toBe(2);
    for (const block of held) block.release();
  });
});

test("the peak restarts from the live bytes, and does not drop when blocks are released", () => {
  const held = allocateBlock(native, megabyte, "test");
  allocateBlock(native, 8 * megabyte, "test").release();
  native.orchard_cpu_reset_peak();
  const { liveBytes, peakBytes } = statistics();
  expect(peakBytes).toBe(liveBytes);
  allocateBlock(native, 4 * megabyte, "test").release();
  allocateBlock(native, 2 * megabyte, "test").release();
  expect(statistics()).toMatchObject({ liveBytes, peakBytes: liveBytes + 4 * megabyte });
  held.release();
});

describe("limits of memory are errors, not crashes", () => {
  test("the error for an allocation over the memory limit states the bytes, and no memory leaks", () => {
    const { liveBytes, liveBlocks, refusals } = statistics();
    native.orchard_cpu_set_memory_limit(liveBytes + 2 * megabyte);
    const first = allocateBlock(native, megabyte, "test");
    const call = () => allocateBlock(native, 2 * megabyte, "zeros");
    expect(call).toThrow(OutOfMemoryError);
    expect(call).toThrow(`[zeros] ${2 * megabyte} bytes are refused: ${liveBytes + megabyte} bytes are live`);
    first.release();
    expect(statistics()).toMatchObject({ liveBytes, liveBlocks, refusals: refusals + 2 });
    allocateBlock(native, 2 * megabyte, "zeros").release();
  });

  test("free blocks make room for new ones under the memory limit", () => {
    const { liveBytes } = statistics();
    native.orchard_cpu_set_memory_limit(liveBytes + 8 * megabyte);
    native.orchard_cpu_set_cache_limit(8 * megabyte);
    for (const block of [1, 2, 4].map((size) => allocateBlock(native, size * megabyte, "test"))) block.release();
    expect(statistics().cachedBytes).toBe(7 * megabyte);
    const block = allocateBlock(native, 3 * megabyte, "test"); // no block of this size class is free
    expect(statistics()).toMatchObject({ liveBytes: liveBytes + 3 * megabyte, cachedBytes: 4 * megabyte });
    block.release();
  });

  test("the cache keeps the most recent blocks within its limit", () => {
    native.orchard_cpu_set_cache_limit(2 * megabyte);
    const blocks = [1, 1, 1, 4].map((size) => allocateBlock(native, size * megabyte, "test"));
    for (const block of blocks.slice(0, 3)) block.release();
    expect(statistics().cachedBytes).toBe(2 * megabyte);
    blocks[3]?.release(); // larger than the limit, so it is returned to the system at once, after all older blocks
    expect(statistics()).toMatchObject({ cachedBytes: 0, cachedBlocks: 0 });
  });

  test("tests can make allocations fail", () => {
    native.orchard_cpu_fail_allocations(2);
    for (const _ of [1, 2]) expect(() => allocateBlock(native, 100, "test")).toThrow(OutOfMemoryError);
    allocateBlock(native, 100, "test").release();
  });

  test("invalid sizes are rejected", () => {
    const out = new Float64Array(2);
    for (const bytes of [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53])
      expect([bytes, native.orchard_cpu_allocate(bytes, out), ...out]).toEqual([bytes, 1, 0, 0]);
    expect(native.orchard_cpu_allocate(2 ** 52, out)).toBe(Status.memoryLimit);
  });
});

/** Collects garbage until finalizers have run, on any thread. */
async function collect() {
  for (let round = 0; round < 5; round++) {
    Bun.gc(true);
    await Bun.sleep(1);
  }
}
