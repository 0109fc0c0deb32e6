import type { Implementation } from "../../backend/backend.ts";
import { store, toNumbers } from "../../backend/reference/elements.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { matricesOf } from "../matrices.ts";
import { matricesIn, storeMatrices } from "../reference.ts";

export const ldlFactorReference: Implementation<undefined, [Tensor], [Tensor, Tensor, Tensor]> = {
  run({ inputs: [a], outputs: [ld, pivots, info] }) {
    const { rows: size } = matricesOf(a);
    const matrices = matricesIn(a);
    const factors = matrices.map((matrix) => factorize(matrix, size));
    storeMatrices(ld, matrices);
    store(
      pivots,
      factors.flatMap((factor) => factor.pivots),
    );
    store(
      info,
      factors.map((factor) => factor.info),
    );
  },
};

export const ldlSolveReference: Implementation<undefined, [Tensor, Tensor, Tensor], [Tensor]> = {
  run({ inputs: [ld, pivots, b], outputs: [x] }) {
    const { rows: size, columns } = matricesOf(b);
    const all = toNumbers(pivots);
    const factors = matricesIn(ld);
    const solutions = matricesIn(b);
    for (const [at, solution] of solutions.entries())
      solve(factors[at], [...all.slice(at * size, (at + 1) * size)], solution, columns);
    storeMatrices(x, solutions);
  },
};

const ALPHA = (1 + Math.sqrt(17)) / 8;

interface Factors {
  readonly pivots: number[];
  /** The first 1 × 1 block that is 0, counted from 1; 0 if there is none. */
  readonly info: number;
}

/**
 * Replaces the lower triangle of A by L and D, and the upper one by 0, as LAPACK's sytf2 with Bunch-Kaufman pivoting.
 */
function factorize(a: Float64Array, size: number): Factors {
  const pivots: number[] = [];
  let info = 0;
  for (let k = 0; k < size; ) {
    const [row, width] = pivotOf(a, size, k);
    swap(a, size, k + width - 1, row);
    if (width === 2) swapElements(a, (k + 1) * size + k, row === k + 1 ? (k + 1) * size + k : row * size + k);
    for (let at = 0; at < width; at++) pivots.push(width === 2 ? -(row + 1) : row + 1);
    if (width === 2 || a[k * (size + 1)] !== 0) eliminate(a, size, k, width);
    else info ||= k + 1;
    k += width;
  }
  for (let i = 0; i < size; i++) a.fill(0, i * size + i + 1, (i + 1) * size);
  return { pivots, info };
}

/** Returns the row to swap with the last row of the next block, and the block's size. */
function pivotOf(a: Float64Array, size: number, k: number): [row: number, width: 1 | 2] {
  const element = (i: number, j: number): number => Math.abs(i >= j ? a[i * size + j] : a[j * size + i]);
  let row = k;
  let column = 0;
  for (let i = k + 1; i < size; i++) if (element(i, k) > column) [row, column] = [i, element(i, k)];
  const diagonal = element(k, k);
  if (!(diagonal < ALPHA * column)) return [k, 1];
  let largest = 0;
  for (let j = k; j < size; j++) if (j !== row) largest = Math.max(largest, element(row, j) || 0);
  if (diagonal >= ALPHA * column * (column / largest)) return [k, 1];
  return element(row, row) >= ALPHA * largest ? [row, 1] : [row, 2];
}

const swapElements = (a: Float64Array, i: number, j: number): void => {
  [a[i], a[j]] = [a[j], a[i]];
};

/** Swaps rows and columns in the lower triangle, from column `from` on. */
function swap(a: Float64Array, size: number, from: number, row: number): void {
  if (from === row) return;
  for (let i = row + 1; i < size; i++) swapElements(a, i * size + from, i * size + row);
  for (let i = from + 1; i < row; i++) swapElements(a, i * size + from, row * size + i);
  swapElements(a, from * (size + 1), row * (size + 1));
}

/** Divides the columns below a block by it, and subtracts L D Lᵀ from the trailing submatrix. */
function eliminate(a: Float64Array, size: number, k: number, width: 1 | 2): void {
  const block = blockOf(a, size, k, width);
  const next = k + width;
  const before = a.slice();
  for (let i = next; i < size; i++) {
    const row = Array.from({ length: width }, (_, at) => before[i * size + k + at]);
    for (const [at, value] of divided(block, row).entries()) a[i * size + k + at] = value;
  }
  for (let i = next; i < size; i++)
    for (let j = next; j <= i; j++)
      for (let at = 0; at < width; at++) a[i * size + j] -= before[i * size + k + at] * a[j * size + k + at];
}

interface Block {
  readonly upper: number;
  readonly off: number;
  readonly lower: number;
}

const blockOf = (a: Float64Array, size: number, k: number, width: number): Block => ({
  upper: a[k * (size + 1)],
  off: width === 2 ? a[(k + 1) * size + k] : 0,
  lower: width === 2 ? a[(k + 1) * (size + 1)] : 0,
});

/** Solves a system with a 1 × 1 or 2 × 2 block; a 2 × 2 block is scaled by its off-diagonal element. */
function divided({ upper, off, lower }: Block, right: readonly number[]): number[] {
  const [first, second] = right;
  if (second === undefined) return [first / upper];
  const [u, l, x, y] = [upper / off, lower / off, first / off, second / off];
  return [(l * x - y) / (u * l - 1), (u * y - x) / (u * l - 1)];
}

/** Replaces B by the solution X of A X = B. Pivots outside the matrix are ignored. */
function solve(ld: Float64Array, pivots: readonly number[], b: Float64Array, columns: number): void {
  const size = pivots.length;
  const swapRows = (i: number): void => {
    const other = Math.abs(pivots[i]) - 1;
    if (other === i || other < 0 || other >= size) return;
    for (let c = 0; c < columns; c++) swapElements(b, i * columns + c, other * columns + c);
  };
  const subtract = (to: number, from: number, factor: number): void => {
    for (let c = 0; c < columns; c++) b[to * columns + c] -= factor * b[from * columns + c];
  };
  for (let k = 0; k < size; ) {
    const width = pivots[k] < 0 && k + 1 < size ? 2 : 1;
    swapRows(k + width - 1);
    for (let i = k + width; i < size; i++) for (let j = k; j < k + width; j++) subtract(i, j, ld[i * size + j]);
    const block = blockOf(ld, size, k, width);
    for (let c = 0; c < columns; c++) {
      const right = Array.from({ length: width }, (_, at) => b[(k + at) * columns + c]);
      for (const [at, value] of divided(block, right).entries()) b[(k + at) * columns + c] = value;
    }
    k += width;
  }
  for (let k = size - 1; k >= 0; ) {
    const first = pivots[k] < 0 && k > 0 ? k - 1 : k;
    for (let i = k + 1; i < size; i++) for (let j = first; j <= k; j++) subtract(j, i, ld[i * size + j]);
    swapRows(k);
    k = first - 1;
  }
}
