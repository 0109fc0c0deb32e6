/** Command buffers are split by the work of their kernels, because the system would end one that runs for seconds. */
import { afterEach, describe, expect, test } from "bun:test";
import { metalContext } from "../../../src/backend/metal/context.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { whyUnavailable } from "../../../src/backend/registry.ts";
import { full } from "../../../src/ops/creation/full.ts";
import { matmul } from "../../../src/ops/matmul/matmul.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";

/** Products of this size. `compute` is off, since only their estimated work counts. */
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
  metalContext().configure("execute", true); // settings are the device's, so they apply to every context
  metalContext().close(); // the next context has no limit on work
});

describe.skipIf(whyUnavailable("metal") !== undefined)("work of command buffers", () => {
  test("each large product has a separate command buffer, and small ones share one", () => {
    const large = multiply(10, 4096);
    expect(large.largestWork).toBe(2 * 4096 ** 3);
    expect(large.commandBuffers).toBeGreaterThanOrEqual(10);
    const small = multiply(10, 128);
    expect(small.largestWork).toBeLessThan(2 ** 36);
    expect(small.commandBuffers).toBe(1);
  });

  test("many products are split by their amount of work", () => {
    const each = 2 * 256 ** 3;
    const { largestWork, commandBuffers } = multiply(12, 256, 5 * each);
    expect(largestWork).toBeLessThanOrEqual(5 * each);
    expect(largestWork).toBeGreaterThanOrEqual(4 * each);
    expect(commandBuffers).toBe(3);
  });
});
