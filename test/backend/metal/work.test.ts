/** Command buffers are cut by the work of their kernels: one that runs for seconds would be ended by the system. */
import { afterEach, describe, expect, test } from "bun:test";
import { metalContext } from "../../../src/backend/metal/context.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { whyUnavailable } from "../../../src/backend/registry.ts";
import { full } from "../../../src/ops/creation/full.ts";
import { matmul } from "../../../src/ops/matmul/matmul.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";

/** Products of so many; `compute` is off, as only their work counts. */
function multiply(count: number, size: number, batchWork?: number) {
  metalContext().close();
  const context = metalContext();
  if (batchWork !== undefined) context.configure("batch_work", batchWork);
  context.configure("execute", false);
  withBackend("metal", () =>
    withStrict(true, () => {
      const a = full([size, size], 1);
      const products: Tensor[] = [];
      for (let step = 0; step < count; step++) products.push(matmul(a, a));
      context.wait();
      for (const product of products) product.dispose();
    }),
  );
  return context.statistics();
}

afterEach(() => {
  metalContext().configure("execute", true); // of the device, so of every context
  metalContext().close(); // the next one has no limit of work
});

describe.skipIf(whyUnavailable("metal") !== undefined)("work of command buffers", () => {
  test("large products have one each, and small ones share", () => {
    const large = multiply(10, 4096);
    expect(large.largestWork).toBe(2 * 4096 ** 3);
    expect(large.commandBuffers).toBeGreaterThanOrEqual(10);
    const small = multiply(10, 128);
    expect(small.largestWork).toBeLessThan(2 ** 36);
    expect(small.commandBuffers).toBe(1);
  });

  test("a number of products is cut by their work", () => {
    const each = 2 * 256 ** 3;
    const { largestWork, commandBuffers } = multiply(12, 256, 5 * each);
    expect(largestWork).toBeLessThanOrEqual(5 * each);
    expect(largestWork).toBeGreaterThanOrEqual(4 * each);
    expect(commandBuffers).toBe(3);
  });
});
