/** The type of a `vmap` rule, and the views that rules make. */
import type { DType } from "../../tensor/dtype.ts";
import { broadcastStrides, isRowMajor, rowMajorStrides, type Shape } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import type { OutputSpec } from "../allocation.ts";
import { executeMany } from "../dispatch.ts";
import { primitiveOf } from "../primitive.ts";

/** An operand of a call. If it is batched, its first axis has the examples. */
export interface Operand {
  readonly tensor: Tensor;
  readonly isBatched: boolean;
}

/** The result of one example. */
export interface Result {
  readonly shape: Shape;
  readonly dtype: DType;
}

/** The call for all examples. */
export interface Prepared {
  readonly inputs: readonly Tensor[];
  readonly attributes: unknown;
  /** The results to allocate. Default: the results for one example, with the axis of the examples first. */
  readonly specs?: readonly OutputSpec[];
  /** Returns results with the examples along the first axis. Default: the results of the call. */
  readonly finish?: (results: readonly Tensor[]) => Tensor[];
}

/** Prepares the call for all examples; null if it must run once for each. */
export type Rule = (
  operands: readonly Operand[],
  results: readonly Result[],
  attributes: Readonly<Record<string, unknown>>,
) => Prepared | null;

/** Returns a view of the same elements with another layout. */
export const viewOf = (x: Tensor, shape: Shape, strides: readonly number[]): Tensor =>
  new Tensor(x.storage, x.dtype, shape, strides, x.offset);

/** Inserts axes of size 1 after the first one until each example has this rank. */
export function aligned(x: Tensor, rank: number): Tensor {
  const missing = rank - (x.rank - 1);
  if (missing <= 0) return x;
  const ones = new Array<number>(missing).fill(1);
  return viewOf(x, x.shape.toSpliced(1, 0, ...ones), x.strides.toSpliced(1, 0, ...ones.map(() => 0)));
}

/** Repeats a tensor along axes of size 1 and new leading axes. */
export const broadcastTo = (x: Tensor, shape: Shape): Tensor =>
  viewOf(x, shape, broadcastStrides(x.shape, x.strides, shape));

/** Returns the number of examples. */
export const countOf = (operands: readonly Operand[]): number =>
  operands.find(({ isBatched }) => isBatched)!.tensor.shape[0];

/** Expands an operand that is not batched along a new first axis. */
export const repeatedFor = ({ tensor, isBatched }: Operand, count: number): Tensor =>
  isBatched ? tensor : viewOf(tensor, [count, ...tensor.shape], [0, ...tensor.strides]);

/** Repeats the operands that are not batched. */
export const repeated = (operands: readonly Operand[]): readonly Tensor[] =>
  operands.map((operand) => repeatedFor(operand, countOf(operands)));

/** Returns the attributes with the named axes increased by one. */
export function shifted(attributes: Readonly<Record<string, unknown>>, names: readonly string[]): unknown {
  const next: Record<string, unknown> = { ...attributes };
  for (const name of names) {
    const axes = attributes[name];
    if (typeof axes === "number") next[name] = axes + 1;
    else if (Array.isArray(axes)) next[name] = axes.map((axis: number) => axis + 1);
  }
  return next;
}

/** Returns the elements in dense memory from the start of a storage on. */
export function dense(x: Tensor): Tensor {
  if (x.offset === 0 && isRowMajor(x.shape, x.strides)) return x;
  const { shape, dtype } = x;
  return executeMany(primitiveOf("copy"), [x], [{ shape, dtype }], undefined)[0];
}

/** Merges the first axis, of the examples, with the second one. */
export function folded(x: Tensor): Tensor {
  const [count, size, ...others] = x.shape;
  const whole = dense(x);
  const shape = [count * size, ...others];
  return viewOf(whole, shape, rowMajorStrides(shape));
}

/** Splits the first axis into the examples and an axis of an example. */
export const unfolded = (x: Tensor, count: number): Tensor => split(x, 0, count);

/** Moves the first axis of a view behind the next ones. */
export function behind(x: Tensor, axes: number): Tensor {
  const moved = <Item>([first, ...others]: readonly Item[]): Item[] => others.toSpliced(axes, 0, first!);
  return viewOf(x, moved(x.shape), moved(x.strides));
}

/** Moves an axis of a view to the front. */
export function toFront(x: Tensor, axis: number): Tensor {
  const moved = <Item>(items: readonly Item[]): Item[] => [items[axis]!, ...items.toSpliced(axis, 1)];
  return viewOf(x, moved(x.shape), moved(x.strides));
}

/** Splits an axis of a view into a number of examples and an axis of an example. */
export function split(x: Tensor, axis: number, count: number): Tensor {
  const size = x.shape[axis] / count;
  const strides = x.strides.toSpliced(axis, 0, x.strides[axis] * size);
  return viewOf(x, x.shape.toSpliced(axis, 1, count, size), strides);
}
