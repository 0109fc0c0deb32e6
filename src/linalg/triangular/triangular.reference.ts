import type { Implementation } from "../../backend/backend.ts";
import { lastElement } from "../../core/collections.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { matricesIn, storeMatrices } from "../reference.ts";
import type { TriangularAttributes } from "./primitive.ts";

export const triangularReference: Implementation<TriangularAttributes, [Tensor, Tensor], [Tensor]> = {
  run({ inputs: [a, b], outputs: [x], attributes }) {
    const factors = matricesIn(a);
    const solutions = matricesIn(b);
    const columns = lastElement(b.shape);
    for (const [at, factor] of factors.entries()) substitute(factor, solutions[at], columns, attributes);
    storeMatrices(x, solutions);
  },
};

/** Replaces B by X, row by row: X[i] = (B[i] − Σ A[i, k] X[k] over the known rows k) / A[i, i]. */
function substitute(
  a: Float64Array,
  b: Float64Array,
  columns: number,
  { upper, unitDiagonal }: TriangularAttributes,
): void {
  const size = Math.round(Math.sqrt(a.length));
  for (let step = 0; step < size; step++) {
    const i = upper ? size - 1 - step : step;
    for (let known = 0; known < step; known++) {
      const k = upper ? size - 1 - known : known;
      const factor = a[i * size + k];
      for (let column = 0; column < columns; column++) b[i * columns + column] -= factor * b[k * columns + column];
    }
    if (unitDiagonal) continue;
    for (let column = 0; column < columns; column++) b[i * columns + column] /= a[i * size + i];
  }
}
