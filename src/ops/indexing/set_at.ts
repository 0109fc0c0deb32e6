/** Assignment to indexed elements: the counterpart of `at`. */
import { capturing } from "../../backend/capture.ts";
import { checkElements, underName } from "../../backend/dispatch.ts";
import { firstBackend } from "../../backend/registry.ts";
import { ArgumentError, DTypeError, ShapeError } from "../../core/errors.ts";
import { flag, listOf } from "../../core/kinds.ts";
import { type Given, type Kind, operand, optional, parameters, required } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor, tensorOrScalar } from "../../tensor/kinds.ts";
import type { Scalar } from "../../tensor/promotion.ts";
import { broadcastShapes, type Shape, sameShape } from "../../tensor/shape.ts";
import { hasDType, Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { contiguous } from "../copy/copy.ts";
import { add } from "../elementwise/arithmetic.ts";
import { scalarTensor } from "../elementwise/operands.ts";
import { expand } from "../view/expand.ts";
import { reshape } from "../view/reshape.ts";
import { alongAxis, indexAddAlong } from "./adjoint.ts";
import { checkSomethingToName, type IndexDType } from "./indices.ts";
import { maskedFill } from "./masked_fill.ts";
import { fromTheFront } from "./places.ts";
import { scatterAlong } from "./scatter.ts";
import {
  basicView,
  completed,
  type Index,
  indexList,
  isWholeAxis,
  onlyVector,
  type Rows,
  rowsOf,
  type Step,
} from "./steps.ts";
import { withView } from "./with_view.ts";

/** Options of {@link setAt} and {@link indexPut}. */
export interface SetAtOptions {
  /** Whether to add values to the elements instead of replacing them. Default false. */
  accumulate?: boolean | undefined;
}

/**
 * Returns a copy of `x` with the elements at one index per axis replaced, like `x[…] = value` in NumPy and PyTorch. If
 * an index names an element several times, the last value wins; with `accumulate` all of them are added. The gradient
 * of `x` is 0 at replaced elements; that of `value` is 0 at elements that did not win.
 *
 * @param indices the indices of `at`, in a list
 * @param value a number, or a tensor of x's dtype that can be broadcast to `x.at(…indices)`
 *
 * @example
 * setAt(tensor([[1, 2], [3, 4]]), [":", 0], 9); // float32 [[9, 2], [9, 4]]
 * setAt(tensor([1, 2, 3]), [tensor([2n, 2n])], 1, { accumulate: true }); // float32 [1, 2, 5]
 *
 * @throws {ShapeError} for more indices than axes, an index out of range, or a value that can't be broadcast.
 * @throws {DTypeError} for indices of floats, a value of a different dtype, or a number that the dtype can't hold.
 * @throws {ArgumentError} for a string that is not valid bounds, or more than one `"..."`.
 */
export function setAt<D extends DType>(
  x: Tensor<D>,
  indices: readonly Index[],
  value: Tensor<D> | Scalar,
  ...options: Given<SetAtOptions, ["accumulate"]>
): Tensor<D>;
export function setAt(...values: unknown[]): Tensor {
  return assigned("setAt", setAtParameters(values));
}
setAt.method = "same" as const;
const setAtParameters = parameters("setAt", {
  x: operand(aTensor),
  indices: required(indexList),
  value: required(tensorOrScalar),
  accumulate: optional(flag, false),
});

/**
 * Returns a copy of `x` with the elements at index tensors replaced; see {@link setAt}. The indices are integer
 * tensors, which are broadcast together, and masks.
 *
 * @param indices one tensor for each of the first axes; a mask indexes as many axes as it has
 * @param value a number, or a tensor of x's dtype that can be broadcast to the indexed elements
 *
 * @example
 * indexPut(tensor([[1, 2], [3, 4]]), [tensor([0n, 1n]), tensor([1n, 1n])], 9); // float32 [[1, 9], [3, 9]]
 *
 * @throws as {@link setAt}
 */
export function indexPut<D extends DType>(
  x: Tensor<D>,
  indices: readonly Tensor<IndexDType | "bool">[],
  value: Tensor<D> | Scalar,
  ...options: Given<SetAtOptions, ["accumulate"]>
): Tensor<D>;
export function indexPut(...values: unknown[]): Tensor {
  const given = indexPutParameters(values);
  if (given.indices.length === 0)
    throw new ArgumentError("indexPut", "noIndices", "expected indices to be at least one tensor, got none");
  return assigned("indexPut", given);
}
indexPut.method = "same" as const;
const tensorsOfIndices: Kind<Tensor[]> = listOf(aTensor, "a list of tensors");
const indexPutParameters = parameters("indexPut", {
  x: operand(aTensor),
  indices: required(tensorsOfIndices),
  value: required(tensorOrScalar),
  accumulate: optional(flag, false),
});

interface Assignment {
  readonly x: Tensor;
  readonly indices: readonly Index[];
  readonly value: Tensor | Scalar;
  readonly accumulate: boolean;
}

function assigned(operation: string, { x, indices, value, accumulate }: Assignment): Tensor {
  const steps = completed(operation, x, indices);
  if (value instanceof Tensor && value.dtype !== x.dtype)
    throw new DTypeError(
      operation,
      "dtypesDiffer",
      `expected value to have the dtype of x, ${x.dtype}, got ${value.dtype}; convert with toDType()`,
    );
  const written = value instanceof Tensor ? value : scalarTensor(value, x.dtype, operation);
  checkElements(operation, [x]);
  const mask = accumulate || written.rank > 0 ? undefined : onlyMask(steps, x);
  if (mask) return underName(operation, () => maskedFill(x, mask, written));
  const vector = accumulate ? undefined : onlyVector(steps);
  if (vector) return underName(operation, () => tidy(() => replacedSlices(operation, x, vector, written)));
  return underName(operation, () =>
    tidy(() => {
      const take = (whole: Tensor): Tensor => basicView(operation, whole, steps).view;
      const { view, lists } = basicView(operation, x, steps);
      const part = (given: Shape): Tensor => broadcastTo(operation, written, given);
      if (lists.length === 0) return withView(x, take, accumulate ? add(view, part(view.shape)) : part(view.shape));
      const index = rowsOf(operation, view, lists);
      const source = reshape(index.first(part(index.placedShape)), [index.places.size, ...index.others]);
      const rows = accumulate
        ? indexAddAlong(index.rows, index.places, source, 0, 1, operation)
        : replacedRows(operation, index, source);
      const result = index.asView(rows);
      const isCopy = rows !== index.rows && steps.every((step) => "list" in step || isWholeAxis(step));
      return isCopy ? contiguous(result) : withView(x, take, result);
    }),
  );
}

/**
 * If the indices are one mask and otherwise whole axes, returns the mask in a shape that broadcasts to x's. A number is
 * then written without reading the mask on the host. The general path reports a mask whose shape differs from its axes.
 */
function onlyMask(steps: readonly Step[], { shape, rank }: Tensor): Tensor<"bool"> | undefined {
  const before = steps.findIndex((step) => "list" in step);
  const others = steps.filter((_, at) => at !== before);
  const mask = before < 0 ? undefined : (steps[before] as { readonly list: Tensor }).list;
  if (!hasDType(mask, "bool") || mask.rank === 0 || !others.every(isWholeAxis)) return undefined;
  const end = before + mask.rank;
  if (!sameShape(mask.shape, shape.slice(before, end))) return undefined;
  return reshape(mask, [...mask.shape, ...new Array<number>(rank - end).fill(1)]);
}

/** Replaces slices along the first axis. */
function replacedSlices(operation: string, x: Tensor, index: Tensor<IndexDType>, written: Tensor): Tensor {
  const source = broadcastTo(operation, written, x.shape.with(0, index.size));
  checkSomethingToName(operation, index, x.shape[0]);
  if (firstBackend() === "cpu" && capturing() === undefined)
    return scatterAlong(operation, x, alongAxis(index, source, 0), source, 0, { wraps: true, axes: [0] });
  const places = fromTheFront(operation, index, x.shape[0]);
  return scatterAlong(operation, x, alongAxis(places, source, 0), source, 0);
}

function broadcastTo(operation: string, value: Tensor, shape: Shape): Tensor {
  let lead = value;
  while (lead.rank > shape.length && lead.shape[0] === 1) lead = reshape(lead, lead.shape.slice(1)); // as PyTorch does
  if (!sameShape(broadcastShapes(operation, lead.shape, shape), shape))
    throw new ShapeError(
      operation,
      "shapesDiffer",
      `expected a value that can be broadcast to [${shape.join(", ")}], got ${value.describe()}`,
    );
  return expand(lead, shape);
}

/** Replaces rows. If several values have the same row, the last one wins. */
function replacedRows(operation: string, { rows, places }: Rows, source: Tensor): Tensor {
  checkSomethingToName(operation, places, rows.shape[0]);
  if (places.size === 0 || rows.size === 0) return rows;
  const along = reshape(places, [places.size, ...rows.shape.slice(1).map(() => 1)]);
  return scatterAlong(operation, rows, expand(along, source.shape), source, 0);
}
