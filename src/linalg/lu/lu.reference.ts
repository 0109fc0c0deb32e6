import type { Implementation } from "../../backend/backend.ts";
import { store, toNumbers } from "../../backend/reference/elements.ts";
import { lastElement } from "../../core/collections.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { matricesOf } from "../matrices.ts";
import { matricesIn, storeMatrices } from "../reference.ts";
import type { LuFactorAttributes, LuPermutationAttributes, LuSolveAttributes } from "./primitive.ts";

/** A matrix that is factorized in place: row-major, with the row that each row was swapped with, counted from 0. */
interface Factorized {
  readonly a: Float64Array;
  readonly pivots: number[];
  /** The first zero pivot, counted from 1; 0 if there is none. */
  readonly info: number;
}

export const luFactorReference: Implementation<LuFactorAttributes, [Tensor], [Tensor, Tensor, Tensor]> = {
  run({ inputs: [a], outputs: [lu, pivots, info], attributes: { pivot } }) {
    const { rows, columns } = matricesOf(a);
    const factors = matricesIn(a).map((matrix) => factorize(matrix, rows, columns, pivot));
    storeFactors(factors, lu, pivots);
    storeInfo(factors, info);
  },
};

export const luSolveReference: Implementation<LuSolveAttributes, [Tensor, Tensor, Tensor], [Tensor]> = {
  run({ inputs: [lu, pivots, b], outputs: [x], attributes: { adjoint } }) {
    const { rows: size, columns } = matricesOf(b);
    const factors = matricesIn(lu);
    const all = toNumbers(pivots);
    const solutions = matricesIn(b).map((side, at) => {
      const swaps = [...all.slice(at * size, (at + 1) * size)].map((pivot) => pivot - 1);
      return solve({ a: factors[at], pivots: swaps }, side, columns, adjoint);
    });
    storeMatrices(x, solutions);
  },
};

export const solveReference: Implementation<undefined, [Tensor, ...Tensor[]], [Tensor, Tensor, Tensor, Tensor]> = {
  run({ inputs: [a, b], outputs: [x, info, lu, pivots] }) {
    const { rows: size, columns } = matricesOf(x);
    const factors = matricesIn(a).map((matrix) => factorize(matrix, size, size, true));
    const right = b ? matricesIn(b) : factors.map(() => identity(size));
    storeInfo(factors, info);
    if (lu && pivots) storeFactors(factors, lu, pivots);
    const solutions = factors.map((factor, at) => solve(factor, right[at], columns, false));
    storeMatrices(x, solutions);
  },
};

export const luPermutationReference: Implementation<LuPermutationAttributes, [Tensor], [Tensor]> = {
  run({ inputs: [pivots], outputs: [permutation], attributes: { inverse } }) {
    const { batch, columns } = matricesOf(pivots);
    const rows = lastElement(permutation.shape);
    const all = toNumbers(pivots);
    const orders = Array.from({ length: batch }, (_, at) => {
      const order = Float64Array.from({ length: rows }, (_, row) => row);
      const swaps = [...all.slice(at * columns, (at + 1) * columns)].map((pivot) => pivot - 1);
      swapRows(order, rows, 1, swaps, inverse);
      return order;
    });
    store(
      permutation,
      orders.flatMap((order) => [...order]),
    );
  },
};

function storeFactors(factors: readonly Factorized[], lu: Tensor, pivots: Tensor): void {
  storeMatrices(
    lu,
    factors.map(({ a }) => a),
  );
  store(
    pivots,
    factors.flatMap((factor) => factor.pivots.map((pivot) => pivot + 1)),
  );
}

const storeInfo = (factors: readonly Factorized[], info: Tensor): void =>
  store(
    info,
    factors.map((factor) => factor.info),
  );

function identity(size: number): Float64Array {
  const values = new Float64Array(size * size);
  for (let i = 0; i < size; i++) values[i * (size + 1)] = 1;
  return values;
}

/**
 * Step k swaps row k with the row from k on that has the largest element in column k. Then it subtracts
 * A[i, k] / A[k, k] times row k from each row i below. The factors replace A: L below the diagonal, U on and above it.
 */
function factorize(a: Float64Array, rows: number, columns: number, pivot: boolean): Factorized {
  const pivots: number[] = [];
  let info = 0;
  for (let k = 0; k < Math.min(rows, columns); k++) {
    pivots[k] = pivot ? pivotOf(a, rows, columns, k) : k;
    swap(a, columns, k, pivots[k]);
    const top = a[k * columns + k];
    if (top === 0 && info === 0) info = k + 1;
    for (let i = k + 1; i < rows; i++) {
      if (!(top === 0 && pivot)) a[i * columns + k] /= top;
      const factor = a[i * columns + k];
      for (let j = k + 1; j < columns; j++) a[i * columns + j] -= factor * a[k * columns + j];
    }
  }
  return { a, pivots, info };
}

/**
 * The element of largest absolute value, the first on ties; NaN is skipped unless it is first, as in LAPACK's idamax.
 */
function pivotOf(a: Float64Array, rows: number, columns: number, k: number): number {
  let best = k;
  for (let i = k + 1; i < rows; i++) if (Math.abs(a[i * columns + k]) > Math.abs(a[best * columns + k])) best = i;
  return best;
}

function swap(a: Float64Array, columns: number, i: number, j: number): void {
  if (i === j) return;
  const row = a.slice(i * columns, (i + 1) * columns);
  a.copyWithin(i * columns, j * columns, (j + 1) * columns);
  a.set(row, j * columns);
}

/** Swaps rows as the factorization did, or undoes it. Pivots outside the matrix are ignored. */
function swapRows(x: Float64Array, rows: number, columns: number, pivots: readonly number[], isBack: boolean): void {
  for (let step = 0; step < pivots.length; step++) {
    const k = isBack ? pivots.length - 1 - step : step;
    if (pivots[k] >= 0 && pivots[k] < rows) swap(x, columns, k, pivots[k]);
  }
}

/** Replaces B by the solution X of A X = B, or of Aᵀ X = B if `adjoint`, with A = P L U. */
function solve(
  { a, pivots }: Pick<Factorized, "a" | "pivots">,
  b: Float64Array,
  columns: number,
  adjoint: boolean,
): Float64Array {
  const size = pivots.length;
  const element = (i: number, k: number): number => (adjoint ? a[k * size + i] : a[i * size + k]);
  if (!adjoint) swapRows(b, size, columns, pivots, false);
  for (const upper of [false, true])
    for (let step = 0; step < size; step++) {
      const i = upper ? size - 1 - step : step;
      for (let known = 0; known < step; known++) {
        const k = upper ? size - 1 - known : known;
        const factor = element(i, k);
        for (let column = 0; column < columns; column++) b[i * columns + column] -= factor * b[k * columns + column];
      }
      if (upper === adjoint) continue; // L's diagonal is 1
      for (let column = 0; column < columns; column++) b[i * columns + column] /= element(i, i);
    }
  if (adjoint) swapRows(b, size, columns, pivots, true);
  return b;
}
