/** Complex linear algebra: losses, and gradients of both orders, equal PyTorch's in random layouts. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { withBackend } from "../../src/backend/policy.ts";
import * as orchard from "../../src/index.ts";
import { type DType, isComplex } from "../../src/tensor/dtype.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { operandIn } from "../ops/complex/layouts.ts";

const { abs, add, arange, conj, exp, eye, imag, linalg, matmul, mul, real, reshape, sin, sum, unsqueeze } = orchard;

interface Case {
  readonly op: string;
  readonly inputs: readonly { readonly dtype: DType; readonly shape: readonly number[]; readonly data: number[] }[];
  readonly loss: number;
  readonly gradients: readonly number[][];
  readonly second?: readonly (number[] | null)[];
}
const file = join(import.meta.dir, "..", "fixtures", "complex", "linalg.json");
const { cases } = JSON.parse(readFileSync(file, "utf8")) as { readonly cases: readonly Case[] };

const mT = (x: Tensor): Tensor => orchard.transpose(x, -2, -1);
const mH = (x: Tensor): Tensor => conj(mT(x));
const identity = (x: Tensor): Tensor => eye(x.shape.at(-1)!, { dtype: x.dtype as "complex64" });
const definite = (x: Tensor): Tensor => add(matmul(x, mH(x)), identity(x)) as Tensor;
const hermitian = (x: Tensor): Tensor => add(x, mH(x)) as Tensor;
const row = (x: Tensor): Tensor => unsqueeze(x, -2);
const scaleOf = (values: Tensor): Tensor => arange(1, values.shape.at(-1)! + 1, { dtype: values.dtype as "float64" });
/** X diag(1, 2, …) Y. */
const scaled = (x: Tensor, scale: Tensor, y: Tensor): Tensor => matmul(mul(x, scale) as Tensor, y);

function ofSvd(a: Tensor, full: boolean): Tensor[] {
  const found = linalg.svd(a, { fullMatrices: full });
  const size = found.s.shape.at(-1)!;
  const [u, vh] = [found.u.narrow(-1, 0, size), found.vh.narrow(-2, 0, size)];
  const scale = scaleOf(found.s);
  return [found.s, scaled(u, scale, mH(u)), scaled(u, scale, vh), scaled(mH(vh), scale, vh), abs(u) as Tensor];
}

function ofEigh(a: Tensor, UPLO: "L" | "U"): Tensor[] {
  const { eigenvalues, eigenvectors: v } = linalg.eigh(hermitian(a), { UPLO });
  return [eigenvalues, scaled(v, scaleOf(eigenvalues), mH(v)), abs(v) as Tensor];
}

function ofEig(a: Tensor): Tensor[] {
  const { eigenvalues, eigenvectors: v } = linalg.eig(a) as { eigenvalues: Tensor; eigenvectors: Tensor };
  const functions = matmul(mul(v, row(sin(eigenvalues) as Tensor)) as Tensor, linalg.inv(v));
  return [
    functions,
    sum(mul(orchard.pow(abs(v), 3), row(eigenvalues)) as Tensor, -1) as Tensor,
    sum(exp(eigenvalues) as Tensor, -1) as Tensor,
  ];
}

function ofQr(a: Tensor, mode: "reduced" | "complete"): Tensor[] {
  const { q, r } = linalg.qr(a, { mode });
  const size = Math.min(...a.shape.slice(-2));
  return [q.narrow(-1, 0, size), r.narrow(-2, 0, size)];
}

const luSolve = (a: Tensor, b: Tensor, options?: { left?: boolean; adjoint?: boolean }): Tensor[] => {
  const { lu, pivots } = linalg.luFactor(a);
  return [linalg.luSolve(lu, pivots, b, options)];
};

