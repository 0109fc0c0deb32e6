import { ArgumentError } from "../../errors.ts";
import type { FloatDType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkFloat } from "../creation/create.ts";
import { mul } from "../elementwise/binary.ts";
import { where } from "../elementwise/ternary.ts";
import { bernoulli } from "../random/bernoulli.ts";
import type { GeneratorOptions } from "../random/distribution.ts";

/** Options of {@link dropout}. */
export interface DropoutOptions extends GeneratorOptions {
  /** The probability with which an element becomes 0, in [0, 1]. Default 0.5. */
  p?: number | undefined;
  /** False: x itself is the result. Default true. */
  training?: boolean | undefined;
}

/**
 * Elements become 0 with the probability p, and the others grow by 1/(1 − p), so that the expectation stays. With p = 0, or where
 * `training` is false, the result is x itself, and the generator is left as it is.
 *
 * Which elements stay depends on the generator and on an element's place in the tensor: backends, strides and threads make no difference.
 * The mask is not kept: the gradient makes it again.
 *
 * @example
 * dropout(x, { p: 0.1 });
 *
 * @throws {ArgumentError} for a p outside [0, 1]. @throws {DTypeError} for a tensor that is no float.
 */
export function dropout<D extends FloatDType>(
  x: Tensor<D>,
  { p = 0.5, training = true, ...options }: DropoutOptions = {},
): Tensor<D> {
  x.checkAlive("dropout");
  checkFloat("dropout", x.dtype);
  if (!(p >= 0 && p <= 1))
    throw new ArgumentError("dropout", "invalidProbability", `a probability lies in [0, 1], ${String(p)} came`);
  if (!training || p === 0) return x;
  const kept = bernoulli(1 - p, x.shape, { ...options, dtype: "bool" });
  return where(kept, p === 1 ? x : mul(x, 1 / (1 - p)), 0) as Tensor<D>;
}
