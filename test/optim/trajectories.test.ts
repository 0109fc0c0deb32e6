/**
 * Optimizers and schedules compared with PyTorch's trajectories (`scripts/fixtures/optimizers.py`), on every backend.
 */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { cat, optim, type Tensor, tensor } from "../../src/index.ts";
import { testVariants } from "../linalg/variants.ts";
import { compare } from "../ops/tolerance.ts";
import { make, type OptimizerName, on, parameterOf, tested, valuesOf } from "./run.ts";

interface Trajectory {
  readonly optimizer: OptimizerName;
  readonly options: Readonly<Record<string, unknown>>;
  /** Default: one axis of all numbers. */
  readonly shape?: readonly number[];
  readonly dtype: "float32" | "float64";
  /** Parameters, by the number of completed steps. */
  readonly parameters: Readonly<Record<string, readonly number[]>>;
}

interface Factors {
  readonly schedule: "oneCycle" | "linear" | "step" | "multiStep" | "exponential" | "polynomial" | "cosineAnnealing";
  readonly options: never;
  readonly factors: readonly number[];
}

interface Fixtures {
  readonly start: readonly number[];
  readonly gradients: readonly (readonly number[])[];
  readonly cases: readonly Trajectory[];
  readonly schedules: readonly Factors[];
  readonly plateaus: readonly {
    readonly options: optim.ReduceOnPlateauOptions;
    readonly measures: readonly number[];
    readonly rates: readonly number[];
  }[];
  readonly minimized: readonly {
    readonly function: "rosenbrock" | "quartic" | "wavy" | "negated" | "waves";
    /** The coefficient of the quadratic term, only for waves. */
    readonly square?: number;
    /** For waves: factors, frequencies and phases. */
    readonly terms?: readonly (readonly [number, number, number])[];
    readonly options: Partial<optim.LBFGSOptions>;
    /** Results, by the number of completed steps. */
    readonly shown: Readonly<Record<string, { readonly x: readonly number[]; readonly evaluations: number }>>;
  }[];
  readonly averages: readonly { readonly decay: number | null; readonly average: readonly number[] }[];
}

const path = join(import.meta.dir, "..", "fixtures", "optim", "trajectories.json");
const { start, gradients, cases, schedules, plateaus, averages, minimized } = JSON.parse(
  readFileSync(path, "utf8"),
) as Fixtures;
const nameOf = ({ optimizer, options, shape, dtype }: Trajectory) =>
  `${optimizer} ${JSON.stringify(options)} ${shape ? `[${shape.join()}] ` : ""}${dtype}`;
const exactOf = (own: Trajectory) =>
  cases.find((other) => nameOf({ ...own, dtype: "float64" }) === nameOf(other))!.parameters;

/** Roundings per step in which PyTorch and the library may differ, for values up to 4. */
const ROUNDINGS = 4 * 4;

testVariants(import.meta.path, "PyTorch's trajectories on metal");

describe.each(tested)("PyTorch's trajectories on %s", (backend) => {
  const possible = cases.filter(({ dtype }) => backend !== "metal" || dtype === "float32");
  test.each(possible.map((own) => [nameOf(own), own] as const))("the optimizer %s follows PyTorch", (_, own) => {
    on(backend, () => {
      const shape = [...(own.shape ?? [start.length])];
      const size = shape.reduce((product, each) => product * each, 1);
      const parameter = parameterOf(start.slice(0, size), own.dtype, shape);
      const optimizer = make(own.optimizer, [parameter], own.options);
      for (const [index, gradient] of gradients.entries()) {
        parameter.grad = tensor(Float64Array.from(gradient.slice(0, size)), { dtype: own.dtype, shape });
        optimizer.step();
        const plain = own.parameters[index + 1];
        if (!plain) continue;
        const exact = exactOf(own)[index + 1];
        const roundings = own.dtype === "float64" ? exact.map(() => ROUNDINGS * (index + 1)) : undefined;
        const wrong = compare(own.dtype, valuesOf(parameter), exact, plain, { flash: true }, 2, roundings);
        expect(wrong && { step: index + 1, ...wrong }).toBeUndefined();
      }
    });
  });
});

describe("schedules have PyTorch's factors", () => {
  test.each(schedules.map((own) => [`${own.schedule} ${JSON.stringify(own.options)}`, own] as const))(
    "%s has PyTorch's factors",
    (_, own) => {
      const schedule = optim[own.schedule](own.options);
      for (const [step, factor] of own.factors.entries()) expect(schedule(step)).toBeCloseTo(factor, 13);
    },
  );
});

