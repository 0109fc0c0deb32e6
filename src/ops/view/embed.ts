import { record } from "../../autograd/record.ts";
import { empty } from "../../backend/allocation.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Scalar } from "../../tensor/promotion.ts";
import type { Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { copyInto } from "../copy/copy.ts";
import { scalarTensor } from "../elementwise/operands.ts";

/** @internal Creates a tensor filled with one value. */
export function filled<D extends DType>(shape: Shape, dtype: D, value: Scalar, operation?: string): Tensor<D> {
  const result = empty(shape, dtype, {}, operation);
  if (result.size > 0) copyInto(result, scalarTensor(value, dtype));
  return result;
}

/**
 * @internal Returns zeros of a shape with `x` written to a view of them: the gradient of an operation that returns that
 * view.
 *
 * @param view takes the view, and is differentiable
 * @param operation for errors
 */
export function embed<D extends DType>(
  x: Tensor<D>,
  shape: Shape,
  view: (whole: Tensor) => Tensor,
  operation = "embed",
): Tensor<D> {
  const whole = filled(shape, x.dtype, 0, operation);
  const part = view(whole);
  copyInto(part, x);
  if (part !== whole) part.dispose();
  record("embed", [x], [whole], [], ([gradient]) => [view(gradient)]);
  return whole;
}
