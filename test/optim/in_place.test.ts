/** The effects of a step: layouts, views, versions, threads, and failed command buffers. */
import { afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { configure, cpuLibrary } from "../../src/backend/cpu/loader.ts";
import { forgetFailures } from "../../src/backend/failure.ts";
import { type FaultKind, metalContext } from "../../src/backend/metal/context.ts";
import { withBackend } from "../../src/backend/policy.ts";
import {
  codepaths,
  manualSeed,
  noGrad,
  optim,
  randn,
  resetCodepaths,
  type Tensor,
  tensor,
  zeros,
} from "../../src/index.ts";
import { type Layout, makeBlock, place, Random } from "../ops/samples.ts";
import { bitsOf, draw, make, on, parameterOf, tested, valuesOf } from "./run.ts";

const { AdamW, SGD } = optim;

const layouts: readonly Layout[] = ["contiguous", "offset", "transposed", "strided", "reversed"];

describe.each(tested)("a step on %s", (backend) => {
  const pairs = layouts.flatMap((parameter) => layouts.map((gradient) => [parameter, gradient] as const));
  test.each(pairs)("a parameter that is %s, with a gradient that is %s, gets the step", (parameter, gradient) => {
    on(backend, () => {
      const random = new Random(7);
      const [start, slope] = [1, 2].map(() => makeBlock({ shape: [3, 5] }, "float32", random));
      const w = place(start, parameter, backend, random);
      w.requiresGrad = true;
      w.grad = place(slope, gradient, backend, random);
      const plain = parameterOf(start.values, "float32", [3, 5]);
      plain.grad = tensor(Float32Array.from(slope.values), { shape: [3, 5] });
      const around = surroundings(w);
      for (const x of [w, plain]) {
        const optimizer = new AdamW([x], { lr: 0.1 });
        for (let step = 0; step < 2; step++) optimizer.step();
      }
      expect(bitsOf([w])).toBe(bitsOf([plain]));
      expect(surroundings(w)).toEqual(around);
    });
  });

  test("views of a parameter change with it", () => {
    on(backend, () => {
      const w = parameterOf([1, 2, 3, 4], "float32", [2, 2]);
      const row = noGrad(() => w.select(0, 1));
      w.grad = tensor([
        [1, 1],
        [1, 1],
      ]);
      new SGD([w], { lr: 1 }).step();
      expect(valuesOf(row)).toEqual([2, 3]);
    });
  });

  test("parameters without a gradient or without elements are unchanged", () => {
    on(backend, () => {
      const [a, b, empty] = [parameterOf([1]), parameterOf([2]), zeros([0, 3], { requiresGrad: true })];
      a.grad = tensor([1]);
      empty.grad = zeros([0, 3]);
      const optimizer = new AdamW([b, a, empty], { lr: 0.5, weightDecay: 0 });
      optimizer.step();
      expect([valuesOf(a)[0], valuesOf(b)[0]]).toEqual([expect.closeTo(0.5, 5), 2]);
      expect(optimizer.stateDict().steps).toEqual({ 0: 0, 1: 1, 2: 0 });
    });
  });

  test("the state of a parameter does not depend on its group", () => {
    on(backend, () => {
      const together = [1, 2, 3].map((value) => parameterOf([value, value]));
      const alone = [1, 2, 3].map((value) => parameterOf([value, value]));
      const one = new AdamW(together);
      const each = alone.map((x) => new AdamW([x]));
      for (const skipped of [-1, 0, 2, 1, -1, 0]) {
        for (const [at, x] of together.entries()) {
          const gradient = () => tensor(Float32Array.from(draw(2, at + 7 * skipped)));
          x.grad = at === skipped ? null : gradient();
          alone[at].grad = at === skipped ? null : gradient();
        }
        one.step();
        for (const optimizer of each) optimizer.step();
      }
      expect(bitsOf(together)).toBe(bitsOf(alone));
    });
  });

  test("an option that changes between steps changes the state tensors", () => {
    on(backend, () => {
      const w = parameterOf([1], "bfloat16");
      const optimizer = new SGD([w], { lr: 0.5, momentum: 0.5, masterWeights: true });
      const step = () => {
        w.grad = tensor([0.25]);
        optimizer.step();
        return valuesOf(w)[0];
      };
      expect(step()).toBe(0.875); // the momentum is 0.25
      optimizer.groups[0].momentum = 0;
      expect(step()).toBe(0.75);
      expect(Object.keys(optimizer.stateDict().tensors)).toEqual(["0.master"]);
      optimizer.groups[0].momentum = 0.5;
      expect(step()).toBe(0.625); // the momentum restarts
    });
  });

  test("a step increments the version, so that backward detects the change", () => {
    on(backend, () => {
      const w = parameterOf([2]);
      const loss = w.mul(w).sum();
      w.grad = tensor([1]);
      new SGD([w]).step();
      expect(() => loss.backward()).toThrow(/changed/);
    });
  });
});

/** The elements of a storage outside of a tensor. */
function surroundings(x: Tensor): unknown[] {
  const all = Array.from(x.storage.array("float32"));
  const own = new Set<number>();
  for (let row = 0; row < x.shape[0]; row++)
    for (let column = 0; column < x.shape[1]; column++) own.add(x.offset + row * x.strides[0] + column * x.strides[1]);
  return all.filter((_, at) => !own.has(at));
}

test("steps have the same bits for every number of threads and instruction set", () => {
  const run = (threads: string, isa = "auto") => {
    const { native } = cpuLibrary();
    configure(native, "threads", threads);
    configure(native, "isa", isa);
    return on("cpu", () => {
      manualSeed(3);
      const parameters = [70_001, 5, 33_000].map((size) => parameterOf(valuesOf(randn([size]))));
      const optimizer = make("AdamW", parameters, { lr: 0.1, amsgrad: true });
      for (let step = 0; step < 3; step++) {
        for (const x of parameters) x.grad = randn(x.shape);
        optimizer.step();
      }
      return Bun.hash(bitsOf([...parameters, ...Object.values(optimizer.stateDict().tensors)]));
    });
  };
  try {
    const wanted = run("1");
    expect([run("2"), run("7"), run("2", process.arch === "x64" ? "baseline" : "neon")]).toEqual([
      wanted,
      wanted,
      wanted,
    ]);
  } finally {
    configure(cpuLibrary().native, "threads", "auto");
    configure(cpuLibrary().native, "isa", "auto");
  }
});

describe.if(tested.includes("metal"))("failed command buffers on metal are computed again", () => {
  let warn: ReturnType<typeof spyOn>;
  beforeEach(() => {
    warn = spyOn(console, "warn").mockImplementation(() => undefined);
  });
  afterEach(() => warn.mockRestore());

  /** A short training run with a fault in each step. */
  function train(disturb?: (step: number) => void): number[] {
    manualSeed(11);
    const w = parameterOf(draw(12, 1), "float32", [3, 4]);
    const b = parameterOf(draw(4, 2));
    const x = tensor(Float32Array.from(draw(15, 3)), { shape: [5, 3] });
    const optimizer = new AdamW([w, b], { lr: 0.05 });
    const losses = Array.from({ length: 12 }, (_, step) => {
      disturb?.(step);
      const error = x.matmul(w).add(b).sub(1) as Tensor;
      const loss = error.mul(error).mean();
      loss.backward();
      optimizer.step();
      optimizer.step(); // the parameters are not read in between
      optimizer.zeroGrad();
      return loss;
    });
    return [...losses.map((loss) => Number(loss.item())), ...valuesOf(w), ...valuesOf(b)];
  }

  const faults: readonly (readonly [FaultKind, RegExp, (step: number) => { skip: number; count: number }])[] = [
    ["command-buffer", /^metal: the command buffer failed$/, () => ({ skip: 0, count: 1 })],
    ["command-buffer", /^metal: the command buffer failed$/, (step) => ({ skip: step % 3, count: 2 })],
    ["allocate", /^metal: out of memory$/, (step) => ({ skip: 12 + (step % 11), count: 2 })],
    ["library", /^metal: .*Injected failure of the compiler/, () => ({ skip: 0, count: 1000 })],
  ];
  test.each(faults)("a step of a failed command buffer is computed again: %s", (kind, cause, plan) => {
    const wanted = withBackend("reference", () => train());
    metalContext().close();
    metalContext().configure("check", kind !== "command-buffer");
    forgetFailures();
    resetCodepaths();
    const got = withBackend("metal", () => train((step) => metalContext().injectFault(kind, plan(step))));
    for (const each of ["command-buffer", "allocate", "library"] as const)
      metalContext().injectFault(each, { count: 0 });
    for (const [at, value] of got.entries()) expect(Math.abs(value - wanted[at])).toBeLessThan(1e-5);
    const fellBack = codepaths().filter(({ backend, reason }) => backend !== "metal" && cause.test(reason));
    expect(fellBack.map(({ operation }) => operation)).toContain("optimizerUpdate");
    forgetFailures();
    metalContext().report({ clear: true });
    metalContext().configure("check", true);
  });
});
