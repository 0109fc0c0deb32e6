/** Released JavaScript blocks are reused, but never while they can still be reached. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { withBackend } from "../../src/backend/policy.ts";
import { backward, detach, fromArray, mul, noGrad, reshape, sum, type Tensor, tensor } from "../../src/index.ts";
import { LARGE, ScriptMemory } from "../../src/tensor/memory.ts";
import { dropSpareBlocks, poisonSpareBlocks, spareBytes } from "../../src/tensor/spare_blocks.ts";
import { reclaimMemory } from "../../src/tensor/usage.ts";

beforeEach(dropSpareBlocks);
afterEach(() => poisonSpareBlocks(0xff)); // as in preload.ts

const COUNT = 1024; // elements of float32: 4 KB
const made = (value: number): Tensor => tensor(Array.from({ length: COUNT }, () => value));
const bytesOf = ({ storage }: Tensor) => storage.hostBytes();

describe("blocks that are kept for reuse", () => {
  test("a block is reused once its tensor is disposed of, only for the same size", () => {
    withBackend("cpu", () => {
      const [x, factor] = [made(1), made(3)];
      const bytes = bytesOf(x);
      x.dispose();
      expect(spareBytes()).toBe(4 * COUNT);
      expect(bytesOf(tensor(Array.from({ length: COUNT - 1 }, () => 1)))).not.toBe(bytes);
      const y = mul(factor, 2);
      expect([bytesOf(y) === bytes, spareBytes()]).toEqual([true, 0]);
      expect(y.toArray()).toEqual(Array.from({ length: COUNT }, () => 6));
    });
  });

  test("a block stays while a view, or a copy of its handle, is alive", () => {
    const x = made(1);
    const others = [reshape(x, [32, 32]), detach(x), x.slice({ start: 5 })];
    x.dispose();
    for (const other of others) {
      expect([spareBytes(), other.dataSync()[0]]).toEqual([0, 1]);
      other.dispose();
    }
    expect(spareBytes()).toBe(4 * COUNT);
  });

  test("a block stays while a backward pass needs it", () => {
    withBackend("cpu", () => {
      const w = made(2);
      w.requiresGrad = true;
      const x = made(5);
      const loss = sum(mul(w, x));
      x.dispose();
      const [before, others] = [spareBytes(), noGrad(() => [made(7), made(7), made(7)])];
      backward(loss);
      expect([before, others.length, w.grad!.dataSync()[0]]).toEqual([0, 3, 5]);
    });
  });

  test("a block is not reused if a caller received it or passed it", () => {
    const [x, array] = [made(1), new Float32Array(COUNT).fill(4)];
    const data = x.dataSync();
    const borrowed = fromArray(array, [COUNT]);
    x.dispose();
    expect([data[0], spareBytes()]).toEqual([1, 4 * COUNT]);
    borrowed.dispose();
    new ScriptMemory(new ArrayBuffer(4 * COUNT)).release();
    expect([array[0], spareBytes()]).toEqual([4, 4 * COUNT]);
  });

  test("a block is kept once, however often its memory is released, and a late release does nothing", () => {
    const memory = new ScriptMemory(4 * COUNT);
    memory.release();
    memory.release();
    expect([spareBytes(), memory.hostBytes().length]).toEqual([4 * COUNT, 0]);
    const [first, second] = [new ScriptMemory(4 * COUNT), new ScriptMemory(4 * COUNT)];
    expect(first.hostBytes().buffer).not.toBe(second.hostBytes().buffer);
  });

  test("a block whose buffer was transferred is not reused", () => {
    const memory = new ScriptMemory(4 * COUNT);
    const { buffer } = memory.hostBytes() as Uint8Array<ArrayBuffer>;
    memory.release();
    structuredClone(buffer, { transfer: [buffer] });
    expect(new ScriptMemory(4 * COUNT).byteLength).toBe(4 * COUNT);
  });
});

describe("the cache of spare blocks is bounded", () => {
  test("the cache is bounded", () => {
    const blocks = Array.from({ length: 200 }, () => new ScriptMemory(LARGE - 8));
    for (const block of blocks) {
      block.release();
      expect(spareBytes()).toBeLessThanOrEqual(4 * 2 ** 20);
    }
    expect(spareBytes()).toBeGreaterThan(0);
  });

  test("the cache has no tiny or large blocks", () => {
    for (const size of [1, 512, LARGE, 2 * LARGE]) new ScriptMemory(size).release();
    expect(spareBytes()).toBe(0);
  });

  test("the cache is released if memory is short", () => {
    new ScriptMemory(4 * COUNT).release();
    expect(spareBytes()).toBe(4 * COUNT);
    reclaimMemory();
    expect(spareBytes()).toBe(0);
  });

  test("blocks of the cache are poisoned in tests", () => {
    const memory = new ScriptMemory(4 * COUNT);
    const bytes = memory.hostBytes().fill(1);
    memory.release();
    expect(bytes.every((byte) => byte === 0xff)).toBe(true);
  });
});
