import type { Implementation } from "../../backend/backend.ts";
import { store } from "../../backend/reference/elements.ts";
import { lastElement } from "../../core/collections.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { matricesIn, storeMatrices } from "../reference.ts";

export const choleskyReference: Implementation<undefined, [Tensor], [Tensor, Tensor]> = {
  run({ inputs: [a], outputs: [factor, info] }) {
    const size = lastElement(a.shape);
    const matrices = matricesIn(a);
    store(
      info,
      matrices.map((matrix) => factorize(matrix, size)),
    );
    storeMatrices(factor, matrices);
  },
};

/**
 * Replaces A by L, row by row: L[i, j] = (A[i, j] − Σ L[i, k] L[j, k] over k < j) / L[j, j], and on the diagonal the
 * square root of that numerator. Returns the order of the first leading minor that is not positive, or 0 if there is
 * none. From that row on, L is 0.
 */
function factorize(a: Float64Array, size: number): number {
  for (let i = 0; i < size; i++) {
    for (let j = 0; j <= i; j++) {
      let rest = a[i * size + j];
      for (let k = 0; k < j; k++) rest -= a[i * size + k] * a[j * size + k];
      if (i === j && !(rest > 0)) {
        a.fill(0, i * size);
        return i + 1;
      }
      a[i * size + j] = i === j ? Math.sqrt(rest) : rest / a[j * size + j];
    }
    a.fill(0, i * size + i + 1, (i + 1) * size);
  }
  return 0;
}
