/**
 * Convolution and its two adjoints: three functions, each linear in both operands. The gradients of each function are
 * the other two. On metal and cpu each is one call (`primitive.ts`). The reference loops over the positions of the
 * kernel: the elements of x under one position are a view, and their contribution to the result is a matrix product. It
 * therefore needs at most one copy of x.
 */
import { noGrad } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import { execute } from "../../backend/dispatch.ts";
import { tupleOf } from "../../core/tuples.ts";
import type { DType } from "../../tensor/dtype.ts";
import { elementCount, type Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { contiguous } from "../copy/copy.ts";
import { add_ } from "../copy/inplace.ts";
import { zeros } from "../creation/full.ts";
import { mul } from "../elementwise/arithmetic.ts";
import { stack } from "../join/cat.ts";
import { pad } from "../join/pad.ts";
import { plainMatmul as matmul } from "../matmul/plain_matmul.ts";
import { permute, transpose } from "../view/permute.ts";
import { reshape } from "../view/reshape.ts";
import { narrow, select, slice } from "../view/slice.ts";
import { unsqueeze } from "../view/squeeze.ts";
import type { Geometry } from "./geometry.ts";
import {
  type ConvolutionAttributes,
  convolutionPrimitive,
  convolutionTransposedPrimitive,
  convolutionWeightPrimitive,
  isOfOneCall,
  operandDType,
} from "./primitive.ts";

/**
 * Computes y[n, o, p] = Σ w[o, c, k] x[n, c, p · stride + k · dilation − padding] in x's dtype or a wider one. The
 * caller rounds the result to x's dtype, so a gradient in x's dtype is sufficient.
 */
export function convolve(x: Tensor, weight: Tensor, geometry: Geometry, dtype: DType = x.dtype): Tensor {
  const result = tidy(() => noGrad(() => computed(forward, [x, weight], geometry, dtype)));
  record("convolution", [x, weight], [result], [x, weight], ([gradient], [savedX, savedWeight], needs) => {
    const g = toDType(gradient, x.dtype);
    return [
      needs[0] ? convolveBack(g, savedWeight, geometry) : null,
      needs[1] ? convolveWeight(savedX, g, geometry) : null,
    ];
  });
  return result;
}

/** Computes the adjoint with respect to x, from y's shape to x's: the transposed convolution. */
export function convolveBack(y: Tensor, weight: Tensor, geometry: Geometry, dtype: DType = y.dtype): Tensor {
  const result = tidy(() => noGrad(() => computed(backward, [y, weight], geometry, dtype)));
  record("convolutionTransposed", [y, weight], [result], [y, weight], ([gradient], [savedY, savedWeight], needs) => {
    const g = toDType(gradient, y.dtype);
    return [
      needs[0] ? convolve(g, savedWeight, geometry) : null,
      needs[1] ? convolveWeight(g, savedY, geometry) : null,
    ];
  });
  return result;
}

/** Computes the adjoint with respect to the weight. */
function convolveWeight(x: Tensor, y: Tensor, geometry: Geometry): Tensor {
  const result = tidy(() => noGrad(() => computed(ofWeight, [x, y], geometry, x.dtype)));
  record("convolutionWeight", [x, y], [result], [x, y], ([g], [savedX, savedY], needs) => [
    needs[0] ? convolveBack(savedY, g, geometry) : null,
    needs[1] ? convolve(savedX, g, geometry) : null,
  ]);
  return result;
}

/** Pads x with zeros along its last axes. */
function padded(x: Tensor, { padding }: Geometry): Tensor {
  if (padding.every(([before, after]) => before === 0 && after === 0)) return x;
  return pad(x, padding.toReversed().flat());
}

/** Returns the coordinates of each kernel position. */
function placesOf(kernel: Shape): number[][] {
  const places: number[][] = [[]];
  return kernel.reduce(
    (all, size) => all.flatMap((prefix) => Array.from({ length: size }, (_, at) => [...prefix, at])),
    places,
  );
}

/** Returns the elements of a padded x under one kernel position: a view [batch, channels, …output]. */
function under(x: Tensor, place: readonly number[], { stride, dilation, output }: Geometry): Tensor {
  return place.reduce((view, at, axis) => {
    const start = at * dilation[axis];
    const end = start + (output[axis] - 1) * stride[axis] + 1;
    return slice(view, { dim: axis + 2, start, end: output[axis] === 0 ? start : end, step: stride[axis] });
  }, x);
}

/**
 * Permutes the weight [outputs, channels / groups, …kernel] to [places, groups, outputs / groups, channels / groups].
 */
function byPlace(weight: Tensor, { kernel, groups }: Geometry): Tensor {
  const [outputs, channels] = tupleOf(weight.shape, 2);
  const flat = reshape(weight, [groups, outputs / groups, channels, elementCount(kernel)]);
  return contiguous(permute(flat, [3, 0, 1, 2]));
}

/** Returns the attributes of a backend call: missing axes have size 1. */
function attributesOf(batch: number, weight: Shape, geometry: Geometry): ConvolutionAttributes {
  const { groups, kernel, input, output, stride, dilation, padding } = geometry;
  const three = (list: readonly number[], fill: number): number[] => [
    ...new Array<number>(3 - list.length).fill(fill),
    ...list,
  ];
  return {
    batch,
    groups,
    channels: weight[1],
    outputs: weight[0] / groups,
    input: three(input, 1),
    output: three(output, 1),
    kernel: three(kernel, 1),
    stride: three(stride, 1),
    dilation: three(dilation, 1),
    before: three(
      padding.map(([before]) => before),
      0,
    ),
  };
}

/** Runs one backend call for all kernel positions, with a weight of the given shape. */
function inOneCall(
  primitive: typeof convolutionPrimitive,
  operands: readonly [Tensor, Tensor],
  shape: Shape,
  weight: Shape,
  geometry: Geometry,
  dtype: DType,
): Tensor {
  const attributes = attributesOf(operands[0].shape[0], weight, geometry);
  return execute(
    primitive,
    operands.map((operand) => contiguous(operand)),
    shape,
    dtype,
    attributes,
    "convolution",
  );
}

type Compute = (first: Tensor, second: Tensor, geometry: Geometry, dtype: DType) => Tensor;

/**
 * Runs `compute` with operands in the backend's dtype. Operands saved by metal in the forward pass are converted to the
 * accumulation dtype if another backend runs.
 */
function computed(compute: Compute, operands: readonly Tensor[], geometry: Geometry, dtype: DType): Tensor {
  const backendDType = operandDType(operands[0].dtype);
  const [first, second] = operands.map((each) => toDType(each, backendDType));
  return toDType(compute(first, second, geometry, backendDType === operands[0].dtype ? dtype : backendDType), dtype);
}

function forward(x: Tensor, weight: Tensor, geometry: Geometry, dtype: DType): Tensor {
  if (isOfOneCall()) {
    const shape = [x.shape[0], weight.shape[0], ...geometry.output];
    return inOneCall(convolutionPrimitive, [x, weight], shape, weight.shape, geometry, dtype);
  }
  const { groups, kernel, output } = geometry;
  const [batch, channels] = [x.shape[0], x.shape[1] / groups];
  const outputs = weight.shape[0];
  const weights = byPlace(weight, geometry);
  const whole = padded(x, geometry);
  const places = placesOf(kernel);
  const columnsAt = (place: readonly number[]): Tensor =>
    reshape(under(whole, place, geometry), [batch, groups, channels, elementCount(output)]);
  const product = (at: number, columns: Tensor): Tensor => {
    const kernelColumns = unsqueeze(select(weights, 0, at), 0);
    return channels === 1 ? mul(kernelColumns, columns) : matmul(kernelColumns, columns);
  };
  let result = zeros([batch, groups, outputs / groups, elementCount(output)], { dtype: x.dtype });
  for (const [at, place] of places.entries()) {
    const term = tidy(() => product(at, columnsAt(place)));
    if (at === 0) result = term;
    else {
      add_(result, term);
      term.dispose();
    }
  }
  return reshape(result, [batch, outputs, ...output]);
}

function backward(y: Tensor, weight: Tensor, geometry: Geometry, dtype: DType): Tensor {
  if (isOfOneCall()) {
    const shape = [y.shape[0], weight.shape[1] * geometry.groups, ...geometry.input];
    return inOneCall(convolutionTransposedPrimitive, [y, weight], shape, weight.shape, geometry, dtype);
  }
  const { groups, kernel, input, output, padding } = geometry;
  const batch = y.shape[0];
  const channels = weight.shape[1];
  const weights = transpose(byPlace(weight, geometry), -1, -2);
  const columns = reshape(y, [batch, groups, weight.shape[0] / groups, elementCount(output)]);
  const outer = input.map((size, axis) => size + padding[axis][0] + padding[axis][1]);
  const whole = zeros([batch, channels * groups, ...outer], { dtype: y.dtype });
  for (const [at, place] of placesOf(kernel).entries())
    tidy(() => {
      const kernelColumns = unsqueeze(select(weights, 0, at), 0);
      const term = weight.shape[0] === groups ? mul(kernelColumns, columns) : matmul(kernelColumns, columns);
      add_(under(whole, place, geometry), reshape(term, [batch, channels * groups, ...output]));
    });
  return contiguous(input.reduce((view, size, axis) => narrow(view, axis + 2, padding[axis][0], size), whole));
}

function ofWeight(x: Tensor, y: Tensor, geometry: Geometry, dtype: DType): Tensor {
  if (isOfOneCall()) {
    const shape = [y.shape[1], x.shape[1] / geometry.groups, ...geometry.kernel];
    return inOneCall(convolutionWeightPrimitive, [x, y], shape, shape, geometry, dtype);
  }
  const { groups, kernel, output } = geometry;
  const [batch, channels, outputs] = [x.shape[0], x.shape[1] / groups, y.shape[1] / groups];
  /** Permutes [batch, groups · each, …output] to [groups, each, batch · …output]. */
  const lines = (tensor: Tensor, each: number): Tensor =>
    reshape(permute(reshape(tensor, [batch, groups, each, elementCount(output)]), [1, 2, 0, 3]), [
      groups,
      each,
      batch * elementCount(output),
    ]);
  const gradient = contiguous(lines(y, outputs));
  const whole = padded(x, geometry);
  const products = placesOf(kernel).map((place) =>
    tidy(() => matmul(gradient, transpose(lines(under(whole, place, geometry), channels), 1, 2))),
  );
  return contiguous(reshape(stack(products, -1), [outputs * groups, channels, ...kernel]));
}
