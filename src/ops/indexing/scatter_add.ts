import { noGrad } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import { execute, executeInto } from "../../backend/dispatch.ts";
import { ArgumentError, DTypeError, ShapeError } from "../../core/errors.ts";
import { type DType, isFloat } from "../../tensor/dtype.ts";
import { normalizeAxis, type Shape, sameShape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { clone } from "../copy/copy.ts";
import { mul } from "../elementwise/arithmetic.ts";
import { embed } from "../view/embed.ts";
import { leading, leadingPart } from "../view/leading.ts";
import { reshape } from "../view/reshape.ts";
import { alongAxis, checkIndexShape, checkVector, gather, type IndexOptions, indexSelect } from "./gather.ts";
import { checkIndexDType, checkSomethingToName, type IndexDType } from "./indices.ts";
import { type ScatterAttributes, scatterAddPrimitive } from "./scatter_add_primitive.ts";

/**
 * `x` with `source[…, i, …]` added at `[…, index[…, i, …], …]`: the opposite of {@link gather}. What one element gets is summed in the
 * order of the indices, in float64 on the cpu and with compensation on Metal: every run gives the same bits. Integers wrap around; a sum
 * of bools is whether any is true.
 *
 * @param index of `x`'s rank, at most `source`'s sizes and, beside `dim`, at most `x`'s
 * @param source of `x`'s dtype; what lies beyond the index is not used
 *
 * @example
 * scatterAdd(tensor([0, 0]), tensor([1n, 1n]), tensor([2, 3]), { dim: 0 }); // [0, 5]
 *
 * @throws {ShapeError} where ranks or sizes do not fit, and `indexOutOfRange` for an index that is negative or too large (on Metal
 * when a result is read). @throws {DTypeError} for an index that is neither int64 nor int32, or a source of another dtype.
 */
export function scatterAdd<D extends DType>(
  x: Tensor<D>,
  index: Tensor<IndexDType>,
  source: Tensor<D>,
  { dim }: IndexOptions,
): Tensor<D> {
  checkIndexDType("scatterAdd", index);
  checkSourceDType("scatterAdd", x, source);
  const axis = normalizeAxis("scatterAdd", dim, x.rank);
  checkIndexShape("scatterAdd", x, index, axis);
  checkSourceShape(index, source);
  if (x.rank === 0)
    return reshape(scatterAdd(reshape(x, [1]), reshape(index, [1]), reshape(source, [1]), { dim: 0 }), []);
  using used = leadingPart(source, index.shape);
  const output = scattered(x, index, used, { operation: "scatterAdd", dim: axis });
  const { shape } = source;
  record("scatterAdd", [x, source], [output], [index], ([gradient], [saved], needs) => [
    gradient!,
    needs[1] ? spread(gather(gradient!, saved as Tensor<IndexDType>, { dim: axis }), shape) : null,
  ]);
  return output;
}
scatterAdd.method = "same" as const;

/** A gradient of the leading part of a tensor as one of the whole. */
const spread = (gradient: Tensor, shape: Shape): Tensor =>
  sameShape(gradient.shape, shape) ? gradient : embed(gradient, shape, (whole) => leading(whole, gradient.shape));

/** Options of {@link indexAdd}. */
export interface IndexAddOptions extends IndexOptions {
  /** A factor of the source. Default 1. */
  alpha?: number;
}

/**
 * `x` with `alpha` times the slices of `source` along an axis added to those that `index` names: the opposite of {@link indexSelect}. Sums as
 * in {@link scatterAdd}.
 *
 * @param index a vector with one index for each slice of `source`
 * @param source of `x`'s dtype and, beside `dim`, its sizes
 *
 * @example
 * indexAdd(zeros([3]), tensor([2n, 2n]), tensor([1, 2]), { dim: 0 }); // [0, 0, 3]
 *
 * @throws {ShapeError} where sizes do not fit, and `indexOutOfRange` for an index that is negative or too large (on Metal when a
 * result is read). @throws {DTypeError} for an index that is neither int64 nor int32, or a source of another dtype.
 * @throws {ArgumentError} for an alpha with a fraction where the dtype has none.
 */
export function indexAdd<D extends DType>(
  x: Tensor<D>,
  index: Tensor<IndexDType>,
  source: Tensor<D>,
  { dim, alpha = 1 }: IndexAddOptions,
): Tensor<D> {
  checkSourceDType("indexAdd", x, source);
  const axis = normalizeAxis("indexAdd", dim, x.rank);
  const vector = checkVector("indexAdd", index);
  checkSlices(x, vector, source, axis);
  if (!isFloat(x.dtype) && !Number.isInteger(alpha))
    throw new ArgumentError("indexAdd", "invalidAlpha", `alpha ${alpha} came for ${x.dtype}, which has no fractions`);
  if (x.rank === 0) return reshape(indexAdd(reshape(x, [1]), vector, reshape(source, [1]), { dim: 0, alpha }), []);
  const attributes = { operation: "indexAdd", dim: axis, axes: [axis] };
  using along = alongAxis(vector, source, axis);
  const output = tidy(() => scattered(x, along, times(source, alpha), attributes));
  record("indexAdd", [x, source], [output], [vector], ([gradient], [saved], needs) => {
    if (!needs[1]) return [gradient!, null];
    const slices = indexSelect(gradient!, saved as Tensor<IndexDType>, { dim: axis });
    return [gradient!, alpha === 1 ? slices : mul(slices, alpha)];
  });
  return output;
}
indexAdd.method = "same" as const;

/** The source with its factor, not recorded. */
const times = (source: Tensor, alpha: number): Tensor =>
  alpha === 1 ? source : noGrad(() => toDType(mul(source, alpha), source.dtype));

/** The sum itself. What of `x` lies beyond the source beside the axis stays as it is. */
function scattered<D extends DType>(
  x: Tensor<D>,
  index: Tensor,
  source: Tensor,
  attributes: ScatterAttributes,
): Tensor<D> {
  checkSomethingToName(attributes.operation, index, x.shape[attributes.dim]!);
  if (source.size === 0) return noGrad(() => clone(x));
  const reached = source.shape.with(attributes.dim, x.shape[attributes.dim]!);
  if (sameShape(reached, x.shape))
    return execute(scatterAddPrimitive, [x, index, source], x.shape, x.dtype, attributes, attributes.operation);
  const output = noGrad(() => clone(x));
  using from = leadingPart(x, reached);
  using to = leadingPart(output, reached);
  executeInto(scatterAddPrimitive, [from, index, source], [to], attributes);
  return output;
}

function checkSourceDType(operation: string, x: Tensor, source: Tensor): void {
  for (const tensor of [x, source]) tensor.checkAlive(operation);
  if (x.dtype !== source.dtype)
    throw new DTypeError(
      operation,
      "dtypesDiffer",
      `source is ${source.dtype}, x is ${x.dtype}; both must have one dtype, toDType(source, "${x.dtype}") converts`,
    );
}

function checkSourceShape(index: Tensor, source: Tensor): void {
  const fits = index.rank === source.rank && index.shape.every((size, axis) => size <= source.shape[axis]!);
  if (!fits)
    throw new ShapeError(
      "scatterAdd",
      "shapesDiffer",
      `index ${index.describe()} came for source ${source.describe()}; the same rank and at most the same sizes are wanted`,
    );
}

function checkSlices(x: Tensor, vector: Tensor, source: Tensor, axis: number): void {
  const length = source.rank === 0 ? 1 : source.shape[axis];
  const fits =
    length === vector.size &&
    source.rank === x.rank &&
    source.shape.every((size, own) => own === axis || size === x.shape[own]);
  if (!fits)
    throw new ShapeError(
      "indexAdd",
      "shapesDiffer",
      `source ${source.describe()} came for ${x.describe()} and ${vector.size} indices; one slice for each index is wanted, with x's sizes beside axis ${axis}`,
    );
}
