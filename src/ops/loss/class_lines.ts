import { Tensor } from "../../tensor/tensor.ts";
import { type Lines, linesOf } from "../scan/lines.ts";

/** A tensor with one number for each line of logits, as one of the logits' shape that repeats it along the classes: a view for a call. */
export const alongClasses = (
  { storage, dtype, shape, strides, offset }: Tensor,
  axis: number,
  classes: number,
): Tensor => new Tensor(storage, dtype, shape.toSpliced(axis, 0, classes), strides.toSpliced(axis, 0, 0), offset);

/** The first half of what is two numbers a line: the largest logit of each, before the logarithms. */
export const firstPlane = ({ storage, dtype, shape, strides, offset }: Tensor): Tensor =>
  new Tensor(storage, dtype, shape.slice(1), strides.slice(1), offset);

/** Lines of logits along their classes, with others that have one number a line (their rank is one less). */
export function classLines(operands: readonly Tensor[], axis: number): Lines {
  const [logits] = operands;
  const classes = logits!.shape[axis]!;
  const views = operands.map((operand) =>
    operand.rank === logits!.rank ? operand : alongClasses(operand, axis, classes),
  );
  const lines = linesOf(views, axis);
  for (const [at, view] of views.entries()) if (view !== operands[at]) view.dispose();
  return lines;
}
