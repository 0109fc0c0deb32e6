/** Unreachable tensors are collected during a loop that never waits. */
import { describe, expect, test } from "bun:test";
import { metalContext } from "../../src/backend/metal/context.ts";
import { withBackend } from "../../src/backend/policy.ts";
import { environmentFlag } from "../../src/core/environment.ts";
import { fill_ } from "../../src/ops/copy/inplace.ts";
import { empty } from "../../src/ops/creation/full.ts";
import { exp } from "../../src/ops/elementwise/exponential.ts";
import { slice } from "../../src/ops/view/slice.ts";
import { memory, resetPeakMemory } from "../../src/tensor/usage.ts";
import { checkForgotten } from "../support/forgotten.ts";

describe("unreachable tensors are collected", () => {
  test.each(["results", "graphs"] as const)(
    "%s are collected in a loop that neither waits nor collects: live bytes trigger the collector",
    checkForgotten,
  );

  test.skipIf(environmentFlag("ORCHARD_SKIP_METAL")).each(["shared", "private"] as const)(
    "tensors on metal are collected, also if operations read their %s buffers",
    (storage) => {
      withBackend("metal", () => {
        metalContext().wait();
        Bun.gc(true);
        resetPeakMemory();
        const before = memory().metal.liveBytes;
        for (let made = 0; made < 1000; made++) {
          const big = fill_(slice(empty([1024, 1024], { storage }), { end: 1 }), 1);
          exp(big); // the operand is a small part of the storage that it keeps alive
        }
        // 1000 tensors of 4 MB. Pending work and garbage may take a 64th of a GPU's memory (backend/metal/memory.ts).
        const { isSoftware, recommendedWorkingSet } = metalContext().deviceInfo();
        const most = Math.max(512 * 2 ** 20, isSoftware ? 0 : recommendedWorkingSet / 32);
        expect(memory().metal.peakBytes - before).toBeLessThan(most);
      });
    },
  );
});
