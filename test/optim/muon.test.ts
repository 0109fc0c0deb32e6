/** Muon compared with its formula in float64, and its update matrices, which are nearly orthogonal. */
import { describe, expect, test } from "bun:test";
import { optim, tensor } from "../../src/index.ts";
import { draw, on, parameterOf, tested, valuesOf } from "./run.ts";

type Matrix = readonly (readonly number[])[];

const matrixOf = (values: readonly number[], columns: number): Matrix =>
  Array.from({ length: values.length / columns }, (_, row) => values.slice(row * columns, (row + 1) * columns));
const transposed = (a: Matrix): Matrix => a[0].map((_, column) => a.map((row) => row[column]));
const product = (a: Matrix, b: Matrix): Matrix =>
  a.map((row) => b[0].map((_, column) => row.reduce((sum, value, k) => sum + value * b[k][column], 0)));
const combined = (p: number, a: Matrix, q: number, b: Matrix): Matrix =>
  a.map((row, i) => row.map((value, j) => p * value + q * b[i][j]));

/** `zeropower_via_newtonschulz5` of https://github.com/KellerJordan/Muon. */
function orthogonal(g: Matrix): Matrix {
  const [a, b, c] = [3.4445, -4.775, 2.0315];
  if (g.length > g[0].length) return transposed(orthogonal(transposed(g)));
  const size = Math.sqrt(g.flat().reduce((sum, value) => sum + value ** 2, 0));
  let x = g.map((row) => row.map((value) => value / size));
  for (let step = 0; step < 5; step++) {
    const gram = product(x, transposed(x));
    x = combined(a, x, 1, product(combined(b, gram, c, product(gram, gram)), x)) as number[][];
  }
  return x;
}

/** Steps of Muon: the parameter at the end. */
function expected(start: Matrix, gradients: readonly Matrix[], nesterov: boolean): number[] {
  const [lr, momentum, decay] = [0.05, 0.9, 0.1];
  let p = start;
  let m: Matrix = start.map((row) => row.map(() => 0));
  for (const g of gradients) {
    m = combined(momentum, m, 1 - momentum, g);
    const direction = orthogonal(nesterov ? combined(momentum, m, 1 - momentum, g) : m);
    const scale = Math.sqrt(Math.max(1, p.length / p[0].length));
    p = combined(1 - lr * decay, p, -lr * scale, direction);
  }
  return p.flat();
}

const shapes = [
  [3, 5],
  [6, 4],
  [4, 4],
] as const;

describe.each(tested)("Muon on %s equals its formula", (backend) => {
  const cases = shapes.flatMap((shape) => [true, false].map((nesterov) => [shape, nesterov] as const));
  test.each(cases)("three steps with %p, nesterov %p equal the formula", ([rows, columns], nesterov) => {
    on(backend, () => {
      const start = draw(rows * columns, 1);
      const gradients = [2, 3, 4].map((seed) => draw(rows * columns, seed));
      const w = parameterOf(start, "float32", [rows, columns]);
      const muon = new optim.Muon([w], { lr: 0.05, momentum: 0.9, weightDecay: 0.1, nesterov });
      for (const gradient of gradients) {
        w.grad = tensor(Float32Array.from(gradient), { shape: [rows, columns] });
        muon.step();
      }
      const matrices = gradients.map((gradient) => matrixOf(gradient, columns));
      const want = expected(matrixOf(start, columns), matrices, nesterov);
      // Each of the five steps amplifies rounding errors by the polynomial's slope, 3.4.
      for (const [at, value] of valuesOf(w).entries()) expect(Math.abs(value - want[at])).toBeLessThan(1e-5);
    });
  });
});

test("Muon's steps have singular values of about 1", () => {
  const w = parameterOf(new Array<number>(24).fill(0), "float64", [4, 6]);
  w.grad = tensor(Float64Array.from(draw(24, 9)), { dtype: "float64", shape: [4, 6] });
  new optim.Muon([w], { lr: 1 }).step();
  const step = matrixOf(valuesOf(w), 6);
  const gram = product(step, transposed(step));
  // Singular values are between about 0.7 and 1.2, so the mean of their squares is between 0.45 and 1.5.
  const trace = gram.reduce((sum, row, at) => sum + row[at], 0) / 4;
  expect(trace).toBeGreaterThan(0.45);
  expect(trace).toBeLessThan(1.5);
});

test("Muon keeps float32 copies of bfloat16 parameters", () => {
  const w = parameterOf([1, 1, 1, 1], "bfloat16", [2, 2]);
  const muon = new optim.Muon([w], { lr: 2 ** -12, masterWeights: true });
  for (let step = 0; step < 64; step++) {
    w.grad = tensor([
      [1, 0],
      [0, 1],
    ]);
    muon.step();
  }
  const master = valuesOf(muon.stateDict().tensors["0.master"]);
  expect(master[0]).toBeLessThan(0.995); // a single step is too small for bfloat16
  expect(valuesOf(w)[0]).toBeLessThan(1);
});
