import { type Along, axis as axisKind } from "../../core/kinds.ts";
import { named, operand, parameters, required } from "../../core/parameters.ts";
import { type DType, hasGradients } from "../../tensor/dtype.ts";
import { aDType, aTensor } from "../../tensor/kinds.ts";
import { normalizeAxis } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import type { SumOf } from "../reduction/sum.ts";
import type { ScanAttributes } from "./primitive.ts";
import { runningProduct, runningSum } from "./scan.ts";

/** Options of {@link cumsum} and {@link cumprod}. */
export interface CumulativeOptions<D extends DType = DType> {
  /** The axis; negative counts from the end. */
  dim: number;
  /** Dtype of the result; elements are converted to it first. */
  dtype?: D | undefined;
}

/**
 * Computes the cumulative sum along an axis. Integers and bools are summed in int64, which wraps around.
 *
 * @example
 * cumsum(tensor([[1, 2], [3, 4]]), 0); // float32 [[1, 2], [4, 6]]
 *
 * @throws {ShapeError} for an axis out of range. @throws {ArgumentError} if the axis is missing.
 */
export function cumsum<D extends DType, E extends DType = SumOf<D>>(
  x: Tensor<D>,
  ...options: Along<CumulativeOptions<E>>
): Tensor<E>;
export function cumsum(...values: unknown[]): Tensor {
  return cumulative("cumsum", cumsumParameters(values), runningSum);
}
const cumsumParameters = scanParameters("cumsum");
cumsum.method = "summed" as const;

/**
 * Computes the cumulative product along an axis. Integers and bools are multiplied in int64, which wraps around. The
 * gradient is correct for elements that are 0, too.
 *
 * @example
 * cumprod(tensor([1, 2, 3]), { dim: 0 }); // float32 [1, 2, 6]
 *
 * @throws {ShapeError} for an axis out of range. @throws {ArgumentError} if the axis is missing.
 */
export function cumprod<D extends DType, E extends DType = SumOf<D>>(
  x: Tensor<D>,
  ...options: Along<CumulativeOptions<E>>
): Tensor<E>;
export function cumprod(...values: unknown[]): Tensor {
  return cumulative("cumprod", cumprodParameters(values), runningProduct);
}
const cumprodParameters = scanParameters("cumprod");
cumprod.method = "summed" as const;

function scanParameters(operation: string) {
  return parameters(operation, { x: operand(aTensor), dim: required(axisKind), dtype: named(aDType) });
}

function cumulative(
  operation: string,
  { x, dim, dtype }: ReturnType<ReturnType<typeof scanParameters>>,
  scan: (x: Tensor, along: ScanAttributes) => Tensor,
): Tensor {
  const axis = normalizeAxis(operation, dim, x.rank);
  const target: DType = dtype ?? x.dtype;
  const input = hasGradients(target) || hasGradients(x.dtype) ? toDType(x, target) : x;
  const output = scan(input, { axis, reverse: false });
  return toDType(output, dtype ?? output.dtype);
}
