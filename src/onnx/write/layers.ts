/** Writers of layers: convolutions, poolings, normalizations, attention and recurrent layers. */

import type { CapturedCall } from "../../backend/capture.ts";
import { lastElement } from "../../core/collections.ts";
import type { AttentionAttributes } from "../../ops/attention/problem.ts";
import type { ConvolutionAttributes } from "../../ops/convolution/primitive.ts";
import type { NormalizationAttributes } from "../../ops/normalization/primitive.ts";
import { type Named, namedTensors } from "../../ops/normalization/problem.ts";
import { ADAPTIVE, type PoolingAttributes } from "../../ops/pooling/primitive.ts";
import type { AxisMap } from "../../ops/pooling/resample.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { elementTypes } from "./encode.ts";
import type { Recorder } from "./recorder.ts";
import { Unwritable } from "./unwritable.ts";
import type { Writer, Writers } from "./writer.ts";

/**
 * Returns the padding after each axis with which there are `output` windows: the same as before the axis if that is
 * enough.
 */
function padsAfter(
  axes: number,
  {
    input,
    output,
    span,
    stride,
    before,
  }: Readonly<Record<"input" | "output" | "span" | "stride" | "before", readonly number[]>>,
): number[] {
  return Array.from({ length: axes }, (_, at) => {
    const isEven = Math.floor((input[at] + 2 * before[at] - span[at]) / stride[at]) + 1 === output[at];
    return isEven ? before[at] : (output[at] - 1) * stride[at] + span[at] - input[at] - before[at];
  });
}

const spansOf = (kernel: readonly number[], dilation: readonly number[]): number[] =>
  kernel.map((size, at) => (size - 1) * dilation[at] + 1);

const convolution: Writer = (recorder, { inputs: [x, weight], attributes }) => {
  const rank = x.rank - 2;
  const last = <T>(list: readonly T[]): readonly T[] => list.slice(-rank);
  const { groups, ...all } = attributes as ConvolutionAttributes;
  const [input, output, kernel, stride] = [all.input, all.output, all.kernel, all.stride].map(last);
  const [dilation, before] = [all.dilation, all.before].map(last);
  const span = spansOf(kernel, dilation);
  const after = padsAfter(rank, { input: input, output: output, span, stride: stride, before: before });
  if ([...before, ...after].some((size) => size < 0)) throw new Unwritable("a convolution that crops");
  return recorder.node("Conv", [recorder.name(x), recorder.name(weight)], {
    group: groups,
    kernel_shape: kernel,
    strides: stride,
    dilations: dilation,
    pads: [...before, ...after],
  });
};

/** Writes the adjoint of a convolution, with the convolution's attributes. The sizes of the result are `input`. */
const transposedConvolution: Writer = (recorder, { inputs: [y, weight], attributes }) => {
  const rank = y.rank - 2;
  const last = <T>(list: readonly T[]): readonly T[] => list.slice(-rank);
  const { groups, ...all } = attributes as ConvolutionAttributes;
  const [input, output, kernel, stride] = [all.input, all.output, all.kernel, all.stride].map(last);
  const [dilation, before] = [all.dilation, all.before].map(last);
  const span = spansOf(kernel, dilation);
  const more = input.map((size, at) => size - ((output[at] - 1) * stride[at] + span[at] - 2 * before[at]));
  if (more.some((size) => size < 0)) throw new Unwritable("a transposed convolution that crops its end");
  return recorder.node("ConvTranspose", [recorder.name(y), recorder.name(weight)], {
    group: groups,
    kernel_shape: kernel,
    strides: stride,
    dilations: dilation,
    output_padding: more,
    pads: [...before, ...before],
  });
};

const maxPool: Writer = (recorder, { inputs: [x], outputs: [y, indices], attributes }) => {
  const all = attributes as PoolingAttributes;
  if (all.kernelSize.includes(ADAPTIVE)) return [adaptiveMaxPool(recorder, x, y, all)];
  const used = all.kernelSize.map((_, at) => at).filter((at) => all.input[at] !== 1 || all.kernelSize[at] !== 1);
  const rank = Math.max(used.length === 0 ? 1 : 3 - Math.min(...used), 1);
  const last = (list: readonly number[]) => list.slice(-rank);
  const [input, output, kernel, stride] = [all.input, all.output, all.kernelSize, all.stride].map(last);
  const [dilation, before] = [all.dilation, all.before].map(last);
  const span = spansOf(kernel, dilation);
  const after = padsAfter(rank, { input: input, output: output, span, stride: stride, before: before });
  const planes = recorder.node("Reshape", [recorder.name(x), { sizes: [all.planes, 1, ...input] }]);
  const given = { kernel_shape: kernel, strides: stride, dilations: dilation, pads: [...before, ...after] };
  const [pooled, places] = recorder.nodeOf("MaxPool", [planes], given, indices ? 2 : 1);
  const result = recorder.node("Reshape", [pooled, { sizes: y.shape }]);
  if (!indices) return [result];
  // indices in the standard count from the first plane, indices in Orchard from the window's plane
  const inPlane = recorder.node("Mod", [places, { sizes: [input.reduce((product, size) => product * size, 1)] }]);
  const cast =
    indices.dtype === "int64" ? inPlane : recorder.node("Cast", [inPlane], { to: elementTypes[indices.dtype] });
  return [result, recorder.node("Reshape", [cast, { sizes: indices.shape }])];
};

