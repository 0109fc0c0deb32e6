/** A model of two attention layers learns the same while Metal fails in various ways, step after step. */
import { afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { codepaths, resetCodepaths } from "../../../src/backend/codepaths.ts";
import { forgetFailures } from "../../../src/backend/failure.ts";
import { type FaultKind, metalContext } from "../../../src/backend/metal/context.ts";
import { withBackend } from "../../../src/backend/policy.ts";
import { environmentFlag } from "../../../src/core/environment.ts";
import { trainAttention } from "../../support/attention-model.ts";
import { repeats } from "../../support/repeats.ts";
import { checkFindings } from "../run.ts";
import {
  type AttentionOperation,
  clearFaults,
  faultKinds,
  injectedFaults,
  withoutSupport,
  withThreadLimit,
} from "./faults.ts";

/** Each step has a fault. With faults in allocations, a different one fails first in each step. */
const [steps, seed] = [repeats({ usual: 20, all: 50 }), 7];

let warn: ReturnType<typeof spyOn>;

beforeEach(() => {
  warn = spyOn(console, "warn").mockImplementation(() => undefined);
});
afterEach(() => warn.mockRestore());

const learn = (beforeStep?: (step: number) => void): number[] => trainAttention(steps, seed, "auto", beforeStep);
const expected = withBackend("reference", () => learn());

/**
 * Trains on Metal, in a new context without compiled kernels. Checks the losses, and that the operation fell back at
 * least once, for this cause.
 */
function checkCurve(operation: AttentionOperation, cause: RegExp, train: () => number[]): void {
  metalContext().close();
  // Work after a failed command buffer reads memory that was never written, and is computed again.
  metalContext().configure("check", cause !== injectedFaults["command-buffer"]);
  forgetFailures();
  resetCodepaths();
  const losses = withBackend("metal", train);
  clearFaults();
  checkFindings({ name: "training under faults" });
  for (const [step, loss] of losses.entries()) expect(Math.abs(loss - expected[step])).toBeLessThan(2e-5);
  const fellBack = codepaths().filter(({ backend, reason }) => backend !== "metal" && cause.test(reason));
  expect(fellBack.map(({ operation }) => operation)).toContain(operation);
}

/** The faults of a step: most compilations; one allocation, a different one each time; one command buffer. */
const plans: Readonly<Record<FaultKind, (step: number) => { skip: number; count: number }>> = {
  library: () => ({ skip: 4, count: 1000 }),
  pipeline: () => ({ skip: 4, count: 1000 }),
  allocate: (step) => ({ skip: (7 * step) % 60, count: 2 }),
  "command-buffer": (step) => ({ skip: step % 3, count: 1 }),
};

describe.if(!environmentFlag("ORCHARD_SKIP_METAL"))("the curve of losses survives faults", () => {
  test.each(faultKinds)("losses are equal with a fault in each step: %s", (kind) => {
    const disturb = (step: number) => metalContext().injectFault(kind, plans[kind](step));
    checkCurve("attentionBackward", injectedFaults[kind], () => learn(disturb));
  });

  test("losses are equal with pipelines that support few threads", () => {
    const cause = /^metal: .*expected a threadgroup of at most 64 threads, the limit of the pipeline, got \d+/;
    checkCurve("attentionBackward", cause, () => withThreadLimit(64, () => learn()));
  });

  test.each(["attentionForward", "attentionBackward"] as const)(
    "losses are equal if %s lacks an option",
    (operation) => {
      checkCurve(operation, /^metal: no such option$/, () =>
        withoutSupport(operation, "no such option", () => learn()),
      );
    },
  );
});
