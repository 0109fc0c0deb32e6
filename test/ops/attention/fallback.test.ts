/** A training step of attention whose kernels fail on Metal: the same results, with the cause in the record. */
import { afterAll, afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { noGrad } from "../../../src/autograd/modes.ts";
import { codepaths, resetCodepaths } from "../../../src/backend/codepaths.ts";
import { forgetFailures } from "../../../src/backend/failure.ts";
import { type FaultKind, metalContext } from "../../../src/backend/metal/context.ts";
import { setBackend, withBackend, withStrict } from "../../../src/backend/policy.ts";
import { environmentFlag } from "../../../src/core/environment.ts";
import { flashAttention } from "../../../src/ops/attention/flash_attention.ts";
import { backward } from "../../../src/ops/gradient/backward.ts";
import { mul, randn, sub_ } from "../../../src/ops/index.ts";
import { Generator } from "../../../src/random/generator.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { checkFindings, tested } from "../run.ts";
import {
  type AttentionOperation,
  clearFaults,
  faultKinds,
  injectedFaults,
  injectOnce,
  operations,
  withoutSupport,
  withThreadLimit,
} from "./faults.ts";

const hasMetal = !environmentFlag("ORCHARD_SKIP_METAL");

interface Sizes {
  readonly queries: number;
  readonly keys: number;
}

/** Numbers of queries for the forward kernel with tiles, and for the one that splits keys into parts. */
const tiled: Sizes = { queries: 20, keys: 24 };
const few: Sizes = { queries: 3, keys: 1100 };

let warnings: string[] = [];
let warn: ReturnType<typeof spyOn>;

beforeEach(() => {
  warn = spyOn(console, "warn").mockImplementation((line: string) => void warnings.push(line));
  if (hasMetal) setBackend("metal");
  startAnew();
});

afterEach(() => {
  if (hasMetal) {
    clearFaults();
    checkFindings({ name: "attention under faults" });
  }
  warn.mockRestore();
  setBackend("cpu");
});
afterAll(() => {
  if (!hasMetal) return;
  metalContext().close(); // the next file gets a new context with the usual batches
  forgetFailures();
});

/**
 * A new context that has compiled nothing, with a command buffer for each kernel, and an empty record. Without the
 * checker if a command buffer is to fail: later ones then read memory that was never written, and are computed again.
 */
function startAnew({ check = true } = {}): void {
  warnings = [];
  if (hasMetal) {
    metalContext().close();
    metalContext().configure("check", check);
    metalContext().configure("batch_operations", 1);
  }
  forgetFailures();
  resetCodepaths();
}

type Around = (operation: AttentionOperation, pass: () => void) => void;
const plainly: Around = (_, pass) => pass();

/** Forward, backward and update with dropout, from operands in host memory: every result as numbers. */
function step({ queries, keys }: Sizes, around: Around = plainly, dtype: "float32" | "float64" = "float32") {
  const draw = (rows: number, seed: number, requiresGrad = true) =>
    withBackend("reference", () => randn([1, 2, rows, 8], { generator: new Generator(seed), requiresGrad, dtype }));
  const operands = [draw(queries, 1), draw(keys, 2), draw(keys, 3)] as const;
  const gradOut = draw(queries, 4, false);
  const options = { causal: true, dropout: 0.1, generator: new Generator(5), returnDropoutMask: true } as const;
  const results: Tensor[] = [];
  around("attentionForward", () => {
    const { out, dropoutMask } = flashAttention(...operands, options);
    results.push(dropoutMask!, out);
  });
  around("attentionBackward", () => backward(results[1], gradOut));
  const gradients = operands.map(({ grad }) => grad!);
  noGrad(() => {
    for (const [at, operand] of operands.entries()) sub_(operand, mul(gradients[at], 0.1));
  });
  const [mask, ...values] = [...results, ...gradients, ...operands].map((x) => Array.from(x.dataSync(), Number));
  return { mask: mask, values: values.flat() };
}

/** Runs only the passes of one operation under `fault`. The forward pass draws the mask too. */
const inPassOf = (operation: AttentionOperation, fault: (pass: () => void) => void): Around => {
  const target = operation === "attentionBackward" ? operation : "attentionForward";
  return (current, pass) => (current === target ? fault(pass) : pass());
};

const fused = new Map<Sizes, ReturnType<typeof step>>();

/** The step without a fault, fused on one backend only: Metal if available. */
function expectedOf(sizes: Sizes) {
  const known = fused.get(sizes) ?? withStrict(true, () => step(sizes));
  fused.set(sizes, known);
  return known;
}

function expectSame(got: ReturnType<typeof step>, sizes: Sizes): void {
  const expected = expectedOf(sizes);
  expect(got.mask).toEqual(expected.mask);
  expect(got.mask).toContain(0);
  expect(got.values).toHaveLength(expected.values.length);
  for (const [at, value] of got.values.entries()) expect(Math.abs(value - expected.values[at])).toBeLessThan(1e-5);
}

/** Where an operation ran, and why. */
const waysOf = (wanted: AttentionOperation) =>
  codepaths()
    .filter(({ operation }) => operation === wanted)
    .map(({ backend, reason }) => ({ backend, reason }));

/**
 * Checks that a step with a fault has the same results as one without, that its operation ran elsewhere, and that the
 * record has the cause.
 */
function checkFallback(sizes: Sizes, operation: AttentionOperation, cause: RegExp, fault: (pass: () => void) => void) {
  const got = step(sizes, inPassOf(operation, fault));
  const elsewhere = waysOf(operation).filter(({ backend }) => backend !== "metal");
  expect(elsewhere).toEqual([{ backend: "cpu", reason: expect.stringMatching(cause) }]);
  expectSame(got, sizes);
}

/**
 * Counts what can fail in an operation: results, operands that are moved to the device and scratch memory are
 * allocations.
 */
type Occurrences = Readonly<Record<FaultKind, number>>;
const rows: readonly { operation: AttentionOperation; sizes: Sizes; before?: Occurrences; occurrences: Occurrences }[] =
  [
    {
      operation: "attentionForward",
      sizes: tiled,
      occurrences: { library: 1, pipeline: 1, allocate: 6, "command-buffer": 1 },
    },
    {
      operation: "attentionForward",
      sizes: few,
      occurrences: { library: 1, pipeline: 2, allocate: 7, "command-buffer": 2 },
    },
    {
      operation: "attentionDropoutMask",
      sizes: tiled,
      before: { library: 1, pipeline: 1, allocate: 6, "command-buffer": 1 },
      occurrences: { library: 1, pipeline: 1, allocate: 1, "command-buffer": 1 },
    },
    {
      operation: "attentionBackward",
      sizes: tiled,
      occurrences: { library: 3, pipeline: 3, allocate: 5, "command-buffer": 3 },
    },
  ];

const cases = rows.flatMap(({ operation, sizes, before, occurrences }) =>
  faultKinds.flatMap((kind) =>
    Array.from({ length: occurrences[kind] }, (_, at) => ({
      operation,
      kind,
      sizes,
      at: at + 1,
      skip: at + (before?.[kind] ?? 0),
      of: occurrences[kind],
      name: sizes === few ? "with few queries" : "",
    })),
  ),
);

describe.if(hasMetal)("a training step succeeds", () => {
  test.each(cases)("a step succeeds: $operation $name, $kind, $at of $of", ({ operation, kind, sizes, skip }) => {
    expectedOf(sizes);
    startAnew({ check: kind !== "command-buffer" });
    checkFallback(sizes, operation, injectedFaults[kind], (pass) => {
      injectOnce(kind, skip);
      pass();
      metalContext().commit();
      clearFaults();
    });
    expect(warnings).toHaveLength(1); // the cause is reported once
  });

  test.each(operations)("a step succeeds: %s with a pipeline that supports too few threads", (operation) => {
    const threads = operation === "attentionDropoutMask" ? 128 : 64; // the forward pass's 128 threads fit
    const cause = new RegExp(`^metal: .*of at most ${threads} threads, the limit of the pipeline`);
    expectedOf(tiled);
    startAnew();
    checkFallback(tiled, operation, cause, (pass) => withThreadLimit(threads, pass));
    expect(warnings.length).toBeGreaterThan(0);
  });

  test.each(operations)("a step falls back if the kernels of %s lack an option", (operation) => {
    const why = "no kernel has this option";
    checkFallback(tiled, operation, /^metal: no kernel has this option$/, (pass) =>
      withoutSupport(operation, why, pass),
    );
    expect(warnings).toEqual([]); // a missing feature is not a failure
  });

  test("a step succeeds in a dtype that a GPU lacks", () => {
    const got = step(tiled, plainly, "float64");
    const mask = { backend: "metal", reason: "preferred" } as const; // the mask's operation has no operand in float64
    const elsewhere = { backend: "cpu", reason: "metal: Metal has no float64" } as const;
    expect(operations.map(waysOf)).toEqual([[elsewhere], [mask], [elsewhere]]);
    const expected = withBackend("reference", () => step(tiled, plainly, "float64"));
    expect(got.mask).toEqual(expected.mask);
    for (const [at, value] of got.values.entries()) expect(value).toBeCloseTo(expected.values[at], 12);
  });

  test("a step succeeds if forward, mask and backward all fail, each in a different way", () => {
    expectedOf(tiled);
    startAnew({ check: false });
    const fault: Readonly<Partial<Record<AttentionOperation, FaultKind>>> = {
      attentionForward: "library",
      attentionBackward: "command-buffer",
    };
    const got = step(tiled, (operation, pass) => {
      injectOnce(fault[operation]!, 0);
      withoutSupport("attentionDropoutMask", "no masks", pass);
      metalContext().commit();
    });
    const reasons = operations.map((operation) => waysOf(operation).filter(({ backend }) => backend === "cpu"));
    expect(reasons.flat().map(({ reason }) => reason)).toEqual([
      expect.stringMatching(injectedFaults.library),
      "metal: no masks",
      expect.stringMatching(injectedFaults["command-buffer"]),
    ]);
    expectSame(got, tiled);
  });
});

test.if(hasMetal)("in strict mode a failure is an error that names the operation and the cause", () => {
  const failing = () =>
    withStrict(true, () =>
      step(
        tiled,
        inPassOf("attentionBackward", (pass) => {
          injectOnce("library", 1);
          pass();
        }),
      ),
    );
  expect(failing).toThrow(/attentionBackward.*strict mode allows no fallback.*Injected failure of the compiler/s);
});

const pairs = tested.flatMap((forward) =>
  tested.filter((name) => name !== forward).map((backward) => [forward, backward] as const),
);

test.each(pairs)("a step succeeds with its forward on %s and its backward on %s", (forward, backward) => {
  const on: Around = (operation, pass) =>
    withStrict(true, () => withBackend(operation === "attentionForward" ? forward : backward, pass));
  const got = step(tiled, on);
  expect(operations.map(waysOf)).toEqual(
    [forward, forward, backward].map((backend) => [{ backend, reason: "preferred" }]),
  );
  expectSame(got, tiled);
});
