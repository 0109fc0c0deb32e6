import type { Implementation } from "../../backend/backend.ts";
import { store } from "../../backend/reference/elements.ts";
import { lastElement } from "../../core/collections.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { matricesIn, storeMatrices } from "../reference.ts";
import type { EighAttributes } from "./primitive.ts";

/** Sweeps after which the iteration counts as failed. It converges quadratically, usually within about ten. */
const MAX_SWEEPS = 60;

export const eighReference: Implementation<EighAttributes, [Tensor], [Tensor, Tensor, Tensor]> = {
  run({ inputs: [a], outputs: [eigenvalues, info, eigenvectors], attributes: { upper } }) {
    const size = lastElement(a.shape);
    const rounding = a.dtype === "float32" ? Math.fround : (value: number) => value;
    const results = matricesIn(a).map((matrix) => decompose(matrix, size, upper, rounding));
    store(
      info,
      results.map((result) => result.info),
    );
    store(eigenvalues, Float64Array.from(results.flatMap((result) => [...result.eigenvalues])));
    if (eigenvectors !== undefined)
      storeMatrices(
        eigenvectors,
        results.map((result) => result.eigenvectors),
      );
  },
};

interface Decomposition {
  readonly eigenvalues: Float64Array;
  /** Row-major, one eigenvector per column. */
  readonly eigenvectors: Float64Array;
  readonly info: number;
}

function decompose(
  given: Float64Array,
  size: number,
  upper: boolean,
  rounding: (value: number) => number,
): Decomposition {
  const a = symmetric(given, size, upper);
  const row = a.findIndex((value) => !Number.isFinite(value));
  if (row >= 0) return failed(size, Math.floor(row / size) + 1);
  const scale = powerOfTwoBelow(a.reduce((largest, value) => Math.max(largest, Math.abs(value)), 0));
  for (const index of a.keys()) a[index] /= scale;
  const rows = diagonalize(a, size);
  if (rows === undefined) return failed(size, size + 1);
  const order = Array.from({ length: size }, (_, i) => i).sort((i, j) => a[i * size + i] - a[j * size + j] || i - j);
  const eigenvectors = new Float64Array(size * size);
  for (const [column, from] of order.entries()) {
    const vector = rows.subarray(from * size, (from + 1) * size).map(rounding); // so that ties match those of float32
    const sign = signOf(vector);
    for (let i = 0; i < size; i++) eigenvectors[i * size + column] = vector[i] * sign;
  }
  return { eigenvalues: Float64Array.from(order, (i) => a[i * size + i] * scale), eigenvectors, info: 0 };
}

const failed = (size: number, info: number): Decomposition => ({
  eigenvalues: new Float64Array(size).fill(Number.NaN),
  eigenvectors: new Float64Array(size * size).fill(Number.NaN),
  info,
});

/** Fills both triangles from the one that is read. */
function symmetric(given: Float64Array, size: number, upper: boolean): Float64Array {
  const a = new Float64Array(size * size);
  for (let i = 0; i < size; i++)
    for (let j = 0; j <= i; j++) {
      const value = upper ? given[j * size + i] : given[i * size + j];
      a[i * size + j] = value;
      a[j * size + i] = value;
    }
  return a;
}

/** The scale by which a matrix is divided, so that no product of its elements overflows; it causes no rounding. */
function powerOfTwoBelow(largest: number): number {
  if (largest === 0) return 1;
  return 2 ** Math.min(1000, Math.max(-1000, Math.floor(Math.log2(largest))));
}

/** −1 if the element of largest absolute value, the first on ties, is negative; else 1. */
function signOf(vector: Float64Array): number {
  let largest = 0;
  for (const value of vector) if (Math.abs(value) > Math.abs(largest)) largest = value;
  return largest < 0 ? -1 : 1;
}

/**
 * Jacobi's method, row by row. Each rotation zeroes an off-diagonal element, until all are negligible relative to their
 * two diagonal elements; this gives eigenvalues of positive definite matrices with high relative accuracy. Replaces A
 * by the diagonal matrix, and returns the eigenvectors in rows, or undefined if it does not converge.
 *
 * Source: J. Demmel and K. Veselić, "Jacobi's method is more accurate than QR", 1992.
 */
function diagonalize(a: Float64Array, size: number): Float64Array | undefined {
  const v = new Float64Array(size * size);
  for (let i = 0; i < size; i++) v[i * size + i] = 1;
  for (let sweep = 0; sweep < MAX_SWEEPS; sweep++) {
    let isDiagonal = true;
    for (let p = 0; p < size; p++)
      for (let q = p + 1; q < size; q++) if (annihilate(a, v, size, p, q)) isDiagonal = false;
    if (isDiagonal) return v;
  }
  return undefined;
}

const EPSILON = 2 ** -53;
const SMALLEST = 2 ** -1000;

/**
 * Rotates rows and columns p and q so that A[p, q] becomes 0. Returns false if it is negligible and is just set to 0.
 */
function annihilate(a: Float64Array, v: Float64Array, size: number, p: number, q: number): boolean {
  const [pp, qq, pq] = [a[p * size + p], a[q * size + q], a[p * size + q]];
  const negligible = EPSILON * Math.sqrt(Math.abs(pp)) * Math.sqrt(Math.abs(qq));
  a[p * size + q] = 0;
  a[q * size + p] = 0;
  if (Math.abs(pq) <= Math.max(negligible, SMALLEST)) return false;
  const [gap, twice] = [qq - pp, 2 * pq];
  const tangent = (gap < 0 ? -twice : twice) / (Math.abs(gap) + Math.hypot(gap, twice));
  const cosine = 1 / Math.sqrt(1 + tangent * tangent);
  const sine = tangent * cosine;
  a[p * size + p] = pp - tangent * pq;
  a[q * size + q] = qq + tangent * pq;
  for (let k = 0; k < size; k++) {
    const [x, y] = [v[p * size + k], v[q * size + k]];
    v[p * size + k] = cosine * x - sine * y;
    v[q * size + k] = sine * x + cosine * y;
    if (k === p || k === q) continue;
    const [kp, kq] = [a[p * size + k], a[q * size + k]];
    a[p * size + k] = a[k * size + p] = cosine * kp - sine * kq;
    a[q * size + k] = a[k * size + q] = sine * kp + cosine * kq;
  }
  return true;
}