/**
 * Window p of n has the elements ⌊p size / n⌋ to ⌈(p + 1) size / n⌉ − 1, so the result is a maximum of slices along
 * each axis.
 */
function adaptiveMaxPool(
  recorder: Recorder,
  x: Tensor,
  y: Tensor,
  { planes, input, output }: PoolingAttributes,
): string {
  let name = recorder.node("Reshape", [recorder.name(x), { sizes: [planes, ...input] }]);
  for (const [at, size] of input.entries()) {
    const count = output[at];
    const windows = Array.from({ length: count }, (_, p) => {
      const [start, end] = [Math.floor((p * size) / count), Math.ceil(((p + 1) * size) / count)];
      return { start, end };
    });
    if (windows.every(({ start, end }, p) => start === p && end === p + 1) && count === size) continue;
    const length = Math.max(...windows.map(({ start, end }) => end - start));
    const places = windows.flatMap(({ start, end }) => Array.from({ length }, (_, k) => Math.min(start + k, end - 1)));
    const parts = recorder.node("Gather", [name, recorder.numbers(places, [count, length], "int64")], { axis: at + 1 });
    name = recorder.node("ReduceMax", [parts, { sizes: [at + 2] }], { keepdims: 0 });
  }
  return recorder.node("Reshape", [name, { sizes: y.shape }]);
}

/** Resampling is linear in each axis, so it is a product with a matrix of each axis that changes. */
const resample: Writer = (recorder, { inputs: [x], outputs: [y], attributes }) => {
  const { planes, axes } = attributes as { planes: number; axes: readonly AxisMap[] };
  const { dtype } = x;
  let shape = [planes, ...axes.map(({ input }) => input)];
  let name = recorder.node("Reshape", [recorder.name(x), { sizes: shape }]);
  for (const [at, map] of axes.entries()) {
    const matrix = matrixOf(map);
    const [rows, columns] = [map.input, map.starts.length];
    if (rows === columns && matrix.every((value, place) => value === Number(place % (columns + 1) === 0))) continue;
    const order = [0, 1, 2, 3].map((axis) => (axis === at + 1 ? 3 : axis === 3 ? at + 1 : axis));
    const turned = at === 2 ? name : recorder.node("Transpose", [name], { perm: order });
    const product = recorder.node("MatMul", [turned, recorder.numbers(matrix, [rows, columns], dtype)]);
    name = at === 2 ? product : recorder.node("Transpose", [product], { perm: order });
    shape = shape.with(at + 1, columns);
  }
  return recorder.node("Reshape", [name, { sizes: y.shape }]);
};

/** The matrix [input, output] of a map. */
function matrixOf({ input, starts, lengths, weights, divisors, factors }: AxisMap): number[] {
  const matrix = new Array<number>(input * starts.length).fill(0);
  let at = 0;
  for (const [column, start] of starts.entries())
    for (let k = 0; k < lengths[column]; k++, at++)
      matrix[(start + k) * starts.length + column] =
        ((factors?.[start + k] ?? 1) * (weights?.[at] ?? 1)) / (divisors?.[column] ?? 1);
  return matrix;
}

/** Returns the operands of a call by name. `Always` are the names that every call has. */
const named = <Always extends string>({ inputs, attributes }: CapturedCall): Named<string> & Record<Always, Tensor> =>
  namedTensors((attributes as { inputs: readonly string[] }).inputs, inputs);

