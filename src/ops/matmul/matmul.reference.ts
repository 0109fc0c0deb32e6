import type { Implementation } from "../../backend/backend.ts";
import { store, toIntegers, toNumbers } from "../../backend/reference/elements.ts";
import { lastElement } from "../../core/collections.ts";
import { isFloat } from "../../tensor/dtype.ts";
import { elementCount } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { ProductScale } from "./primitive.ts";

/**
 * Computes the definition: out[i, j] = alpha · Σₖ a[i, k] · b[k, j] + beta · input[i, j], for each index of the batch.
 */
export const productReference: Implementation<ProductScale, [Tensor, Tensor, ...Tensor[]], [Tensor]> = {
  run({ inputs: [a, b, input], outputs: [out], attributes: { alpha, beta } }) {
    const sizes = sizesOf(a, out);
    if (isFloat(out.dtype)) {
      const sums = new Float64Array(out.size);
      const left = toNumbers(a, sizes.aShape);
      const right = toNumbers(b, sizes.bShape);
      forEachSum(sizes, (at, aAt, bAt) => {
        let sum = 0;
        for (let k = 0; k < sizes.k; k++) sum += left[aAt + k] * right[bAt + k * sizes.n];
        sums[at] = alpha * sum;
      });
      if (input) for (const [at, value] of toNumbers(input, out.shape).entries()) sums[at] += beta * value;
      store(out, sums);
    } else {
      const sums = new Array<bigint>(out.size);
      const left = toIntegers(a, sizes.aShape);
      const right = toIntegers(b, sizes.bShape);
      forEachSum(sizes, (at, aAt, bAt) => {
        let sum = 0n;
        for (let k = 0; k < sizes.k; k++) sum += left[aAt + k] * right[bAt + k * sizes.n];
        sums[at] = BigInt(alpha) * sum;
      });
      if (input) for (const [at, value] of toIntegers(input, out.shape).entries()) sums[at] += BigInt(beta) * value;
      store(out, sums);
    }
  },
};

interface Sizes {
  readonly batch: number;
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly aShape: readonly number[];
  readonly bShape: readonly number[];
}

function sizesOf(a: Tensor, out: Tensor): Sizes {
  const batchShape = out.shape.slice(0, -2);
  const [m, n, k] = [out.shape.at(-2)!, lastElement(out.shape), lastElement(a.shape)];
  return { batch: elementCount(batchShape), m, n, k, aShape: [...batchShape, m, k], bShape: [...batchShape, k, n] };
}

/** Calls `body` with the offset of each element of the result, of its row of a, and of its column of b. */
function forEachSum({ batch, m, n, k }: Sizes, body: (at: number, aAt: number, bAt: number) => void): void {
  for (let index = 0; index < batch; index++)
    for (let row = 0; row < m; row++)
      for (let column = 0; column < n; column++)
        body((index * m + row) * n + column, (index * m + row) * k, index * k * n + column);
}
