/** Quantization: integers with a scale and a zero point. */
import * as ops from "../../ops/index.ts";
import { type DType, isFloat } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type Call, type Operators, Results } from "../call.ts";
import { castTo } from "../cast.ts";
import { NodeProblem } from "../errors.ts";
import { kept, keptType } from "../kept_types.ts";
import { elementType, isKept } from "../tensors.ts";
import { axisOf } from "./axes.ts";
import { convolve } from "./windows.ts";

/** The limits of a type with this many bits. */
const limitsOf = (bits: number, isSigned: boolean): readonly [number, number] =>
  isSigned ? [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1] : [0, 2 ** bits - 1];

const dtypeLimits: Readonly<Partial<Record<DType, readonly [number, number]>>> = {
  int8: limitsOf(8, true),
  uint8: limitsOf(8, false),
  int32: limitsOf(32, true),
};

/** Broadcasts a scale or zero point: one for all, a vector along the axis, or one for each block along the axis. */
function spread(call: Call, value: Tensor, x: Tensor): Tensor {
  if (value.size === 1) return ops.reshape(value, []);
  const axis = axisOf(call.attributes.number("axis", 1), x.rank);
  if (value.rank === 1)
    return ops.reshape(
      value,
      x.shape.map((_, at) => (at === axis ? value.size : 1)),
    );
  const block = call.attributes.number("block_size");
  return ops.narrow(ops.repeatInterleave(value, block, { dim: axis }), axis, 0, x.shape[axis]);
}

/** Returns (x − zero) · scale in float32. */
export const dequantized = (x: Tensor, scale: Tensor, zero: Tensor | undefined): Tensor =>
  ops.mul(ops.sub(x.to("float32"), zero ? zero.to("float32") : 0), scale);

/** Returns x / scale + zero, rounded to even, within the limits of the zero point's type. */
export const rounded = (x: Tensor, scale: Tensor, zero: Tensor | undefined): Tensor =>
  quantized(x, scale, zero, zero?.dtype ?? "uint8", limitsFor(zero?.dtype ?? "uint8"));

function limitsFor(dtype: DType): readonly [number, number] {
  const limits = dtypeLimits[dtype];
  if (!limits) throw new NodeProblem(`quantization to ${dtype} is not supported`);
  return limits;
}

function dequantize(call: Call): Tensor {
  const [x, scale] = [call.tensor(0), call.tensor(1)];
  const zero = call.optional(2);
  const isWhole = !isFloat(x.dtype);
  const difference = zero && isWhole ? ops.sub(x.to("int32"), spread(call, zero, x).to("int32")) : x;
  return ops.mul(difference.to(scale.dtype), spread(call, scale, x)).to(scale.dtype);
}

/** Rounds to even, and clamps to the range of the zero point's type, or of `output_dtype`. */
function quantize(call: Call): Tensor {
  const [x, scale] = [call.tensor(0), call.tensor(1)];
  const zero = call.optional(2);
  const number = call.attributes.number("output_dtype", 0) || keptType(zero);
  const type = number === undefined ? undefined : elementType(number);
  if (number !== undefined && !type) throw new NodeProblem(`quantization to type ${number} is not supported`);
  const divided = () => ops.div(x.to("float32"), spread(call, scale, x).to("float32"));
  if (type?.values) return castTo(divided(), number!, { saturate: call.attributes.flag("saturate", true), mode: "up" });
  const dtype = type?.dtype ?? zero?.dtype ?? "uint8";
  const limits = type?.wraps ? limitsOf(type.wraps.bits, type.wraps.isSigned) : limitsFor(dtype);
  const result = quantized(x, spread(call, scale, x), zero && spread(call, zero, x), dtype, limits);
  return type && isKept(type) ? kept(result, number!) : result;
}

function quantized(
  x: Tensor,
  scale: Tensor,
  zero: Tensor | undefined,
  dtype: DType,
  [min, max]: readonly [number, number],
): Tensor {
  const whole = ops.round(ops.div(x.to("float32"), scale.to("float32")));
  const shifted = zero ? ops.add(whole, zero.to("float32")) : whole;
  return ops.clamp(shifted, { min, max }).to(dtype);
}

/** A tensor quantized to bytes. Its values are (code − zero) · scale. */
interface Codes {
  readonly codes: Tensor;
  readonly scale: Tensor;
  readonly zero: Tensor;
}

