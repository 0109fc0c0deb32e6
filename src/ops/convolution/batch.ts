import { capturing } from "../../backend/capture.ts";
import { underName } from "../../backend/dispatch.ts";
import { liftingOf } from "../../backend/lifted.ts";
import { type DType, isFloat } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { add } from "../elementwise/arithmetic.ts";
import { reshape } from "../view/reshape.ts";
import { squeeze, unsqueeze } from "../view/squeeze.ts";
import { finished, noFinish } from "./finish.ts";
import { wideDType } from "./geometry.ts";
import { operandDType } from "./primitive.ts";

interface Operands {
  readonly x: Tensor;
  readonly weight: Tensor;
  readonly bias: Tensor | undefined;
}

/**
 * Computes a convolution of a batch, or of a single element without a batch axis. The bias is added in the accumulation
 * dtype, and the result is rounded once.
 */
export const ofBatch = (
  operation: string,
  { x, weight, bias }: Operands,
  rank: number,
  compute: (x: Tensor, weight: Tensor, dtype: DType) => Tensor,
): Tensor =>
  underName(operation, () =>
    tidy(() => {
      const isAlone = x.rank === rank + 1;
      const dtype = isFloat(x.dtype) ? operandDType(x.dtype) : wideDType(x.dtype);
      const [batch, kernel] = [isAlone ? unsqueeze(x, 0) : x, weight].map((each) => toDType(each, dtype));
      const product = compute(batch, kernel, bias ? wideDType(x.dtype) : dtype);
      const result = toDType(withBias(product, bias), x.dtype);
      return isAlone ? squeeze(result, { dim: 0 }) : result;
    }),
  );

/** Adds the bias to each output channel: on cpu in place if nothing is recorded, since y is new. */
function withBias(y: Tensor, bias: Tensor | undefined): Tensor {
  if (!bias) return y;
  if (capturing() === undefined && liftingOf([y, bias], undefined) === undefined)
    return finished(y, toDType(bias, y.dtype), undefined, noFinish);
  return add(y, reshape(toDType(bias, y.dtype), [bias.size, ...new Array<number>(y.rank - 2).fill(1)]));
}
