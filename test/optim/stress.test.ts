/**
 * Steps over parameters of many sizes and mixed dtypes, all in one optimizer, compared with the formulas in float64.
 * The cpu backend runs thousands; the others run a few from a loaded state, which simulates thousands of earlier steps.
 */
import { describe, test } from "bun:test";
import type { BackendName } from "../../src/backend/names.ts";
import { type Tensor, tensor } from "../../src/index.ts";
import { keep } from "../../src/tensor/tidy.ts";
import { rounder } from "../ops/samples.ts";
import { Oracle, type OracleOptions } from "./oracle.ts";
import { draw, expectClose, make, on, tested } from "./run.ts";

const dtypes = ["float32", "float16", "bfloat16"] as const;
/** The largest size only in one dtype, because the formulas are slow. */
const kinds = [
  ...[1, 2, 3, 5, 31, 33, 1023].flatMap((size) => dtypes.map((dtype) => ({ size, dtype }))),
  { size: 4097, dtype: "bfloat16" as const },
];
/** Gradients repeat after this many steps. */
const PERIOD = 7;
/** The number of simulated earlier steps. */
const AGE: Readonly<Record<BackendName, number>> = { cpu: 0, reference: 5000, metal: 5000 };

interface Case {
  readonly options: OracleOptions;
  readonly masterWeights?: boolean;
  readonly steps: Readonly<Record<BackendName, number>>;
}

const cases: readonly Case[] = [
  {
    options: { optimizer: "AdamW", lr: 1e-3, weightDecay: 0.1 },
    masterWeights: true,
    steps: { cpu: 2000, reference: 20, metal: 5 },
  },
  {
    options: { optimizer: "AdamW", lr: 1e-3, weightDecay: 0.1, amsgrad: true },
    steps: { cpu: 1000, reference: 20, metal: 5 },
  },
  {
    options: { optimizer: "SGD", lr: 0.01, momentum: 0.9, nesterov: true, weightDecay: 0.01 },
    masterWeights: true,
    steps: { cpu: 1000, reference: 20, metal: 3 },
  },
  { options: { optimizer: "Lion", lr: 2 ** -10, weightDecay: 0.5 }, steps: { cpu: 40, reference: 20, metal: 3 } },
];

/** The names of the state's tensors in an oracle. */
const places: Readonly<Record<string, 0 | 1 | 2>> = {
  momentum: 0,
  firstMoment: 0,
  secondMoment: 1,
  maxSecondMoment: 2,
};

class Subject {
  readonly parameter: Tensor;
  readonly exact: Oracle;
  /** Each operation rounded to float32. */
  readonly plain: Oracle;
  private readonly values: readonly (readonly number[])[];
  private readonly gradients: readonly Tensor[];

  constructor({ options, masterWeights }: Case, at: number, size: number, dtype: (typeof dtypes)[number]) {
    const start = draw(size, at, dtype);
    const gradientDType = dtypes[(at + Math.floor(at / dtypes.length)) % dtypes.length];
    const toTensor = (values: readonly number[], own: (typeof dtypes)[number]) =>
      keep(tensor(Float64Array.from(values), { dtype: own }));
    this.values = Array.from({ length: PERIOD }, (_, step) => draw(size, 1000 * at + step, gradientDType));
    this.gradients = this.values.map((values) => toTensor(values, gradientDType));
    this.parameter = toTensor(start, dtype);
    this.parameter.requiresGrad = true;
    const store = masterWeights ? undefined : rounder(dtype);
    this.exact = new Oracle(options, start, undefined, store);
    this.plain = new Oracle(options, start, Math.fround, store);
  }

  /** A state as after long training: averages, their squares and larger ones. */
  age(steps: number, seed: number): void {
    const averages = draw(this.parameter.size, seed);
    const fills = [(x: number) => x / 4, (x: number) => x ** 2 + 0.1, (x: number) => x ** 2 + 0.2].map(
      (fill) => (x: number) => Math.fround(fill(x)),
    );
    for (const oracle of [this.exact, this.plain]) {
      oracle.steps = steps;
      for (const [row, fill] of fills.entries()) oracle.state[row].set(averages.map(fill));
    }
  }

  stateTensor(name: string): Tensor {
    const { shape } = this.parameter;
    const values = name === "master" ? this.exact.p : this.exact.state[places[name]];
    return tensor(values, { dtype: "float32", shape });
  }

  prepare(step: number): void {
    this.parameter.grad = this.gradients[step % PERIOD];
  }

  follow(step: number): void {
    for (const oracle of [this.exact, this.plain]) oracle.step(this.values[step % PERIOD]);
  }
}

/** The state of a parameter. */
function namesIn({ dtype }: Tensor, group: object): string[] {
  const own = "betas" in group && !("amsgrad" in group) ? ["momentum"] : "momentum" in group ? ["momentum"] : [];
  const moments = "amsgrad" in group ? ["firstMoment", "secondMoment"] : own;
  const largest = "amsgrad" in group && group.amsgrad ? ["maxSecondMoment"] : [];
  const master = "masterWeights" in group && group.masterWeights && dtype !== "float32" ? ["master"] : [];
  return [...moments, ...largest, ...master];
}

/** The oracles' state, in the form of an optimizer's. */
function stateOf(optimizer: ReturnType<typeof make>, subjects: readonly Subject[], steps: number) {
  const tensors = optimizer.slots.flatMap((slot, index) =>
    namesIn(slot.parameter, optimizer.groups[0]).map(
      (key) => [`${slot.name}.${key}`, subjects[index].stateTensor(key)] as const,
    ),
  );
  return {
    ...optimizer.stateDict(),
    steps: Object.fromEntries(optimizer.slots.map(({ name }) => [name, steps])),
    tensors: Object.fromEntries(tensors),
  };
}

function run(own: Case, backend: BackendName): void {
  const subjects = kinds.map(({ size, dtype }, at) => new Subject(own, at, size, dtype));
  const { optimizer: name, ...options } = own.options;
  const optimizer = make(
    name,
    subjects.map(({ parameter }) => parameter),
    own.masterWeights ? { ...options, masterWeights: true } : options,
  );
  if (AGE[backend] > 0) {
    for (const [at, subject] of subjects.entries()) subject.age(AGE[backend], at);
    optimizer.loadStateDict(stateOf(optimizer, subjects, AGE[backend]));
  }
  for (let step = 0; step < own.steps[backend]; step++) {
    for (const subject of subjects) subject.prepare(step);
    optimizer.step();
    for (const subject of subjects) subject.follow(step);
  }
  const { tensors } = optimizer.stateDict();
  for (const [index, { parameter, exact, plain }] of subjects.entries()) {
    const label = `${parameter.describe()} after ${own.steps[backend]} steps on ${backend}`;
    expectClose(label, parameter, exact.p, plain.p, own.steps[backend]);
    for (const [key, place] of Object.entries(places)) {
      const state = tensors[`${index}.${key}`];
      if (state) expectClose(`${key} of ${label}`, state, exact.state[place], plain.state[place], own.steps[backend]);
    }
    const master = tensors[`${index}.master`];
    if (master) expectClose(`master of ${label}`, master, exact.p, plain.p, own.steps[backend]);
  }
}

describe.each(tested)("optimizers stay accurate over many steps on %s", (backend) => {
  test.each(cases.map((own) => [`${JSON.stringify(own.options)}`, own] as const))(
    "%s stays accurate over many steps",
    (_, own) => on(backend, () => run(own, backend)),
  );
});
