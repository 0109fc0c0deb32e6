import { type Slices, slicesOf } from "../../tensor/slices.ts";
import { Tensor } from "../../tensor/tensor.ts";

/**
 * A tensor with one number for each slice of logits, as one of the logits' shape that repeats it along the classes: a
 * view for a call.
 */
const alongClasses = ({ storage, dtype, shape, strides, offset }: Tensor, axis: number, classes: number): Tensor =>
  new Tensor(storage, dtype, shape.toSpliced(axis, 0, classes), strides.toSpliced(axis, 0, 0), offset);

/** The first half of what has two numbers for each slice: the largest logit of each, before the logarithms. */
export const firstPlane = ({ storage, dtype, shape, strides, offset }: Tensor): Tensor =>
  new Tensor(storage, dtype, shape.slice(1), strides.slice(1), offset);

/** Slices of logits along their classes, with others that have one number for each slice (their rank is one less). */
export function classSlices(operands: readonly Tensor[], axis: number): Slices {
  const [logits] = operands;
  const classes = logits!.shape[axis]!;
  const views = operands.map((operand) =>
    operand.rank === logits!.rank ? operand : alongClasses(operand, axis, classes),
  );
  const slices = slicesOf(views, axis);
  for (const [at, view] of views.entries()) if (view !== operands[at]) view.dispose();
  return slices;
}
