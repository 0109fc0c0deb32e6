/** The residual stream between the blocks of a language model. */
import { add } from "../../../ops/elementwise/arithmetic.ts";
import type { SumAndNorm } from "../../../ops/normalization/normalize.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import type { Normalization } from "../../layers/normalization.ts";

/** @internal The value of the stream is residual + addition. The sum is left to the next norm, which fuses it. */
export interface ResidualStream {
  readonly residual: Tensor;
  readonly addition?: Tensor;
}

/** @internal Returns the sum of a stream, and the norm of the sum; without a norm, the sum twice. */
export function normalize(norm: Normalization | null, stream: ResidualStream): SumAndNorm {
  const { residual, addition } = stream;
  if (norm && addition) return norm.addForward(addition, residual);
  const sum = sumOf(stream);
  return { sum, out: norm ? norm.forward(sum) : sum };
}

/** @internal Returns the sum of a stream. */
export const sumOf = ({ residual, addition }: ResidualStream): Tensor =>
  addition ? add(addition, residual) : residual;