/** Computes in float32 if the weights have another dtype. */
const normalization: Writer = (recorder, call) => {
  const { isCentered, eps, outputs } = call.attributes as NormalizationAttributes;
  const { x, residual, weight, bias } = named<"x">(call);
  const isMixed = [weight, bias].some((each) => each !== undefined && each.dtype !== x.dtype);
  const dtype = isMixed ? "float32" : x.dtype;
  const cast = (name: string, from: DType, to: DType): string =>
    from === to ? name : recorder.node("Cast", [name], { to: elementTypes[to] });
  const sum = residual ? recorder.node("Add", [recorder.name(x), recorder.name(residual)]) : recorder.name(x);
  const given = (each: Tensor) => cast(recorder.name(each), each.dtype, dtype);
  const ones = () => recorder.numbers(new Array<number>(lastElement(x.shape)).fill(1), [lastElement(x.shape)], dtype);
  const scale = weight ? given(weight) : ones();
  const from = cast(sum, x.dtype, dtype);
  const inputs = [from, scale, ...(bias ? [given(bias)] : [])];
  const result = isCentered
    ? recorder.node("LayerNormalization", inputs, { axis: -1, epsilon: { float: eps } })
    : rootMeanSquare(recorder, from, scale, recorder.scalar(eps, dtype));
  return outputs.map((name) => ({ out: cast(result, dtype, x.dtype), sum })[name as string]);
};

function rootMeanSquare(recorder: Recorder, x: string, scale: string, eps: string): string {
  const mean = recorder.node("ReduceMean", [recorder.node("Mul", [x, x]), { sizes: [-1] }], { keepdims: 1 });
  const root = recorder.node("Sqrt", [recorder.node("Add", [mean, eps])]);
  return recorder.node("Mul", [recorder.node("Div", [x, root]), scale]);
}

const batchNorm: Writer = (recorder, call) => {
  const { eps, outputs } = call.attributes as { eps: number; outputs: readonly string[] };
  const { x, weight, bias, mean, variance } = named<"x">(call);
  const { dtype } = x;
  const channels = x.shape[1];
  if (!mean || !variance) {
    const perChannel = (tensor: Tensor) => {
      const shape = x.shape.map((_, axis) => (axis === 1 ? channels : 1));
      return recorder.node("Reshape", [recorder.name(tensor), { sizes: shape }]);
    };
    const { plain, ...statistics } = standardized(recorder, x, eps);
    const scaled = weight ? recorder.node("Mul", [plain, perChannel(weight)]) : plain;
    const shifted = bias ? recorder.node("Add", [scaled, perChannel(bias)]) : scaled;
    return outputs.map((name) => {
      if (name === "out") return shifted;
      const statistic = name === "mean" ? statistics.mean : statistics.variance;
      return recorder.node("Reshape", [statistic, { sizes: [channels] }]);
    });
  }
  const filled = (value: number) => recorder.numbers(new Array<number>(channels).fill(value), [channels], dtype);
  const [scale, shift] = [weight ? recorder.name(weight) : filled(1), bias ? recorder.name(bias) : filled(0)];
  const inputs = [recorder.name(x), scale, shift, recorder.name(mean), recorder.name(variance)];
  return [recorder.node("BatchNormalization", inputs, { epsilon: { float: eps } })];
};

/** Subtracts the mean of each channel, and divides by the standard deviation. */
function standardized(recorder: Recorder, x: Tensor, eps: number): Record<"plain" | "mean" | "variance", string> {
  const axes = x.shape.flatMap((_, axis) => (axis === 1 ? [] : [axis]));
  const meanOf = (name: string) => recorder.node("ReduceMean", [name, { sizes: axes }], { keepdims: 1 });
  const name = recorder.name(x);
  const mean = meanOf(name);
  const centered = recorder.node("Sub", [name, mean]);
  const variance = meanOf(recorder.node("Mul", [centered, centered]));
  const deviation = recorder.node("Sqrt", [recorder.node("Add", [variance, recorder.scalar(eps, x.dtype)])]);
  return { plain: recorder.node("Div", [centered, deviation]), mean, variance };
}

