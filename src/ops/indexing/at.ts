import { checkElements, underName } from "../../backend/dispatch.ts";
import { firstBackend } from "../../backend/registry.ts";
import { operand, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { reshape } from "../view/reshape.ts";
import { indexSelectAlong } from "./adjoint.ts";
import { basicView, completed, type Index, indexList, type ListedAxis, onlyVector, rowsOf } from "./steps.ts";

/**
 * Returns the elements selected by one index per axis, like `x[…]` in NumPy and PyTorch. Numbers, bounds, `null` and
 * `"..."` give a view. Integer tensors are broadcast together and give a copy: their axes replace the indexed axes, or
 * come first if those are not adjacent. A mask makes the call wait for the device. Negative numbers count
 * from the end.
 *
 * @example
 * const x = tensor([[1, 2, 3], [4, 5, 6]]);
 * x.at(-1, "1:"); // [5, 6]
 * x.at("...", tensor([2n, 0n])); // [[3, 1], [6, 4]]
 * x.at(x.gt(3)); // [4, 5, 6]
 *
 * @throws {ShapeError} for more indices than axes, an index out of range, or tensors that can't be broadcast.
 * @throws {DTypeError} for float tensors.
 * @throws {ArgumentError} for a string that is not valid bounds, or more than one `"..."`.
 */
export function at<D extends DType>(x: Tensor<D>, ...indices: Index[]): Tensor<D>;
export function at(...values: unknown[]): Tensor {
  const { x, indices } = atParameters([values[0], values.slice(1)]); // a trailing object is an index, not options
  const named = completed("at", x, indices);
  if (named.some((step) => "list" in step)) checkElements("at", [x]);
  const vector = firstBackend() === "cpu" ? onlyVector(named) : undefined;
  if (vector && (vector.dtype === "int64" || vector.dtype === "int32"))
    return underName("at", () => indexSelectAlong(x, vector, 0, "at", { wraps: true }));
  return underName("at", () =>
    tidy(() => {
      const { view, lists } = basicView("at", x, named);
      return lists.length === 0 ? view : byLists(view, lists);
    }),
  );
}
at.method = "same" as const;

const atParameters = parameters("at", { x: operand(aTensor), indices: operand(indexList) });

/** Returns the elements selected by integer tensors. */
function byLists(view: Tensor, lists: readonly ListedAxis[]): Tensor {
  const { rows, places, shape, others, placed } = rowsOf("at", view, lists);
  return placed(reshape(indexSelectAlong(rows, places, 0, "at"), [...shape, ...others]));
}
