import { noGrad } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import { underName } from "../../backend/dispatch.ts";
import { DTypeError, ShapeError } from "../../core/errors.ts";
import { type Kind, operand, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor, tensorOrScalar } from "../../tensor/kinds.ts";
import type { Scalar } from "../../tensor/promotion.ts";
import { broadcastShapes } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { copyInto } from "../copy/copy.ts";
import { checkBroadcast, checkTarget } from "../copy/inplace.ts";
import { computeOverLast } from "../elementwise/define.ts";
import { truncatedScalar } from "../elementwise/operands.ts";
import { where } from "../elementwise/where.ts";
import { sumTo } from "../view/expand.ts";

/**
 * Returns `x` with `value` where the mask is true, in `x`'s dtype. `x` and the mask are broadcast together.
 *
 * @param mask of dtype bool
 * @param value a number, or a tensor without axes, which gets a gradient too; for integer dtypes a fraction is
 * truncated
 *
 * @example
 * maskedFill(tensor([1, 2, 3]), tensor([true, false, true]), -Infinity); // [-Infinity, 2, -Infinity]
 *
 * @throws {DTypeError} for a mask that is not bool, or a number that `x`'s dtype can't hold.
 * @throws {ShapeError} if the shapes can't be broadcast together, or the value is not a scalar.
 */
export function maskedFill<D extends DType>(x: Tensor<D>, mask: Tensor<"bool">, value: Tensor | Scalar): Tensor<D>;
export function maskedFill(...values: unknown[]): Tensor {
  const { x, mask, value } = maskedFillParameters(values);
  const filling = fillingOf("maskedFill", x, mask, value);
  const output = filledWhere(x, mask, filling);
  const { shape } = x;
  record("maskedFill", [x, filling], [output], [mask], ([gradient], [saved], needs) => {
    const [g, masked] = [gradient, saved];
    return [
      needs[0] ? sumTo(where(masked, 0, g), shape) : null,
      needs[1] ? sumTo(where(masked, g, 0), filling.shape) : null,
    ];
  });
  return output;
}
maskedFill.method = "same" as const;
const aMask: Kind<Tensor<"bool">> = { ...aTensor, parse: aTensor.parse as Kind<Tensor<"bool">>["parse"] };
const masking = { x: operand(aTensor), mask: operand(aMask), value: operand(tensorOrScalar) } as const;
const maskedFillParameters = parameters("maskedFill", masking);

/**
 * Fills `x` in place with `value` where the mask is true; see {@link maskedFill}. The mask is broadcast to `x`'s shape.
 *
 * @returns x
 *
 * @example
 * maskedFill_(tensor([-1, 2]), tensor([true, false]), 0); // float32 [0, 2]
 *
 * @throws {AutogradError} `inPlace` if `x` or the value requires a gradient, outside `noGrad`.
 * @throws {ArgumentError} if elements of `x` share memory (`expand`).
 * @throws as {@link maskedFill}
 */
export function maskedFill_<T extends Tensor>(x: T, mask: Tensor<"bool">, value: Tensor | Scalar): T;
export function maskedFill_(...values: unknown[]): Tensor {
  const { x, mask, value } = maskedFillInPlaceParameters(values);
  const filling = fillingOf("maskedFill_", x, mask, value);
  checkTarget("maskedFill_", x, [filling]);
  checkBroadcast("maskedFill_", x, mask);
  if (computeOverLast(where, [mask, filling], x)) return x;
  const result = filledWhere(x, mask, filling);
  copyInto(x, result);
  result.dispose();
  return x;
}
maskedFill_.method = "same" as const;
const maskedFillInPlaceParameters = parameters("maskedFill_", masking);

/** Computes the result without recording it. */
const filledWhere = <D extends DType>(x: Tensor<D>, mask: Tensor<"bool">, filling: Tensor<D>): Tensor<D> =>
  underName("maskedFill", () => noGrad(() => where(mask, filling, x))) as Tensor<D>;

/** Checks the arguments and returns the value as a scalar tensor of `x`'s dtype. */
function fillingOf<D extends DType>(operation: string, x: Tensor<D>, mask: Tensor, value: Tensor | Scalar): Tensor<D> {
  x.checkAlive(operation);
  mask.checkAlive(operation);
  if (mask.dtype !== "bool")
    throw new DTypeError(
      operation,
      "notBool",
      `expected the mask to be bool, got ${mask.describe()}; ne(x, 0) makes one`,
    );
  broadcastShapes(operation, x.shape, mask.shape);
  if (!(value instanceof Tensor)) return truncatedScalar(value, x.dtype, operation) as Tensor<D>;
  value.checkAlive(operation);
  if (value.rank > 0)
    throw new ShapeError(
      operation,
      "wrongRank",
      `expected a number or a tensor without axes, got ${value.describe()}; use where(mask, value, x)`,
    );
  return toDType(value, x.dtype);
}
