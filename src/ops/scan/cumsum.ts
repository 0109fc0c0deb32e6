import { ArgumentError } from "../../core/errors.ts";
import { type DType, isFloat } from "../../tensor/dtype.ts";
import { normalizeAxis } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { checkDType } from "../creation/create.ts";
import type { SumOf } from "../reduction/sum.ts";
import type { ScanAttributes } from "./primitive.ts";
import { runningProduct, runningSum } from "./scan.ts";

/** Options of {@link cumsum} and {@link cumprod}. */
export interface CumulativeOptions<D extends DType = DType> {
  /** The axis, a negative one counted from the back. */
  dim: number;
  /** Dtype of the result, to which elements are converted first. */
  dtype?: D | undefined;
}

/**
 * Sums of the elements up to each one along an axis; integers and bools add up in int64, which wraps around.
 *
 * @example
 * cumsum(tensor([[1, 2], [3, 4]]), { dim: 0 }); // float32 [[1, 2], [4, 6]]
 *
 * @throws {ShapeError} for an axis out of range. @throws {ArgumentError} without one.
 */
export const cumsum = <D extends DType, E extends DType = SumOf<D>>(
  x: Tensor<D>,
  options: CumulativeOptions<E>,
): Tensor<E> => cumulative("cumsum", x, options, runningSum);
cumsum.method = "summed" as const;

/**
 * Products of the elements up to each one along an axis; integers and bools multiply in int64, which wraps around. The
 * gradient is right where elements are 0 too.
 *
 * @example
 * cumprod(tensor([1, 2, 3]), { dim: 0 }); // float32 [1, 2, 6]
 *
 * @throws {ShapeError} for an axis out of range. @throws {ArgumentError} without one.
 */
export const cumprod = <D extends DType, E extends DType = SumOf<D>>(
  x: Tensor<D>,
  options: CumulativeOptions<E>,
): Tensor<E> => cumulative("cumprod", x, options, runningProduct);
cumprod.method = "summed" as const;

function cumulative<E extends DType>(
  operation: string,
  x: Tensor,
  options: CumulativeOptions<E>,
  scan: (x: Tensor, along: ScanAttributes) => Tensor,
): Tensor<E> {
  x.checkAlive(operation);
  const { dim, dtype } = options ?? {};
  if (typeof dim !== "number")
    throw new ArgumentError(
      operation,
      "noAxis",
      `expected dim, the axis to run along, to be a number, got ${String(dim)}`,
    );
  const axis = normalizeAxis(operation, dim, x.rank);
  const target: DType = dtype ?? x.dtype;
  checkDType(operation, target);
  const input = isFloat(target) || isFloat(x.dtype) ? toDType(x, target) : x;
  const output = scan(input, { axis, reverse: false });
  return toDType(output, dtype ?? output.dtype) as Tensor<E>;
}