const operations: Readonly<Record<string, (a: Tensor, b: Tensor) => Tensor[]>> = {
  cholesky: (a) => [linalg.cholesky(definite(a))],
  choleskyUpper: (a) => [linalg.cholesky(definite(a), { upper: true })],
  choleskySolve: (a, b) => [linalg.choleskySolve(b, linalg.cholesky(definite(a)))],
  choleskyInverse: (a) => [linalg.choleskyInverse(linalg.cholesky(definite(a)))],
  lu: (a) => {
    const { p, l, u } = linalg.lu(a);
    return [p, l, u];
  },
  luSolve,
  luSolveAdjoint: (a, b) => luSolve(a, b, { adjoint: true }),
  luSolveRight: (a, b) => luSolve(a, b, { left: false }),
  luSolveRightAdjoint: (a, b) => luSolve(a, b, { left: false, adjoint: true }),
  solve: (a, b) => [linalg.solve(a, b)],
  solveRight: (a, b) => [linalg.solve(a, b, { left: false })],
  inv: (a) => [linalg.inv(a)],
  det: (a) => [linalg.det(a)],
  slogdet: (a) => {
    const { sign, logabsdet } = linalg.slogdet(a);
    return [sign, logabsdet as Tensor];
  },
  logdet: (a) => [exp(linalg.logdet(a)) as Tensor],
  qr: (a) => ofQr(a, "reduced"),
  qrComplete: (a) => ofQr(a, "complete"),
  svd: (a) => ofSvd(a, false),
  svdFull: (a) => ofSvd(a, true),
  svdvals: (a) => [linalg.svdvals(a) as Tensor],
  eigh: (a) => ofEigh(a, "L"),
  eighUpper: (a) => ofEigh(a, "U"),
  eigvalsh: (a) => [linalg.eigvalsh(hermitian(a)) as Tensor],
  eig: ofEig,
  eigvals: (a) => [sum(exp(linalg.eigvals(a)) as Tensor, -1) as Tensor],
  pinv: (a) => [linalg.pinv(a)],
  pinvDeficient: (a) => [linalg.pinv(matmul(a.narrow(-1, 0, 1), a.narrow(-2, 0, 1)))],
  pinvHermitian: (a) => [linalg.pinv(hermitian(a), { hermitian: true })],
  matrixExp: (a) => [linalg.matrixExp(a)],
  matrixPower: (a) => [linalg.matrixPower(a, 3), linalg.matrixPower(a, -2)],
  lstsq: (a, b) => [linalg.lstsq(a, b).solution],
  solveLower: (a, b) => [linalg.solveTriangular(a, b, { upper: false })],
  solveUpperRight: (a, b) => [linalg.solveTriangular(a, b, { upper: true, left: false })],
  solveUnit: (a, b) => [linalg.solveTriangular(a, b, { upper: true, unitriangular: true })],
  norms: (a) =>
    (["fro", "nuc", 2, -2, 1, Number.POSITIVE_INFINITY] as const).map((ord) => linalg.matrixNorm(a, { ord }) as Tensor),
  vectorNorms: (a) => [2, 1, 3].map((ord) => linalg.vectorNorm(a, { ord, dim: -1 }) as Tensor),
  cond: (a) => [linalg.cond(a) as Tensor],
  products: (a, b) => [linalg.multiDot([a, b, mH(b)]), linalg.vecdot(a, a.narrow(-2, 0, 1))],
};

/** The sum of Re(conj(w) x) with w[k] = cos(k + 1) + i sin(2 k + 1), over all elements. */
function weighted(results: readonly Tensor[]): Tensor {
  let position = 0;
  const terms = results.flatMap((x) => {
    const k = arange(position, position + x.size, { dtype: "float64" });
    position += x.size;
    const flat = reshape(x, [x.size]);
    const parts = [sum(mul(real(flat), orchard.cos(add(k, 1))))];
    if (isComplex(x.dtype)) parts.push(sum(mul(imag(flat), sin(add(mul(k, 2), 1)))));
    return parts as Tensor[];
  });
  return terms.reduce((total, term) => add(total, term) as Tensor);
}

function near(got: Tensor, wanted: readonly number[], tolerance: number, label: string): void {
  const found = [...(got.dataSync() as Float64Array)];
  expect(found.length).toBe(wanted.length);
  const scale = Math.max(1e-3, ...wanted.map(Math.abs));
  const error = Math.max(0, ...found.map((value, at) => Math.abs(value - wanted[at]) / scale));
  if (!(error <= tolerance)) throw new Error(`${label} is off by ${error}`);
}

function check({ op, inputs, loss, gradients, second }: Case, seed: number): void {
  const leaves = inputs.map(({ dtype, shape, data }, at) => operandIn(seed + at, data, shape, dtype));
  for (const leaf of leaves) leaf.requiresGrad = true;
  const label = `${op} ${inputs.map(({ shape }) => shape.join("x")).join(" ")}`;
  const result = weighted(operations[op](leaves[0], leaves[1]));
  near(result, [loss], 1e-10, `${label}: the loss`);
  const found = orchard.grad(result, leaves, { createGraph: second !== undefined }) as Tensor[];
  for (const [at, gradient] of found.entries()) near(gradient, gradients[at], 1e-9, `${label}: gradient ${at}`);
  if (second === undefined) return;
  const again = orchard.grad(weighted(found), leaves, { allowUnused: true }) as (Tensor | null)[];
  for (const [at, wanted] of second.entries())
    if (wanted) near(again[at] ?? orchard.zerosLike(leaves[at]), wanted, 1e-7, `${label}: second gradient ${at}`);
}

describe("results and gradients match PyTorch's", () => {
  for (const op of new Set(cases.map((each) => each.op)))
    test(op, () => {
      withBackend("cpu", () => {
        for (const [at, each] of cases.entries()) if (each.op === op) check(each, 3 * at);
      });
    });
});
