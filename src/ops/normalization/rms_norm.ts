import { checkNames } from "../../core/options.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { normalize, type SumAndNorm } from "./normalize.ts";
import { checkEps, checkOperand, checkParameters, checkResidual, type RmsNormOptions } from "./options.ts";

const optionNames: Readonly<Record<keyof RmsNormOptions, true>> = { weight: true, eps: true };

/**
 * x / √(mean of x² + eps) · weight over the last axis. Statistics are float32 (float64 of float64), the result has the
 * dtype of x. Gradients of x and weight, of any order.
 *
 * @param x [..., size], a float dtype, any strides
 *
 * @example
 * rmsNorm(tensor([[3, 4], [-30, 40]]), { eps: 0 }); // float32 [[0.84852815, 1.1313709], [-0.84852815, 1.1313709]]
 *
 * @throws {DTypeError} for what is no float, and for a weight of neither the dtype of x nor float32.
 * @throws {ShapeError} for a scalar, or a weight that has not the size of the last axis.
 * @throws {ArgumentError} for an eps that is below 0 or not finite, and for an unknown option.
 */
export function rmsNorm<D extends DType>(x: Tensor<D>, options: RmsNormOptions = {}): Tensor<D> {
  const { weight, eps } = checked("rmsNorm", x, options);
  return normalize({ operation: "rmsNorm", isCentred: false, eps, operands: { x, weight } }).out as Tensor<D>;
}
rmsNorm.method = "same" as const;

/**
 * `sum` = x + residual and `out` = rmsNorm(sum), in one pass over both: a block's way back into its residual stream,
 * and what the next block starts from. The gradients of both results come together in one pass too.
 *
 * @param x [..., size], a float dtype, any strides
 * @param residual the same shape and dtype, any strides
 *
 * @example
 * const { sum, out } = addRmsNorm(tensor([1, 4]), tensor([2, 0]), { eps: 0 }); // [3, 4] and [0.84852815, 1.1313709]
 *
 * @throws {DTypeError} as {@link rmsNorm}, and for a residual of another dtype.
 * @throws {ShapeError} as {@link rmsNorm}, and for a residual of another shape.
 * @throws {ArgumentError} as {@link rmsNorm}.
 */
export function addRmsNorm<D extends DType>(
  x: Tensor<D>,
  residual: Tensor<D>,
  options: RmsNormOptions = {},
): SumAndNorm<D> {
  const { weight, eps } = checked("addRmsNorm", x, options);
  checkResidual("addRmsNorm", x, residual);
  const operands = { x, residual, weight };
  return normalize({ operation: "addRmsNorm", isCentred: false, eps, operands }) as SumAndNorm<D>;
}

function checked(operation: string, x: Tensor, options: RmsNormOptions) {
  const { weight, eps = 1e-6 } = options;
  checkNames(operation, options, optionNames);
  checkOperand(operation, x);
  checkParameters(operation, x, x.shape.slice(-1), { weight });
  return { weight, eps: checkEps(operation, eps) };
}
