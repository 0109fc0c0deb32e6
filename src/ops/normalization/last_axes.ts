/** Normalization over the last axes. The primitive expects rows, so several axes are reshaped to one. */
import { underName } from "../../backend/dispatch.ts";
import type { DType } from "../../tensor/dtype.ts";
import { elementCount, type Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { reshape } from "../view/reshape.ts";
import { type Normalized, normalize } from "./normalize.ts";
import { checkEps, checkNormalizedShape, checkOperand, checkParameters, checkResidual } from "./options.ts";

/** The tensors to normalize. */
interface Rows {
  readonly x: Tensor;
  readonly residual?: Tensor;
}

/** The validated options of normalizations. */
interface Settings {
  readonly normalizedShape: Shape | undefined;
  readonly weight: Tensor | undefined;
  readonly bias?: Tensor | undefined;
  readonly eps: number;
}

/**
 * Normalizes x over its last axes. @param isCentred whether to subtract the mean @throws {ShapeError}
 * @throws {DTypeError} @throws {ArgumentError}
 */
export function normalizeLastAxes(
  operation: string,
  isCentred: boolean,
  { x, residual }: Rows,
  { weight, bias, eps, normalizedShape }: Settings,
): Normalized {
  checkOperand(operation, x);
  if (residual) checkResidual(operation, x, residual);
  const shape = checkNormalizedShape(operation, x, normalizedShape);
  checkParameters(operation, x, shape, { weight, bias });
  checkEps(operation, eps);
  const call = { operation, isCentred, eps };
  if (shape.length === 1) return normalize({ ...call, operands: { x, residual, weight, bias } });
  return underName(operation, () => {
    const row = [elementCount(shape)];
    const rows = (tensor: Tensor) => reshape<DType>(tensor, [...x.shape.slice(0, -shape.length), ...row]);
    const operands = {
      x: rows(x),
      residual: residual && rows(residual),
      weight: weight && reshape(weight, row),
      bias: bias && reshape(bias, row),
    };
    const { out, sum } = normalize({ ...call, operands });
    return { out: reshape(out, x.shape), sum: sum && reshape(sum, x.shape) };
  });
}
