/**
 * Gather and scatter along an axis. `gather` and `scatterAdd` are each other's gradient, and so are `indexSelect` and
 * `indexAdd`. These functions record gradients but check nothing; the public functions check the arguments first.
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
import { fromTheFront } from "./places.ts";
import type { IndexAttributes, ScatterAttributes, ScatterOthersAttributes } from "./primitive.ts";
import { scatterCpu, scatterOthersCpu } from "./scatter.cpu.ts";
import { scatterMetal, scatterOthersMetal } from "./scatter.metal.ts";
import { scatterOthersReference, scatterReference } from "./scatter.reference.ts";

/**
 * Inputs: x and index. The output has the index's shape. The shape of x may differ from it along the indexed axis only.
 */
export const gatherPrimitive = definePrimitive<IndexAttributes>({
  name: "gather",
  family: "indexing",
  implementations: { metal: gatherMetal, cpu: gatherCpu, reference: gatherReference },
});

/**
 * Inputs: x, index and source. The source has the index's shape. The output has the shape of x, which may differ from
 * it along the indexed axis only.
 */
const scatterPrimitive = definePrimitive<ScatterAttributes>({
  name: "scatter",
  family: "indexing",
  implementations: { metal: scatterMetal, cpu: scatterCpu, reference: scatterReference },
});

/**
 * Inputs as for `scatter`, floats only. The output has the source's shape: for each element of the source, the product
 * of all other elements scattered to the same place.
 */
const scatterOthersPrimitive = definePrimitive<ScatterOthersAttributes>({
  name: "scatterOthers",
  family: "indexing",
  implementations: { metal: scatterOthersMetal, cpu: scatterOthersCpu, reference: scatterOthersReference },
});

/** Describes how a call's indices may be negative, for errors. */
export type IndexSource = Pick<IndexAttributes, "axes" | "isSigned" | "wraps">;

/** Computes `gather`. Elements of `x` outside the index's sizes on the other axes are ignored. */
export function gatherAlong<D extends DType>(
  operation: string,
  x: Tensor<D>,
  index: Tensor<IndexDType>,
  axis: number,
  from: IndexSource = {},
): Tensor<D> {
  if (x.rank === 0) return reshape(gatherAlong(operation, reshape(x, [1]), reshape(index, [1]), 0, from), []);
  checkSomethingToName(operation, index, x.shape[axis]);
  const reached = index.shape.with(axis, x.shape[axis]);
  using part = sameShape(reached, x.shape) ? null : leadingPart(x, reached);
  const attributes = { operation, dim: axis, ...from };
  const output = execute(gatherPrimitive, [part ?? x, index], index.shape, x.dtype, attributes, operation);
  const { shape } = x;
  record(operation, [x], [output], [index], ([gradient], [saved]) => {
    const places = from.wraps ? fromTheFront(operation, saved, shape[axis]) : saved;
    return [scatterAddAlong("scatterAdd", filled(shape, gradient.dtype, 0), places, gradient, axis)];
  });
  return output;
}

/** Computes `scatterAdd`. Elements of the source outside the index's sizes are ignored. */
export function scatterAddAlong<D extends DType>(
  operation: string,
  x: Tensor<D>,
  index: Tensor<IndexDType>,
  source: Tensor<D>,
  axis: number,
  from: IndexSource = {},
): Tensor<D> {
  if (x.rank === 0)
    return reshape(scatterAddAlong(operation, reshape(x, [1]), reshape(index, [1]), reshape(source, [1]), 0, from), []);
  using used = leadingPart(source, index.shape);
  const output = scattered(x, index, used, { ...summed, operation, dim: axis, ...from });
  const { shape } = source;
  record(operation, [x, source], [output], [index], ([gradient], [saved], needs) => {
    if (!needs[1]) return [gradient, null];
    const places = from.wraps ? fromTheFront(operation, saved, gradient.shape[axis]) : saved;
    return [gradient, paddedTo(gatherAlong("gather", gradient, places, axis), shape)];
  });
  return output;
}

