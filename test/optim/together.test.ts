/** Many parameters in one call of the cpu backend: the same bits as each alone, for any number of threads. */
import { describe, expect, spyOn, test } from "bun:test";
import { configure, cpuLibrary } from "../../src/backend/cpu/loader.ts";
import { codepaths, optim, resetCodepaths, type Tensor, tensor } from "../../src/index.ts";
import type { FloatDType } from "../../src/tensor/dtype.ts";
import { bitsOf, draw, make, type OptimizerName, on, parameterOf, valuesOf } from "./run.ts";

/** Sizes 0 and 1, around the pieces of a thread, and many small ones. */
const sizes = [1, 16_384, 3, 0, 16_385, 40_001, ...Array.from({ length: 40 }, (_, at) => 1 + 7 * at), 16_383, 64, 65];

const dtypes: readonly FloatDType[] = ["float32", "bfloat16", "float16", "float64"];

/** Parameters of these sizes; if there are several dtypes, they alternate. */
const parametersOf = (own: readonly FloatDType[]): Tensor[] =>
  sizes.map((size, at) => parameterOf(draw(size, at, own[at % own.length]), own[at % own.length]));

function steps(optimizers: readonly { step(): void }[], parameters: readonly Tensor[]): void {
  for (let step = 0; step < 3; step++) {
    for (const [at, x] of parameters.entries()) x.grad = tensor(draw(x.size, 100 * step + at), { dtype: x.dtype });
    for (const optimizer of optimizers) optimizer.step();
  }
}

/** How many calls of the native function a step makes. */
function callsOf(step: () => void): number {
  const spy = spyOn(
    cpuLibrary().native as { orchard_cpu_run_rows: (...values: never[]) => number },
    "orchard_cpu_run_rows",
  );
  step();
  const calls = spy.mock.calls.length;
  spy.mockRestore();
  return calls;
}

const optimizers: readonly (readonly [OptimizerName, object])[] = [
  ["AdamW", { lr: 0.1 }],
  ["AdamW", { lr: 0.1, amsgrad: true, masterWeights: true }],
  ["SGD", { lr: 0.1 }],
  ["SGD", { lr: 0.1, momentum: 0.9, nesterov: true }],
  ["Lion", { lr: 0.1 }],
  ["RMSprop", { lr: 0.1, momentum: 0.5, centered: true }],
];
const cases = optimizers.flatMap(([name, options]) => dtypes.map((dtype) => [name, options, dtype] as const));

describe.each(cases)("steps of %s %j of %s equal single steps", (name, options, dtype) => {
  test("one call for many parameters gives the same result as a call for each", () => {
    on("cpu", () => {
      const [together, alone] = [parametersOf([dtype]), parametersOf([dtype])];
      const one = make(name, together, options);
      const each = alone.map((x) => make(name, [x], options));
      steps([one], together);
      steps(each, alone);
      expect(bitsOf(together)).toBe(bitsOf(alone));
      const states = each.flatMap((own) => Object.values(own.stateDict().tensors));
      expect(bitsOf(Object.values(one.stateDict().tensors))).toBe(bitsOf(states));
    });
  });
});

test("steps have the same bits on any number of threads", () => {
  const { native } = cpuLibrary();
  const run = (threads: string) => {
    configure(native, "threads", threads);
    return on("cpu", () => {
      const parameters = parametersOf(dtypes);
      steps([make("AdamW", parameters, { lr: 0.1 })], parameters);
      return bitsOf(parameters);
    });
  };
  try {
    const wanted = run("1");
    expect([run("2") === wanted, run("7") === wanted]).toEqual([true, true]);
  } finally {
    configure(native, "threads", "auto");
  }
});

test("AdamW equals its formula in float64, for parameters of every size", () => {
  on("cpu", () => {
    const parameters = parametersOf(["float64"]);
    const starts = parameters.map(valuesOf);
    const gradients = parameters.map(({ size }, at) => draw(size, 1000 + at));
    for (const [at, x] of parameters.entries()) x.grad = tensor(gradients[at], { dtype: "float64" });
    new optim.AdamW(parameters, { lr: 0.1, weightDecay: 0.5, eps: 1e-8 }).step();
    for (const [at, x] of parameters.entries()) {
      // In the first step, the corrected moments are the gradient and its square.
      const wanted = starts[at].map((p, i) => {
        const g = gradients[at][i];
        return p - 0.1 * (0.5 * p + g / (Math.abs(g) + 1e-8));
      });
      const worst = valuesOf(x).reduce((most, p, i) => Math.max(most, Math.abs(p - wanted[i])), 0);
      expect([at, worst < 1e-14]).toEqual([at, true]);
    }
  });
});

test("a step is one call of the dylib for each dtype, in groups with any options", () => {
  on("cpu", () => {
    const parameters = parametersOf(["float32", "bfloat16"]);
    const groups = [{ parameters: parameters.slice(0, 20), lr: 0.5 }, { parameters: parameters.slice(20) }];
    const optimizer = new optim.AdamW(groups);
    for (const x of parameters) x.grad = tensor(draw(x.size, 5), { dtype: x.dtype });
    expect([callsOf(() => optimizer.step()), callsOf(() => optimizer.step())]).toEqual([2, 2]);
    resetCodepaths();
    optimizer.step();
    const own = codepaths().filter(({ operation }) => operation === "optimizerUpdate");
    expect(own.map(({ backend, reason, calls }) => ({ backend, reason, calls }))).toEqual([
      { backend: "cpu", reason: "preferred", calls: 2 },
    ]);
  });
});

test("state stays in place while some parameters have no gradient", () => {
  on("cpu", () => {
    const parameters = parametersOf(["float32"]).filter(({ size }) => size > 0);
    const optimizer = new optim.AdamW(parameters);
    const storages = () => new Set(Object.values(optimizer.stateDict().tensors).map(({ storage }) => storage));
    steps([optimizer], parameters);
    const before = storages();
    expect(before.size).toBe(1);
    parameters[4].grad = null;
    optimizer.step();
    expect(storages()).toEqual(before);
  });
});
