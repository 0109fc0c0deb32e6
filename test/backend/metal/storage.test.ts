import { describe, expect, test } from "bun:test";
import { MetalMemory } from "../../../src/backend/metal/memory.ts";
import { DeviceBuffer, MetalContext, metalKernel } from "../../../src/index.ts";

const source = `#include <metal_stdlib>
kernel void twice(device const float* x, device float* y, uint i [[thread_position_in_grid]]) { y[i] = 2 * x[i]; }`;

const numbers = Float32Array.from({ length: 64 }, (_, i) => i);

/** The number of copies so far: to another storage, to contiguous, and back to the original layout. */
const copies = (context: MetalContext) => {
  const { copiesStorage, copiesContiguous, copiesWriteBack } = context.statistics();
  return [copiesStorage, copiesContiguous, copiesWriteBack];
};

describe("an operand with the right storage and layout costs no copy", () => {
  test.each(["shared", "private"] as const)("%s buffers are bound directly", (storage) => {
    using context = new MetalContext();
    using kernel = metalKernel({ name: "twice", source, context });
    using x = new DeviceBuffer(numbers, { context, storage });
    using y = new DeviceBuffer(x.byteLength, { context, storage });
    context.wait();
    const before = context.statistics();
    for (let step = 0; step < 5; step++) kernel.encode({ x, y }, { grid: 64 });
    context.wait();
    expect(copies(context)).toEqual([0, 0, 0]);
    expect(context.statistics().liveBytes).toBe(before.liveBytes);
    expect([x.storage, y.storage]).toEqual([storage, storage]);
    expect(y.read(Float32Array)).toEqual(numbers.map((value) => 2 * value));
  });

  test("a hint moves a tensor's memory once; released memory is rejected", () => {
    using context = new MetalContext();
    const memory = new MetalMemory(context, 256);
    new Float32Array(memory.hostBuffer()).set(numbers);
    memory.moveToHint("shared");
    expect([memory.storage, copies(context)]).toEqual(["shared", [0, 0, 0]]);
    memory.moveToHint("private");
    expect([memory.storage, copies(context)]).toEqual(["private", [1, 0, 0]]);
    expect(new Float32Array(memory.hostBuffer())).toEqual(numbers);
    expect([memory.storage, copies(context)]).toEqual(["shared", [2, 0, 0]]);
    memory.release();
    const refused = expect.objectContaining({
      name: "DisposedError",
      message: "[buffer] its memory was already released",
    });
    for (const use of [() => memory.hostBuffer(), () => memory.storage, () => memory.moveToHint("private")])
      expect(use).toThrow(refused);
  });

  test("a hint that is already satisfied moves nothing; any other moves the contents once", () => {
    using context = new MetalContext();
    using x = new DeviceBuffer(numbers, { context, storage: "private" });
    x.moveTo("private");
    expect(copies(context)).toEqual([0, 0, 0]);
    x.moveTo("shared");
    x.moveTo("shared");
    expect(copies(context)).toEqual([1, 0, 0]);
    expect([x.storage, x.read(Float32Array)]).toEqual(["shared", numbers]);
  });
});