/** Zero-pads the gradient of a tensor's leading part to the shape of the whole tensor. */
export const paddedTo = (gradient: Tensor, shape: Shape): Tensor =>
  sameShape(gradient.shape, shape) ? gradient : embed(gradient, shape, (whole) => leading(whole, gradient.shape));

/** Computes `indexSelect`. @param from whether indices may be negative */
export function indexSelectAlong<D extends DType>(
  x: Tensor<D>,
  vector: Tensor<IndexDType>,
  axis: number,
  operation = "indexSelect",
  from: IndexSource = {},
): Tensor<D> {
  if (x.rank === 0) return reshape(indexSelectAlong(reshape(x, [1]), vector, 0, operation, from), []);
  checkSomethingToName(operation, vector, x.shape[axis]);
  const attributes = { operation, dim: axis, axes: [axis], ...from };
  const shape = x.shape.with(axis, vector.size);
  using along = alongAxis(vector, x, axis);
  const output = execute(gatherPrimitive, [x, along], shape, x.dtype, attributes, "indexSelect");
  const inputShape = x.shape;
  record("indexSelect", [x], [output], [vector], ([gradient], [saved]) => {
    const places = from.wraps ? fromTheFront(operation, saved, inputShape[axis]) : saved;
    return [indexAddAlong(filled(inputShape, gradient.dtype, 0), places, gradient, axis, 1)];
  });
  return output;
}

/** Computes `indexAdd`. */
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
    if (!needs[1]) return [gradient, null];
    const slices = indexSelectAlong(gradient, saved, axis);
    return [gradient, alpha === 1 ? slices : mul(slices, alpha)];
  });
  return output;
}

/**
 * Expands a vector of indices to the shape of `x` with `vector.size` along the axis. Returns a view that the caller
 * disposes of.
 */
export function alongAxis(vector: Tensor<IndexDType>, x: Tensor, axis: number): Tensor<IndexDType> {
  const strides = x.shape.map((_, at) => (at === axis ? vector.strides[0] : 0));
  return new Tensor(vector.storage, vector.dtype, x.shape.with(axis, vector.size), strides, vector.offset);
}

/** Multiplies the source by `alpha`, without recording it. */
const times = (source: Tensor, alpha: number): Tensor =>
  alpha === 1 ? source : noGrad(() => toDType(mul(source, alpha), source.dtype));

const summed = { way: "sum", includesSelf: true } as const;

/**
 * Scatters `source` into a copy of `x`, without recording it. Elements of `x` outside the source's sizes on the other
 * axes are unchanged.
 */
export function scattered<D extends DType>(
  x: Tensor<D>,
  index: Tensor,
  source: Tensor,
  attributes: ScatterAttributes,
): Tensor<D> {
  const { operation, dim } = attributes;
  checkSomethingToName(operation, index, x.shape[dim]);
  if (source.size === 0) return noGrad(() => clone(x));
  const reached = source.shape.with(dim, x.shape[dim]);
  if (sameShape(reached, x.shape))
    return execute(scatterPrimitive, [x, index, source], x.shape, x.dtype, attributes, operation);
  const output = noGrad(() => clone(x));
  using from = leadingPart(x, reached);
  using to = leadingPart(output, reached);
  executeInto(scatterPrimitive, [from, index, source], [to], attributes);
  return output;
}

/**
 * For each element of `source`, computes the product of all other elements scattered to the same place, without
 * recording it. `includesSelf` says whether the element of `x` is a factor.
 */
export function scatteredOthers<D extends DType>(
  x: Tensor,
  index: Tensor,
  source: Tensor<D>,
  attributes: ScatterOthersAttributes,
): Tensor<D> {
  using used = leadingPart(x, source.shape.with(attributes.dim, x.shape[attributes.dim]));
  return execute(
    scatterOthersPrimitive,
    [used, index, source],
    source.shape,
    source.dtype,
    attributes,
    attributes.operation,
  );
}
