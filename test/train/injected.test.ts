/**
 * A run on a Metal device that fails in various ways ends with the losses, moments and sample of a run without
 * failures.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, type Mock, spyOn, test } from "bun:test";
import type { Implementation } from "../../src/backend/backend.ts";
import { codepaths, resetCodepaths } from "../../src/backend/codepaths.ts";
import { forgetFailures } from "../../src/backend/failure.ts";
import { type FaultKind, metalContext } from "../../src/backend/metal/context.ts";
import { withStrict } from "../../src/backend/policy.ts";
import { environmentFlag } from "../../src/core/environment.ts";
import { backwardMetal } from "../../src/ops/attention/backward.metal.ts";
import { forwardMetal } from "../../src/ops/attention/forward.metal.ts";
import { updatePrimitive } from "../../src/optim/update.ts";
import type { Session } from "../../src/train/session.ts";
import { clearFaults, faultKinds, injectedFaults } from "../ops/attention/faults.ts";
import { checkFindings } from "../ops/run.ts";
import { type Disturbance, distances, small, type Trained, train } from "./trained.ts";

/** Relative to the largest number: another backend rounds differently. */
const TOLERANCE = 2e-6;
const settings = { ...small, steps: 6 };

let expected: Trained;
let warn: Mock<typeof console.warn>;
beforeAll(async () => {
  warn = spyOn(console, "warn").mockImplementation(() => undefined);
  if (!environmentFlag("ORCHARD_SKIP_METAL")) expected = await withStrict(true, () => train("metal", settings));
});
afterAll(() => warn.mockRestore());
beforeEach(() => {
  warn.mockClear();
  metalContext().close(); // the next context has compiled nothing
  forgetFailures();
  resetCodepaths();
});

/** Trains while faults occur. Operations sometimes fall back; this cause is recorded, and reported once. */
async function checkRun(operations: readonly string[], cause: RegExp, disturb: Disturbance = {}): Promise<void> {
  const trained = await train("metal", settings, disturb);
  clearFaults();
  checkFindings({ name: "a run under faults" });
  const far = distances(trained, expected);
  expect(Object.entries(far).filter(([, distance]) => !(distance <= TOLERANCE))).toEqual([]);
  expect(trained.sample).toBe(expected.sample);
  const fellBack = codepaths().filter(({ backend, reason }) => backend !== "metal" && cause.test(reason));
  expect(fellBack).not.toBeEmpty();
  const names = fellBack.map(({ operation }) => operation);
  expect(operations.filter((operation) => !names.includes(operation))).toEqual([]);
  expect(new Set(said()).size).toBe(said().length);
}

const said = (): string[] => warn.mock.calls.map(([text]) => String(text));

/** Which calls fail in a step: nearly all compilations; a few allocations, others in each step; one command buffer. */
const plans: Readonly<Record<FaultKind, (step: number) => { skip: number; count: number }>> = {
  library: () => ({ skip: 4, count: 1000 }),
  pipeline: () => ({ skip: 4, count: 1000 }),
  allocate: (step) => ({ skip: (37 * step) % 200, count: 4 }),
  "command-buffer": (step) => ({ skip: step % 3, count: 1 }),
};

/** Operations of the forward pass, the backward pass and the update. Any allocation may fail. */
const operations = ["attentionForward", "attentionBackward", "optimizerUpdate"] as const;

type Refusing = Pick<Implementation<never>, "unsupported">;
const implementations: Readonly<Record<(typeof operations)[number], Refusing>> = {
  attentionForward: forwardMetal,
  attentionBackward: backwardMetal,
  optimizerUpdate: updatePrimitive.implementations.metal as Refusing,
};

/** Makes Metal's kernels lack an option of an operation's calls, until the result is disposed of. */
function withoutSupport(implementation: Refusing): Disposable {
  const known = implementation.unsupported;
  implementation.unsupported = () => "no such option";
  const restore = () => {
    if (known) implementation.unsupported = known;
    else delete implementation.unsupported;
  };
  return { [Symbol.dispose]: restore };
}

/** Injects a fault after the gradients of each step are known, and before they change anything. */
const beforeUpdates =
  (inject: () => void) =>
  ({ optimizer }: Session): void => {
    const step = optimizer.step.bind(optimizer);
    spyOn(optimizer, "step").mockImplementation(() => {
      inject();
      step();
    });
  };

describe.skipIf(environmentFlag("ORCHARD_SKIP_METAL"))("a run with faults equals one without", () => {
  test.each(faultKinds)("a run equals one without faults if its steps have a fault: %s", async (kind) => {
    // Work after a failed command buffer reads memory that was never written, and is computed again.
    metalContext().configure("check", kind !== "command-buffer");
    const beforeStep = (step: number) => metalContext().injectFault(kind, plans[kind](step));
    await checkRun(kind === "allocate" ? [] : operations, injectedFaults[kind], { beforeStep });
    expect(said().join("\n")).toMatch(/injected/i);
  });

  test.each(faultKinds)("a run equals one without faults if each update has one: %s", async (kind) => {
    metalContext().configure("check", kind !== "command-buffer");
    const atStart = beforeUpdates(() => metalContext().injectFault(kind, { count: kind === "allocate" ? 2 : 1 }));
    await checkRun(["optimizerUpdate"], injectedFaults[kind], { atStart });
    expect(said().join("\n")).toMatch(/injected/i);
  });

  test("a run equals a usual one if pipelines support few threads", async () => {
    metalContext().configure("check", true);
    metalContext().configure("max_threads", 64);
    try {
      await checkRun(
        ["attentionBackward"],
        /^metal: .*expected a threadgroup of at most 64 threads, the limit of the pipeline, got \d+/,
      );
    } finally {
      metalContext().configure("max_threads", 1024);
    }
  });

  test.each(operations)("a run equals a usual one if %s lacks an option", async (operation) => {
    metalContext().configure("check", true);
    using _ = withoutSupport(implementations[operation]);
    await checkRun([operation], /^metal: no such option$/);
  });
});
