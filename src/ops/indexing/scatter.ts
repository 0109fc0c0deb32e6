import { noGrad } from "../../autograd/modes.ts";
import { named } from "../../backend/dispatch.ts";
import { axis as axisKind } from "../../core/kinds.ts";
import { operand, parameters, required } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor, tensorOrScalar } from "../../tensor/kinds.ts";
import type { Scalar } from "../../tensor/promotion.ts";
import { normalizeAxis, sameShape } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { add, sub } from "../elementwise/arithmetic.ts";
import { gt, ne } from "../elementwise/comparison.ts";
import { maximum } from "../elementwise/extrema.ts";
import { scalarTensor } from "../elementwise/operands.ts";
import { where } from "../elementwise/where.ts";
import { cat } from "../join/cat.ts";
import { pad } from "../join/pad.ts";
import { sort } from "../sorting/sort.ts";
import { filled } from "../view/embed.ts";
import { expand } from "../view/expand.ts";
import { leading } from "../view/leading.ts";
import { reshape } from "../view/reshape.ts";
import { narrow } from "../view/slice.ts";
import { gatherAlong, scatterAddAlong } from "./adjoint.ts";
import { type IndexOptions, withAxisFirst } from "./gather.ts";
import { anIndex, checkIndexShape, checkSomethingToName, type IndexDType } from "./indices.ts";
import { checkSourceDType, checkSourceShape } from "./scatter_add.ts";

/**
 * `x` with `source[…, i, …]` in place of the element at `[…, index[…, i, …], …]`, as ONNX's `ScatterElements`. Where
 * several indices name one element, the last one wins, on every backend and every run. The gradient of `x` is 0 where
 * an element was replaced, that of `source` where it did not win.
 *
 * @param index integers of `x`'s rank, at most `source`'s sizes and, on other axes than `dim`, at most `x`'s
 * @param source of `x`'s dtype, what lies beyond the index is not used; or a number for all elements
 *
 * @example
 * scatter(tensor([0, 0, 0]), tensor([2n, 1n, 2n]), tensor([4, 5, 6]), { dim: 0 }); // [0, 5, 6]
 * scatter(tensor([0, 0, 0]), tensor([2n]), 7, { dim: 0 }); // [0, 0, 7]
 *
 * @throws {ShapeError} where ranks or sizes do not fit, and `indexOutOfRange` for an index that is negative or too
 * large (on Metal when a result is read). @throws {DTypeError} for an index of floats or bools, a source of another
 * dtype, and a number that the dtype can't hold.
 */
export function scatter<D extends DType>(x: Tensor<D>, ...indices: ReplacementArguments<D>): Tensor<D>;
export function scatter(...values: unknown[]): Tensor {
  const { x, dim, index, source } = scatterParameters(withAxisFirst(values));
  const from = source instanceof Tensor ? source : expand(scalarTensor(source, x.dtype, "scatter"), index.shape);
  checkSourceDType("scatter", x, from);
  const axis = normalizeAxis("scatter", dim, x.rank);
  checkIndexShape("scatter", x, index, axis);
  checkSourceShape("scatter", index, from);
  return named("scatter", () => tidy(() => scatterAlong("scatter", x, index, from, axis)));
}
scatter.method = "same" as const;
const scatterParameters = parameters("scatter", {
  x: operand(aTensor),
  dim: required(axisKind),
  index: required(anIndex),
  source: required(tensorOrScalar),
});

/** The ways to pass an axis, indices and what replaces: as PyTorch has them, or the axis by name. */
type ReplacementArguments<D extends DType> =
  | [dim: number, index: Tensor<IndexDType>, source: Tensor<D> | Scalar]
  | [index: Tensor<IndexDType>, source: Tensor<D> | Scalar, options: IndexOptions];

/** `scatter`, of operands that were checked: recorded, where the last of several indices wins. */
export function scatterAlong<D extends DType>(
  operation: string,
  x: Tensor<D>,
  index: Tensor<IndexDType>,
  source: Tensor<D>,
  axis: number,
): Tensor<D> {
  if (x.rank === 0)
    return reshape(scatterAlong(operation, reshape(x, [1]), reshape(index, [1]), reshape(source, [1]), 0), []);
  checkSomethingToName(operation, index, x.shape[axis]!);
  if (index.size === 0) return scatterAddAlong(operation, x, index, source, axis); // x, connected to both
  const reached = index.shape.with(axis, x.shape[axis]!);
  const winners = noGrad(() => winnersOf(operation, index, x, axis));
  const own = noGrad(() => maximum(sub(leading(winners, reached), 1n), 0n) as Tensor<"int64">);
  const values = gatherAlong(operation, source, own, axis);
  const beyond = x.shape.flatMap((size, at) => [size - reached[at]!, 0]).reverse();
  const padded = sameShape(reached, x.shape) ? values : pad(values, beyond);
  return where(gt(winners, 0n), padded, x) as Tensor<D>;
}

/** For each element of x one more than the last place along the axis whose index names it, or 0. */
function winnersOf(operation: string, index: Tensor<IndexDType>, x: Tensor, axis: number): Tensor<"int64"> {
  const length = index.shape[axis]!;
  const { values, indices } = sort(index, { dim: axis });
  const differs = ne(narrow(values, axis, 1, length - 1), narrow(values, axis, 0, length - 1));
  const isLast = cat([differs, filled(index.shape.with(axis, 1), "bool", true)], { dim: axis });
  const places = where(isLast, add(indices, 1n), 0n) as Tensor<"int64">;
  const none = filled(index.shape, "int64", 0);
  return scatterAddAlong(
    operation,
    filled(x.shape, "int64", 0),
    index,
    scatterAddAlong(operation, none, indices, places, axis),
    axis,
  );
}
