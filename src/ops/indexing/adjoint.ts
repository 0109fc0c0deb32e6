/**
 * Reading and adding along an axis: `gather` and `scatterAdd` are each other's gradient, and so are `indexSelect` and
 * `indexAdd`. These are the recorded operations, of operands that were checked; the public functions check them.
 */
import { noGrad } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import { execute, executeInto } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import type { DType } from "../../tensor/dtype.ts";
import { type Shape, sameShape } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { clone } from "../copy/copy.ts";
import { mul } from "../elementwise/arithmetic.ts";
import { embed, filled } from "../view/embed.ts";
import { leading, leadingPart } from "../view/leading.ts";
import { reshape } from "../view/reshape.ts";
import { gatherCpu } from "./gather.cpu.ts";
import { gatherMetal } from "./gather.metal.ts";
import { gatherReference } from "./gather.reference.ts";
import { checkSomethingToName, type IndexDType } from "./indices.ts";
import type { IndexAttributes, ScatterAttributes, ScatterOthersAttributes } from "./primitive.ts";
import { scatterCpu, scatterOthersCpu } from "./scatter.cpu.ts";
import { scatterMetal, scatterOthersMetal } from "./scatter.metal.ts";
import { scatterOthersReference, scatterReference } from "./scatter.reference.ts";

/** Inputs x and index, output: index and output have one shape, and x too but for the axis that is indexed. */
export const gatherPrimitive = definePrimitive<IndexAttributes>({
  name: "gather",
  family: "indexing",
  implementations: { metal: gatherMetal, cpu: gatherCpu, reference: gatherReference },
});

/**
 * Inputs x, index and source: index and source have one shape, and x and the output too but for the axis that is
 * indexed.
 */
const scatterPrimitive = definePrimitive<ScatterAttributes>({
  name: "scatter",
  family: "indexing",
  implementations: { metal: scatterMetal, cpu: scatterCpu, reference: scatterReference },
});

/** The same, of floats: the output has the source's shape, and the product of what comes to where an element comes. */
const scatterOthersPrimitive = definePrimitive<ScatterOthersAttributes>({
  name: "scatterOthers",
  family: "indexing",
  implementations: { metal: scatterOthersMetal, cpu: scatterOthersCpu, reference: scatterOthersReference },
});

/** `gather`. Of `x`, what lies beyond the index on other axes is left out. */
export function gatherAlong<D extends DType>(
  operation: string,
  x: Tensor<D>,
  index: Tensor<IndexDType>,
  axis: number,
): Tensor<D> {
  if (x.rank === 0) return reshape(gatherAlong(operation, reshape(x, [1]), reshape(index, [1]), 0), []);
  checkSomethingToName(operation, index, x.shape[axis]!);
  using used = leadingPart(x, index.shape.with(axis, x.shape[axis]!));
  const output = execute(gatherPrimitive, [used, index], index.shape, x.dtype, { operation, dim: axis }, operation);
  const { shape } = x;
  record(operation, [x], [output], [index], ([gradient], [saved]) => [
    scatterAddAlong("scatterAdd", filled(shape, gradient!.dtype, 0), saved as Tensor<IndexDType>, gradient!, axis),
  ]);
  return output;
}

/** `scatterAdd`. What of the source lies beyond the index is not used. */
export function scatterAddAlong<D extends DType>(
  operation: string,
  x: Tensor<D>,
  index: Tensor<IndexDType>,
  source: Tensor<D>,
  axis: number,
): Tensor<D> {
  if (x.rank === 0)
    return reshape(scatterAddAlong(operation, reshape(x, [1]), reshape(index, [1]), reshape(source, [1]), 0), []);
  using used = leadingPart(source, index.shape);
  const output = scattered(x, index, used, { ...summed, operation, dim: axis });
  const { shape } = source;
  record(operation, [x, source], [output], [index], ([gradient], [saved], needs) => [
    gradient!,
    needs[1] ? paddedTo(gatherAlong("gather", gradient!, saved as Tensor<IndexDType>, axis), shape) : null,
  ]);
  return output;
}

/** A gradient of the leading part of a tensor as one of the whole. */
export const paddedTo = (gradient: Tensor, shape: Shape): Tensor =>
  sameShape(gradient.shape, shape) ? gradient : embed(gradient, shape, (whole) => leading(whole, gradient.shape));

