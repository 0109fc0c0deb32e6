import { noGrad } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import { underName } from "../../backend/dispatch.ts";
import { axis as axisKind } from "../../core/kinds.ts";
import { operand, parameters, required } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor, tensorOrScalar } from "../../tensor/kinds.ts";
import type { Scalar } from "../../tensor/promotion.ts";
import { normalizeAxis, type Shape } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { arange } from "../creation/arange.ts";
import { eq, lt } from "../elementwise/comparison.ts";
import { scalarTensor } from "../elementwise/operands.ts";
import { where } from "../elementwise/where.ts";
import { filled } from "../view/embed.ts";
import { expand } from "../view/expand.ts";
import { leading, leadingPart } from "../view/leading.ts";
import { reshape } from "../view/reshape.ts";
import { gatherAlong, type IndexSource, paddedTo, scatterAddAlong, scattered } from "./adjoint.ts";
import { type IndexOptions, withAxisFirst } from "./gather.ts";
import { anIndex, checkIndexShape, checkSomethingToName, type IndexDType } from "./indices.ts";
import { fromTheFront } from "./places.ts";
import { checkSourceDType, checkSourceShape } from "./scatter_add.ts";

/**
 * Writes elements along an axis into a copy of `x`: `result[…, index[…, i, …], …] = source[…, i, …]`, as ONNX's
 * `ScatterElements`. If several indices name one element, the last one wins, on every backend and in every run. The
 * gradient of `x` is 0 at replaced elements; that of `source` is 0 at elements that did not win.
 *
 * @param index integers of `x`'s rank, with at most `source`'s sizes and, on axes other than `dim`, at most `x`'s
 * @param source of `x`'s dtype (elements outside the index's sizes are ignored), or one number for all elements
 *
 * @example
 * scatter(tensor([0, 0, 0]), tensor([2n, 1n, 2n]), tensor([4, 5, 6]), { dim: 0 }); // [0, 5, 6]
 * scatter(tensor([0, 0, 0]), tensor([2n]), 7, { dim: 0 }); // [0, 0, 7]
 *
 * @throws {ShapeError} if ranks or sizes do not match, and `indexOutOfRange` if an index is negative or too large (on
 * Metal when a result is read).
 * @throws {DTypeError} for an index of floats or bools, a source of a different dtype, or a number that the dtype can't
 * hold.
 */
export function scatter<D extends DType>(x: Tensor<D>, ...indices: ReplacementArguments<D>): Tensor<D>;
export function scatter(...values: unknown[]): Tensor {
  const { x, dim, index, source } = scatterParameters(withAxisFirst(values));
  const from = source instanceof Tensor ? source : expand(scalarTensor(source, x.dtype, "scatter"), index.shape);
  checkSourceDType("scatter", x, from);
  const axis = normalizeAxis("scatter", dim, x.rank);
  checkIndexShape("scatter", x, index, axis);
  checkSourceShape("scatter", index, from);
  return underName("scatter", () => tidy(() => scatterAlong("scatter", x, index, from, axis)));
}
scatter.method = "same" as const;
const scatterParameters = parameters("scatter", {
  x: operand(aTensor),
  dim: required(axisKind),
  index: required(anIndex),
  source: required(tensorOrScalar),
});

/** Argument orders: `dim` first, as in PyTorch, or `dim` in the options. */
type ReplacementArguments<D extends DType> =
  | [dim: number, index: Tensor<IndexDType>, source: Tensor<D> | Scalar]
  | [index: Tensor<IndexDType>, source: Tensor<D> | Scalar, options: IndexOptions];

/**
 * Computes `scatter` and records its gradient, for operands that are already checked. The last of several equal indices
 * wins.
 */
export function scatterAlong<D extends DType>(
  operation: string,
  x: Tensor<D>,
  index: Tensor<IndexDType>,
  source: Tensor<D>,
  axis: number,
  from: IndexSource = {},
): Tensor<D> {
  if (x.rank === 0)
    return reshape(scatterAlong(operation, reshape(x, [1]), reshape(index, [1]), reshape(source, [1]), 0, from), []);
  checkSomethingToName(operation, index, x.shape[axis]);
  if (index.size === 0) return scatterAddAlong(operation, x, index, source, axis); // copies x, connected to both inputs
  using used = leadingPart(source, index.shape);
  const output = scattered(x, index, used, { operation, dim: axis, way: "last", includesSelf: true, ...from });
  const { shape } = source;
  record(operation, [x, source], [output], [index], ([gradient], [saved], needs) => {
    const savedIndex = from.wraps ? fromTheFront(operation, saved, gradient.shape[axis]) : saved;
    const { winners, isWinner } = winnersOf(operation, savedIndex, gradient.shape, axis);
    const taken = needs[1] ? where(isWinner, gatherAlong("gather", gradient, savedIndex, axis), 0) : null;
    return [needs[0] ? where(lt(winners, 0n), gradient, 0) : null, taken ? paddedTo(taken, shape) : null];
  });
  return output;
}

/**
 * Returns `winners`: for each element, the last position along the axis whose index names the element, or −1; and
 * `isWinner`: for each index, whether it is at this last position. Axes along which an index is repeated have one
 * element.
 */
function winnersOf(
  operation: string,
  index: Tensor<IndexDType>,
  shape: Shape,
  axis: number,
): { winners: Tensor; isWinner: Tensor } {
  return noGrad(() => {
    const isRepeated = (at: number) => at !== axis && index.strides[at] === 0 && index.shape[at] === shape[at];
    const once = (sizes: Shape): Shape => sizes.map((size, at) => (isRepeated(at) ? 1 : size));
    const distinct = leading(index, once(index.shape));
    const line = distinct.shape.map((_, at) => (at === axis ? distinct.shape[axis] : 1));
    const places = expand(reshape(arange(0, distinct.shape[axis], { dtype: "int64" }), line), distinct.shape);
    const attributes = { operation, dim: axis, way: "last", includesSelf: true } as const;
    const winners = scattered(filled(once(shape), "int64", -1n), distinct, places, attributes);
    return { winners, isWinner: eq(gatherAlong(operation, winners, distinct, axis), places) };
  });
}