/** softmax(scale q kᵀ + bias) v, with −∞ for masked keys. */
const attention: Writer = (recorder, call) => {
  const { scale, softcap, band, alignment, dropout, packed } = call.attributes as AttentionAttributes;
  const { q, k, v, bias, mask, ...others } = named<"q" | "k" | "v">(call);
  const isPlain = !dropout && !packed && Object.keys(others).length === 0;
  if (!isPlain) throw new Unwritable("attention with dropout, sinks, slopes or packed sequences");
  const { dtype } = q;
  const keys = recorder.node("Transpose", [ofEachHead(recorder, k, q)], { perm: [0, 1, 3, 2] });
  const products = recorder.node("MatMul", [recorder.name(q), keys]);
  let scores = recorder.node("Mul", [products, recorder.scalar(scale, dtype)]);
  if (softcap !== undefined) {
    const cap = recorder.scalar(softcap, dtype);
    scores = recorder.node("Mul", [recorder.node("Tanh", [recorder.node("Div", [scores, cap])]), cap]);
  }
  if (bias) scores = recorder.node("Add", [scores, recorder.broadcastName(bias)]);
  const none = recorder.scalar(-Infinity, dtype);
  if (mask) scores = recorder.node("Where", [recorder.broadcastName(mask), scores, none]);
  if (band) {
    const [queries, length] = [q.shape[2], k.shape[2]];
    const shift = alignment === "top-left" ? 0 : length - queries;
    const limited = (upper: boolean, distance: number): void => {
      if (distance === Infinity) return;
      const ones = recorder.node("Expand", [recorder.scalar(1, "int32"), { sizes: [queries, length] }]);
      const diagonal = recorder.numbers([upper ? shift - distance : shift + distance], [], "int64");
      const kept = recorder.node("Trilu", [ones, diagonal], { upper: upper ? 1 : 0 });
      scores = recorder.node("Where", [recorder.node("Cast", [kept], { to: elementTypes.bool }), scores, none]);
    };
    limited(false, band.right);
    limited(true, band.left);
  }
  const shares = recorder.node("Softmax", [scores], { axis: -1 });
  return [recorder.node("MatMul", [shares, ofEachHead(recorder, v, q)])];
};

/** Repeats each head of keys or values for the heads of queries that share it. */
function ofEachHead(recorder: Recorder, x: Tensor, q: Tensor): string {
  const [batch, heads, length, width] = x.shape;
  const count = q.shape[1] / heads;
  if (count === 1) return recorder.name(x);
  const apart = recorder.node("Unsqueeze", [recorder.name(x), recorder.numbers([2], [1], "int64")]);
  const repeated = recorder.node("Expand", [apart, { sizes: [batch, heads, count, length, width] }]);
  return recorder.node("Reshape", [repeated, { sizes: [batch, heads * count, length, width] }]);
}

/** The standard's order of gates, as indices into the kernel's order. */
const gateOrders = { lstm: [0, 3, 1, 2], gru: [1, 0, 2], tanh: [0], relu: [0] } as const;
const operators = { lstm: "LSTM", gru: "GRU", tanh: "RNN", relu: "RNN" } as const;

/** The inputs are already multiplied by their weights, so the node's input weights only reorder the gates. */
const recurrent: Writer = (recorder, { inputs, outputs: [y], attributes }) => {
  const { kind, isReversed, hasBias } = attributes as {
    kind: keyof typeof gateOrders;
    isReversed: boolean;
    hasBias: boolean;
  };
  const [products, weight, hidden, ...others] = inputs;
  const size = weight.shape[1];
  const order = gateOrders[kind];
  const rows = order.flatMap((gate) => Array.from({ length: size }, (_, at) => gate * size + at));
  const width = rows.length;
  const places = recorder.numbers(rows, [width], "int64");
  const identity = new Array<number>(width * width).fill(0);
  for (const [at, row] of rows.entries()) identity[at * width + row] = 1;
  const ordered = (name: string) => recorder.node("Gather", [name, places], { axis: 0 });
  const withDirection = (name: string) => recorder.node("Unsqueeze", [name, { sizes: [0] }]);
  const w = recorder.numbers(identity, [1, width, width], products.dtype);
  const r = withDirection(ordered(recorder.name(weight)));
  const zeros = () => recorder.numbers(new Array<number>(width).fill(0), [width], products.dtype);
  const bias = hasBias
    ? [withDirection(recorder.node("Concat", [zeros(), ordered(recorder.name(others[0]))], { axis: 0 }))]
    : [""];
  const cell = kind === "lstm" ? [withDirection(recorder.name(lastElement(others)))] : [];
  const states = [withDirection(recorder.name(hidden)), ...cell];
  const [all, , last] = recorder.nodeOf(
    operators[kind],
    [recorder.name(products), w, r, ...bias, "", ...states],
    {
      hidden_size: size,
      direction: isReversed ? "reverse" : "forward",
      ...(kind === "gru" ? { linear_before_reset: 1 } : {}),
      ...(kind === "relu" ? { activations: ["Relu"] } : {}),
    },
    kind === "lstm" ? 3 : 2,
  );
  const output = recorder.node("Reshape", [all, { sizes: y.shape }]);
  return kind === "lstm" ? [output, recorder.node("Squeeze", [last, { sizes: [0] }])] : [output];
};

export const layers: Writers = {
  convolution,
  convolutionTransposed: transposedConvolution,
  maxPool,
  resample,
  batchNorm,
  recurrent,
  normalizationForward: normalization,
  attentionForward: attention,
};
