import { named as underName } from "../../backend/dispatch.ts";
import { accumulationDType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { add } from "../elementwise/arithmetic.ts";
import { reshape } from "../view/reshape.ts";
import { squeeze, unsqueeze } from "../view/squeeze.ts";

interface Operands {
  readonly x: Tensor;
  readonly weight: Tensor;
  readonly bias: Tensor | undefined;
}

/**
 * A convolution of a batch, or of one element without that axis: computed in the dtype that sums have, with the bias
 * added, and rounded once.
 */
export const ofBatch = (
  operation: string,
  { x, weight, bias }: Operands,
  rank: number,
  compute: (x: Tensor, weight: Tensor) => Tensor,
): Tensor =>
  underName(operation, () =>
    tidy(() => {
      const wide = accumulationDType(x.dtype);
      const isAlone = x.rank === rank + 1;
      const own = compute(toDType(isAlone ? unsqueeze(x, 0) : x, wide), toDType(weight, wide));
      const result = toDType(withBias(own, bias), x.dtype);
      return isAlone ? squeeze(result, { dim: 0 }) : result;
    }),
  );

/** Adds a number to each output. */
function withBias(y: Tensor, bias: Tensor | undefined): Tensor {
  if (!bias) return y;
  return add(y, reshape(toDType(bias, y.dtype), [bias.size, ...new Array<number>(y.rank - 2).fill(1)])) as Tensor;
}
