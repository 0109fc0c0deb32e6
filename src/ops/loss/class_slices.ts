import { type Slices, slicesOf } from "../../tensor/slices.ts";
import { Tensor } from "../../tensor/tensor.ts";

/**
 * Expands a tensor with one number for each slice to a view with the shape of the logits. Each number is repeated along
 * the classes.
 */
const alongClasses = ({ storage, dtype, shape, strides, offset }: Tensor, axis: number, classes: number): Tensor =>
  new Tensor(storage, dtype, shape.toSpliced(axis, 0, classes), strides.toSpliced(axis, 0, 0), offset);

/**
 * Returns the first half of a tensor with two numbers for each slice: the largest logits, which precede the logarithms.
 */
export const firstPlane = ({ storage, dtype, shape, strides, offset }: Tensor): Tensor =>
  new Tensor(storage, dtype, shape.slice(1), strides.slice(1), offset);

/**
 * Returns the slices of logits along the classes, together with operands that have one number for each slice (of a rank
 * lower by one).
 */
export function classSlices(operands: readonly Tensor[], axis: number): Slices {
  const [logits] = operands;
  const classes = logits.shape[axis];
  const views = operands.map((operand) =>
    operand.rank === logits.rank ? operand : alongClasses(operand, axis, classes),
  );
  const slices = slicesOf(views, axis);
  for (const [at, view] of views.entries()) if (view !== operands[at]) view.dispose();
  return slices;
}