const named = plateaus.map((own) => [JSON.stringify(own.options), own] as const);
test.each(named)("ReduceLROnPlateau follows PyTorch: %s", (_, { options, measures, rates }) => {
  const optimizer = new optim.SGD([parameterOf([1])], { lr: 1 });
  let plateau = new optim.ReduceOnPlateau(optimizer, options);
  for (const [at, measure] of measures.entries()) {
    const before = optimizer.groups[0].lr;
    expect(plateau.step(measure)).toBe(optimizer.groups[0].lr < before);
    expect(optimizer.groups[0].lr).toBeCloseTo(rates[at], 14);
    const state: unknown = JSON.parse(JSON.stringify(plateau.stateDict()));
    plateau = new optim.ReduceOnPlateau(optimizer, options);
    plateau.loadStateDict(state as optim.PlateauState);
  }
});

test.each(averages)("averages follow PyTorch's AveragedModel with a decay of $decay", ({ decay, average }) => {
  const parameter = parameterOf(start, "float64");
  const averages = new optim.AveragedWeights([parameter], decay === null ? {} : { decay });
  const optimizer = new optim.SGD([parameter], { lr: 1 });
  for (const gradient of gradients) {
    parameter.grad = tensor(Float64Array.from(gradient));
    optimizer.step();
    averages.update();
  }
  const trained = valuesOf(parameter);
  averages.withAverages(() => {
    for (const [at, value] of valuesOf(parameter).entries()) expect(value).toBeCloseTo(average[at], 13);
  });
  expect(valuesOf(parameter)).toEqual(trained);
});

const functions = {
  rosenbrock: (x: Tensor): Tensor => {
    const [from, to] = [x.slice({ end: -1 }), x.slice({ start: 1 })];
    return to.sub(from.square()).square().mul(100).add(from.sub(1).square()).sum();
  },
  quartic: (x: Tensor): Tensor => {
    const scale = tensor(Float64Array.from({ length: x.size }, (_, at) => at + 1));
    return scale.mul(x.sub(1).square()).sum().add(x.sum().pow(4).div(8));
  },
  wavy: (x: Tensor): Tensor => x.square().div(8).add(x.mul(4).sin()).sum(),
  negated: (x: Tensor): Tensor => functions.quartic(x).neg(),
  waves: (x: Tensor, { square = 0, terms = [] }: (typeof minimized)[number]): Tensor =>
    terms.reduce<Tensor>((sum, [a, b, c]) => sum.add(x.mul(b).add(c).sin().mul(a)), x.square().mul(square)).sum(),
};

describe.each(["cpu", "reference"] as const)("PyTorch's L-BFGS on %s", (backend) => {
  test.each(
    minimized.map((own) => [`${own.function} ${own.square ?? ""} ${JSON.stringify(own.options)}`, own] as const),
  )("L-BFGS follows PyTorch: %s", (_, own) => {
    const { function: name, options, shown } = own;
    on(backend, () => {
      const [first, second] = [start.slice(0, 2), start.slice(2, 5)].map((own) => parameterOf(own, "float64"));
      let evaluations = 0;
      const closure = (of: optim.LBFGS) => () => {
        of.zeroGrad();
        const loss = functions[name](cat([first, second]), own);
        loss.backward();
        evaluations++;
        return loss;
      };
      let optimizer = new optim.LBFGS([first, second], options);
      const steps = Math.max(...Object.keys(shown).map(Number));
      for (let step = 1; step <= steps; step++) {
        optimizer.step(closure(optimizer));
        const state = optimizer.stateDict();
        optimizer = new optim.LBFGS([first, second], { lr: 0.5 });
        optimizer.loadStateDict(state);
        const want = shown[step];
        if (!want) continue;
        expect([step, evaluations]).toEqual([step, want.evaluations]);
        const got = [...valuesOf(first), ...valuesOf(second)];
        // the curvature of the valley amplifies rounding errors, by about 10⁴
        for (const [at, value] of want.x.entries()) expect(Math.abs(got[at] - value)).toBeLessThan(1e-9);
      }
    });
  });
});

test("L-BFGS on metal finds the minimum that float64 finds", () => {
  const minimum = (backend: "cpu" | "metal", dtype: "float64" | "float32") =>
    on(backend, () => {
      const parameter = parameterOf(start.slice(0, 5), dtype);
      const optimizer = new optim.LBFGS([parameter], { lineSearchFn: "strongWolfe" });
      for (let step = 0; step < 3; step++)
        optimizer.step(() => {
          optimizer.zeroGrad();
          const scale = tensor([1, 2, 3, 4, 5], { dtype });
          const loss = scale.mul(parameter.sub(1).square()).sum().add(parameter.sum().pow(4).div(8));
          loss.backward();
          return loss;
        });
      return valuesOf(parameter);
    });
  const exact = minimum("cpu", "float64");
  // Once a float32 loss stops changing, the error of the parameters is about the square root of its precision.
  for (const [at, value] of minimum("metal", "float32").entries())
    expect(Math.abs(value - exact[at])).toBeLessThan(Math.sqrt(2 ** -24));
});