/** Quantizes over the range of the elements and 0. If all elements are 0, the scale is 1, as in onnxruntime. */
export function codesOf(x: Tensor): Codes {
  const high = ops.maximum(ops.amax(x), 0);
  const low = ops.minimum(ops.amin(x), 0);
  const range = ops.div(ops.sub(high, low), 255).to("float32");
  const scale = ops.where(ops.eq(range, 0), ops.onesLike(range), range);
  const zero = ops.clamp(ops.round(ops.neg(ops.div(low, scale))), { min: 0, max: 255 }).to("uint8");
  return { codes: quantized(x, scale, zero, "uint8", [0, 255]), scale, zero };
}

export function quantizeDynamically(call: Call): Results {
  const { codes, scale, zero } = codesOf(call.tensor(0));
  return new Results(codes, scale, zero);
}

/** Integers as float64, in which sums of products of 8 bits are exact. */
const exact = (x: Tensor, zero: Tensor | undefined): Tensor =>
  zero ? ops.sub(x.to("float64"), zero.to("float64")) : x.to("float64");

/** A vector of zero points has one element for each row of the first operand, or for each column of the second. */
const ofRows = (zero: Tensor | undefined): Tensor | undefined =>
  zero && zero.rank === 1 && zero.size > 1 ? ops.unsqueeze(zero, 1) : zero;

export const integerProduct = (a: Tensor, b: Tensor, aZero: Tensor | undefined, bZero: Tensor | undefined): Tensor =>
  ops.matmul(exact(a, ofRows(aZero)), exact(b, bZero));

const matMulInteger = (call: Call): Tensor =>
  integerProduct(call.tensor(0), call.tensor(1), call.optional(2), call.optional(3)).to("int32");

function convInteger(call: Call): Tensor {
  const [x, weight] = [call.tensor(0), call.tensor(1)];
  return convolve(call, exact(x, call.optional(2)), exact(weight, ofOutputs(call.optional(3), weight))).to("int32");
}

/** A value for each output channel, along the weight's first axis. */
const ofOutputs = (vector: Tensor | undefined, weight: Tensor): Tensor | undefined =>
  vector && vector.size > 1 ? ops.reshape(vector, [vector.size, ...weight.shape.slice(1).map(() => 1)]) : vector;

/** Scales sums in float32, as onnxruntime does, so that ties round in the same way. */
function requantized(sums: Tensor, scale: Tensor, zero: Tensor): Tensor {
  const [min, max] = limitsFor(zero.dtype);
  const whole = ops.round(ops.mul(sums.to("float32"), scale));
  return ops.clamp(ops.add(whole, zero.to("float32")), { min, max }).to(zero.dtype);
}

/** Inputs: a, its scale and zero point, b, its scale and zero point, the result's scale and zero point. */
function qLinearMatMul(call: Call): Tensor {
  const [a, aScale, aZero, b, bScale, bZero, yScale, yZero] = Array.from({ length: 8 }, (_, at) => call.tensor(at)) as [
    ...[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor],
  ];
  const sums = integerProduct(a, b, aZero, bZero);
  const scale = ops.div(ops.mul(ofRows(aScale)!.to("float32"), bScale.to("float32")), yScale.to("float32"));
  return requantized(sums, scale, yZero);
}

function qLinearConv(call: Call): Tensor {
  const [x, xScale, xZero, w, wScale, wZero, yScale, yZero] = Array.from({ length: 8 }, (_, at) => call.tensor(at)) as [
    ...[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor],
  ];
  const bias = call.optional(8);
  const sums = convolve(call, exact(x, xZero), exact(w, ofOutputs(wZero, w)));
  const along = (vector: Tensor) =>
    vector.size > 1 ? ops.reshape(vector, [1, vector.size, ...w.shape.slice(2).map(() => 1)]) : vector;
  const scale = ops.div(ops.mul(xScale.to("float32"), along(wScale).to("float32")), yScale.to("float32"));
  return requantized(bias ? ops.add(sums, along(bias).to("float64")) : sums, scale, yZero);
}

export const quantization: Operators = {
  ConvInteger: convInteger,
  DequantizeLinear: dequantize,
  DynamicQuantizeLinear: quantizeDynamically,
  MatMulInteger: matMulInteger,
  QLinearConv: qLinearConv,
  QLinearMatMul: qLinearMatMul,
  QuantizeLinear: quantize,
};
