/**
 * Every optimizer with every option that PyTorch tests its own with (`scripts/fixtures/optimizer_samples.py`), in
 * float64.
 */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { noGrad, optim, type Tensor, tensor } from "../../src/index.ts";
import { make, type OptimizerName, on, parameterOf, valuesOf } from "./run.ts";

interface Problem {
  readonly shapes: readonly (readonly number[])[];
  readonly start: readonly (readonly number[])[];
  /** By step and parameter. */
  readonly gradients: readonly (readonly (readonly number[])[])[];
}

interface Row {
  readonly optimizer: OptimizerName | "LBFGS";
  /** By PyTorch's names in camelCase. */
  readonly options: Readonly<Record<string, unknown>>;
  readonly problem: string;
  readonly end: readonly (readonly number[])[];
  /** State tensors, by the library's names. */
  readonly state: Readonly<Record<string, readonly number[]>>;
}

const path = join(import.meta.dir, "..", "fixtures", "optim", "pytorch.json");
const { problems, rows } = JSON.parse(readFileSync(path, "utf8")) as {
  readonly problems: Readonly<Record<string, Problem>>;
  readonly rows: readonly Row[];
};

/** Options whose names differ from PyTorch's. */
const renamed: Readonly<Record<string, string>> = {
  nsSteps: "newtonSchulzSteps",
  nsCoefficients: "newtonSchulzCoefficients",
  adjustLrFn: "adjustLearningRate",
};
const optionsOf = ({ options }: Row) =>
  Object.fromEntries(Object.entries(options).map(([name, value]) => [renamed[name] ?? name, value]));

/** The loss Σ ((p - 1/2)⁴ + p²) / 8, or its negative if it is maximized. */
function closureOf(optimizer: optim.LBFGS, parameters: readonly Tensor[]): () => Tensor {
  const isMaximized = optimizer.groups[0].maximize;
  return () => {
    optimizer.zeroGrad();
    const terms = parameters.map((p) => p.sub(0.5).pow(4).add(p.square()).div(8).sum());
    const sum = terms.reduce((a, b) => a.add(b));
    const loss = isMaximized ? sum.neg() : sum;
    loss.backward();
    return loss;
  };
}

/** Runs all steps, and returns the state. */
function train(row: Row, parameters: readonly Tensor[]): optim.OptimizerStateDict {
  const { gradients, shapes } = problems[row.problem];
  if (row.optimizer === "LBFGS") {
    const optimizer = new optim.LBFGS(parameters, optionsOf(row));
    for (const _ of gradients) optimizer.step(closureOf(optimizer, parameters));
    return optimizer.stateDict();
  }
  const optimizer = make(row.optimizer, parameters, optionsOf(row));
  for (const step of gradients) {
    for (const [at, p] of parameters.entries())
      p.grad = tensor(Float64Array.from(step[at]), { shape: [...shapes[at]] });
    optimizer.step();
  }
  return optimizer.stateDict();
}

function expectEqual(got: Tensor, want: readonly number[]): void {
  for (const [at, value] of valuesOf(noGrad(() => got)).entries())
    expect(Math.abs(value - want[at])).toBeLessThan(1e-12 * Math.max(1, Math.abs(want[at])));
}

describe.each(["cpu", "reference"] as const)("PyTorch's optimizers on %s", (backend) => {
  test.each(rows.map((row) => [`${row.optimizer} ${JSON.stringify(row.options)}`, row] as const))("%s", (_, row) => {
    on(backend, () => {
      const { start, shapes } = problems[row.problem];
      const parameters = start.map((values, at) => parameterOf(values, "float64", [...shapes[at]]));
      const { tensors } = train(row, parameters);
      for (const [at, p] of parameters.entries()) expectEqual(p, row.end[at]);
      for (const [name, values] of Object.entries(row.state)) expectEqual(tensors[name], values);
    });
  });
});

test("the rows cover the optimizers of PyTorch, except the one for sparse gradients", () => {
  const names = new Set(rows.map(({ optimizer }) => optimizer));
  expect(names.size).toBe(14);
  expect(rows.length).toBeGreaterThan(110);
  for (const name of names) expect(Object.keys(optim)).toContain(name);
});