/** `indexSelect`. */
export function indexSelectAlong<D extends DType>(
  x: Tensor<D>,
  vector: Tensor<IndexDType>,
  axis: number,
  operation = "indexSelect",
): Tensor<D> {
  if (x.rank === 0) return reshape(indexSelectAlong(reshape(x, [1]), vector, 0, operation), []);
  checkSomethingToName(operation, vector, x.shape[axis]!);
  const attributes = { operation, dim: axis, axes: [axis] };
  const shape = x.shape.with(axis, vector.size);
  using along = alongAxis(vector, x, axis);
  const output = execute(gatherPrimitive, [x, along], shape, x.dtype, attributes, "indexSelect");
  const own = x.shape;
  record("indexSelect", [x], [output], [vector], ([gradient], [saved]) => [
    indexAddAlong(filled(own, gradient!.dtype, 0), saved as Tensor<IndexDType>, gradient!, axis, 1),
  ]);
  return output;
}

/** `indexAdd`. */
export function indexAddAlong<D extends DType>(
  x: Tensor<D>,
  vector: Tensor<IndexDType>,
  source: Tensor<D>,
  axis: number,
  alpha: number,
  operation = "indexAdd",
): Tensor<D> {
  if (x.rank === 0)
    return reshape(indexAddAlong(reshape(x, [1]), vector, reshape(source, [1]), 0, alpha, operation), []);
  const attributes = { ...summed, operation, dim: axis, axes: [axis] };
  using along = alongAxis(vector, source, axis);
  const output = tidy(() => scattered(x, along, times(source, alpha), attributes));
  record("indexAdd", [x, source], [output], [vector], ([gradient], [saved], needs) => {
    if (!needs[1]) return [gradient!, null];
    const slices = indexSelectAlong(gradient!, saved as Tensor<IndexDType>, axis);
    return [gradient!, alpha === 1 ? slices : mul(slices, alpha)];
  });
  return output;
}

/**
 * A vector of indices as one for each element along an axis, repeated along the others: a view that the caller disposes
 * of.
 */
function alongAxis(vector: Tensor<IndexDType>, x: Tensor, axis: number): Tensor<IndexDType> {
  const strides = x.shape.map((_, own) => (own === axis ? vector.strides[0]! : 0));
  return new Tensor(vector.storage, vector.dtype, x.shape.with(axis, vector.size), strides, vector.offset);
}

/** The source with its factor, not recorded. */
const times = (source: Tensor, alpha: number): Tensor =>
  alpha === 1 ? source : noGrad(() => toDType(mul(source, alpha), source.dtype));

const summed = { way: "sum", includesSelf: true } as const;

/** Not recorded: `x` put together with what comes to it. What of `x` lies beyond the source on other axes stays. */
export function scattered<D extends DType>(
  x: Tensor<D>,
  index: Tensor,
  source: Tensor,
  attributes: ScatterAttributes,
): Tensor<D> {
  const { operation, dim } = attributes;
  checkSomethingToName(operation, index, x.shape[dim]!);
  if (source.size === 0) return noGrad(() => clone(x));
  const reached = source.shape.with(dim, x.shape[dim]!);
  if (sameShape(reached, x.shape))
    return execute(scatterPrimitive, [x, index, source], x.shape, x.dtype, attributes, operation);
  const output = noGrad(() => clone(x));
  using from = leadingPart(x, reached);
  using to = leadingPart(output, reached);
  executeInto(scatterPrimitive, [from, index, source], [to], attributes);
  return output;
}

/**
 * Not recorded: for each element of `source` the product of all others that come to where it comes, x's among them or
 * not.
 */
export function scatteredOthers<D extends DType>(
  x: Tensor,
  index: Tensor,
  source: Tensor<D>,
  attributes: ScatterOthersAttributes,
): Tensor<D> {
  using used = leadingPart(x, source.shape.with(attributes.dim, x.shape[attributes.dim]!));
  return execute(
    scatterOthersPrimitive,
    [used, index, source],
    source.shape,
    source.dtype,
    attributes,
    attributes.operation,
  );
}
