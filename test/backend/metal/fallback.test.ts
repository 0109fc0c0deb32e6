/**
 * Every way in which Metal can fail: the result is the same, the fallback is recorded, and the cause is reported once.
 */
import { afterAll, afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { noGrad } from "../../../src/autograd/modes.ts";
import { codepaths, resetCodepaths } from "../../../src/backend/codepaths.ts";
import { forgetFailures } from "../../../src/backend/failure.ts";
import { type FaultKind, MetalContext, metalContext } from "../../../src/backend/metal/context.ts";
import { setBackend, withBackend, withStrict } from "../../../src/backend/policy.ts";
import { BackendError, DisposedError } from "../../../src/core/errors.ts";
import { tensor } from "../../../src/ops/creation/tensor.ts";
import { add, mul, sub } from "../../../src/ops/elementwise/arithmetic.ts";
import { exp } from "../../../src/ops/elementwise/exponential.ts";
import { backward } from "../../../src/ops/gradient/backward.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { takeFindings } from "../../support/leftovers.ts";

const values = Float32Array.from({ length: 1000 }, (_, index) => Math.sin(index));
const expected = Float32Array.from(values, (value) => Math.fround(Math.fround(Math.exp(value)) * 3));

let warnings: string[];
let warn: ReturnType<typeof spyOn>;

beforeEach(() => {
  setBackend("metal");
  forgetFailures();
  resetCodepaths();
  warnings = [];
  warn = spyOn(console, "warn").mockImplementation((line: string) => void warnings.push(line));
});

afterEach(() => {
  for (const kind of ["allocate", "library", "pipeline", "command-buffer"] as FaultKind[])
    metalContext().injectFault(kind, { count: 0 });
  warn.mockRestore();
  setBackend("cpu");
});

// Dispatches after a command buffer that failed read memory that was never written. The checker rightly reports it.
afterAll(() => void takeFindings());

function closeTo(result: Tensor): void {
  const got = result.dataSync() as Float32Array;
  expect(got.length).toBe(expected.length);
  for (const [index, value] of got.entries())
    expect(Math.abs(value - expected[index])).toBeLessThan(2e-6 * Math.abs(expected[index]));
}

describe("a failure during a call causes a fallback", () => {
  test("an allocation that fails causes a fallback", () => {
    const x = tensor(values);
    metalContext().injectFault("allocate", { count: 1000 });
    closeTo(mul(exp(x), 3));
    expect(codepaths().some(({ operation, reason }) => operation === "exp" && reason.startsWith("metal: "))).toBe(true);
  });

  test("a pipeline that fails causes a fallback, is reported once, and is not tried again for such calls", () => {
    metalContext().close(); // a new context has no pipelines yet
    const context = metalContext();
    const x = tensor(Float16Array.from(values));
    context.injectFault("pipeline", { count: 1000 });
    exp(x);
    exp(x);
    expect(warnings.filter((line) => line.includes("exp could not run on metal"))).toHaveLength(1);
  });

  test("in strict mode a failure is an error that names the cause", () => {
    const x = tensor(values);
    metalContext().injectFault("allocate", { count: 1000 });
    expect(() => withStrict(true, () => exp(x))).toThrow(BackendError);
    expect(() => withStrict(true, () => exp(x))).toThrow(/strict mode allows no fallback.*metal/s);
  });

  test("an unsupported call is recorded with its reason, without a warning", () => {
    exp(tensor(new Float64Array([1])));
    expect(codepaths().find(({ operation }) => operation === "exp")?.reason).toContain("Metal has no float64");
    expect(warnings).toEqual([]);
  });
});

describe("a failed command buffer is computed again on another backend", () => {
  test("one operation is computed again when its result is read at once", () => {
    const x = tensor(values);
    metalContext().injectFault("command-buffer");
    closeTo(mul(exp(x), 3));
    expect(warnings).toHaveLength(1);
    expect(codepaths().some(({ reason }) => reason === "metal: the command buffer failed")).toBe(true);
  });

  test("operations of later command buffers that read the lost results are computed again", () => {
    const context = metalContext();
    const x = tensor(values);
    context.injectFault("command-buffer");
    const y = exp(x);
    context.commit();
    const z = mul(y, 3);
    context.commit();
    closeTo(z);
  });

  test("a lost result that is awaited is computed again", async () => {
    const x = tensor(values);
    metalContext().injectFault("command-buffer");
    const result = mul(exp(x), 3);
    const got = await result.data();
    expect(got[0]).toBeCloseTo(expected[0], 5);
    closeTo(result);
  });

  test("after a failure in the middle of a training step, the gradients match the reference", () => {
    const step = () => {
      const w = tensor(values, { requiresGrad: true });
      backward(mul(exp(w), w), tensor(values));
      return w.grad!.dataSync() as Float32Array;
    };
    const wanted = withBackend("reference", step);
    for (let skip = 0; skip < 3; skip++) {
      metalContext().injectFault("command-buffer", { skip });
      const got = step();
      for (const [index, value] of got.entries())
        expect(Math.abs(value - wanted[index])).toBeLessThan(1e-5 * Math.max(1, Math.abs(wanted[index])));
      metalContext().injectFault("command-buffer", { count: 0 });
    }
  });

  test("later operations run on Metal again", () => {
    metalContext().injectFault("command-buffer");
    add(tensor(values), 1).dataSync();
    resetCodepaths();
    add(tensor(values), 1).dataSync();
    expect(codepaths().map(({ backend }) => backend)).toEqual(["metal"]);
  });
});

describe("a command buffer that is dropped because of another one's failure", () => {
  const accessRevoked = 4;

  test("dropped work runs again on metal, on a new queue, which is reported once", () => {
    const context = metalContext();
    const before = context.statistics();
    for (let round = 0; round < 2; round++) {
      context.injectFault("command-buffer", { code: accessRevoked });
      closeTo(mul(exp(tensor(values)), 3));
    }
    const after = context.statistics();
    expect(after.queuesReplaced - before.queuesReplaced).toBe(2);
    expect(after.commandBuffersRepeated - before.commandBuffersRepeated).toBe(2);
    expect(after.failedTickets).toBe(before.failedTickets);
    expect(codepaths().map(({ backend }) => backend)).not.toContain("cpu");
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toMatch(/dropped 1 command buffers? .* A new queue runs 1 of them again; 0 can't/);
    expect(context.report().notes.filter((note) => note.includes("A new queue"))).toHaveLength(2);
  });

  test("dropped work runs again if it is awaited", async () => {
    metalContext().injectFault("command-buffer", { code: accessRevoked });
    expect(((await mul(exp(tensor(values)), 3).data()) as Float32Array)[0]).toBeCloseTo(expected[0], 5);
  });

  test("if the device accepts no work, another backend computes", () => {
    metalContext().injectFault("command-buffer", { count: 3, code: accessRevoked });
    closeTo(mul(exp(tensor(values)), 3));
    expect(codepaths().some(({ reason }) => reason === "metal: the command buffer failed")).toBe(true);
  });
});

test("training continues through failures of every kind, to the same weights", () => {
  const train = (steps: number, disturb: (step: number) => void): Float32Array => {
    let w = tensor(values, { requiresGrad: true });
    for (let step = 0; step < steps; step++) {
      disturb(step);
      backward(mul(exp(w), w), tensor(values));
      const next = noGrad(() => sub(w, mul(w.grad!, 1e-3)));
      w.dispose();
      w = tensor(next.dataSync() as Float32Array, { requiresGrad: true });
    }
    return w.dataSync() as Float32Array;
  };
  const kinds: FaultKind[] = ["command-buffer", "allocate"];
  const got = train(40, (step) =>
    metalContext().injectFault(kinds[step % 2], { skip: step % 5, count: 1 + (step % 3) }),
  );
  expect(metalContext().statistics().failedTickets).toBeGreaterThan(5);
  const wanted = withBackend("reference", () => train(40, () => undefined));
  for (const [index, value] of got.entries())
    expect(Math.abs(value - wanted[index])).toBeLessThan(1e-5 * Math.max(1, Math.abs(wanted[index])));
  const causes = warnings.map((line) => line.replace(/\d+/g, "").split("\n")[0]);
  expect(causes).toEqual([...new Set(causes)]); // each cause is reported once, however often it occurred
});

describe("a closed context is reported by every later use", () => {
  test("closing invalidates its tensors: every use names the operation and the cause", async () => {
    const x = tensor(values);
    metalContext().close();
    const lost = /float32\[1000\] was in a Metal context that was closed/;
    expect(() => exp(x)).toThrow(lost);
    expect(() => x.dataSync()).toThrow(DisposedError);
    await expect(x.data()).rejects.toThrow(lost);
    x.dispose();
    expect(warnings).toEqual([]); // nothing was tried on another backend
  });

  test("plain numbers stay usable: their cached tensors are created again", () => {
    closeTo(mul(exp(tensor(values)), 3));
    metalContext().close();
    closeTo(withStrict(true, () => mul(exp(tensor(values)), 3)));
  });

  test("waiting for a closed context is rejected", () => {
    const context = new MetalContext();
    context.close();
    expect(() => context.wait()).toThrow(/closed/);
  });
});
