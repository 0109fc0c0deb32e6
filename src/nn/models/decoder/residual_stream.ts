/** The stream of sums through the blocks of a language model. */
import { add } from "../../../ops/elementwise/arithmetic.ts";
import type { SumAndNorm } from "../../../ops/normalization/normalize.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import type { Normalization } from "../../layers/normalization.ts";

/** @internal The stream residual + addition between two blocks. The norm that follows computes the sum. */
export interface ResidualStream {
  readonly residual: Tensor;
  readonly addition?: Tensor;
}

/** @internal The sum of a stream, and its norm: the sum itself without one. */
export function normalize(norm: Normalization | null, stream: ResidualStream): SumAndNorm {
  const { residual, addition } = stream;
  if (norm && addition) return norm.addForward(addition, residual);
  const sum = sumOf(stream);
  return { sum, out: norm ? norm.forward(sum) : sum };
}

/** @internal The sum of a stream. */
export const sumOf = ({ residual, addition }: ResidualStream): Tensor =>
  addition ? (add(addition, residual) as Tensor) : residual;
