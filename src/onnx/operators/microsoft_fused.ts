/** Operators of com.microsoft that onnxruntime's optimizer writes, and earlier forms of the standard's operators. */
import { lastElement } from "../../core/collections.ts";
import * as linalg from "../../linalg/index.ts";
import * as ops from "../../ops/index.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { Call, type Operator, type Operators } from "../call.ts";
import { NodeProblem } from "../errors.ts";
import { attributesOf } from "../graph.ts";
import { keptType } from "../kept_types.ts";
import { axisOf } from "./axes.ts";
import { creation } from "./creation.ts";
import { indexing } from "./indexing.ts";
import { padding } from "./padding.ts";
import { dequantized, quantization, rounded } from "./quantized.ts";
import { reductions } from "./reductions.ts";
import { shapes } from "./shapes.ts";
import { vision } from "./vision.ts";
import { convolve } from "./windows.ts";

type Activation = (x: Tensor, alpha: number, beta: number) => Tensor;

/** The activations by their names in the attribute. */
const activations: Readonly<Record<string, Activation>> = {
  "": (x) => x,
  Clip: (x, min, max) => ops.clamp(x, { min, max }),
  HardSigmoid: (x, alpha, beta) => ops.clamp(ops.add(ops.mul(x, alpha), beta), { min: 0, max: 1 }),
  LeakyRelu: (x, negativeSlope) => ops.where(ops.lt(x, 0), ops.mul(x, negativeSlope), x),
  Relu: (x) => ops.relu(x),
  Sigmoid: (x) => ops.sigmoid(x),
  Softplus: (x) => ops.softplus(x),
  Softsign: (x) => ops.softsign(x),
  Tanh: (x) => ops.tanh(x),
};

/** The parameters of activations that leave them out. */
const defaults: Readonly<Record<string, readonly [alpha: number, beta: number]>> = {
  HardSigmoid: [0.2, 0.5],
  LeakyRelu: [0.01, 0],
};

function activated(call: Call, x: Tensor, given: readonly (number | undefined)[]): Tensor {
  const name = call.attributes.text("activation", "");
  const compute = Object.hasOwn(activations, name) ? activations[name] : undefined;
  if (!compute) throw new NodeProblem(`the activation ${name} is not supported`);
  const [alpha, beta] = defaults[name] ?? [0, 0];
  return compute(x, given[0] ?? alpha, given[1] ?? beta);
}

/** Inputs: x, the weight, a bias, and a tensor that is added before the activation. */
function fusedConv(call: Call): Tensor {
  const sums = convolve(call, call.tensor(0), call.tensor(1), call.optional(2));
  const added = call.optional(3);
  return activated(call, added ? ops.add(sums, added) : sums, call.attributes.numbers("activation_params") ?? []);
}

const fusedGemm = (call: Call): Tensor =>
  activated(
    call,
    reductions["Gemm"](call) as Tensor,
    ["activation_alpha", "activation_beta"].map((name) => call.attributes.number(name, Number.NaN)).map(orNone),
  );

const orNone = (value: number): number | undefined => (Number.isNaN(value) ? undefined : value);

/**
 * Computes a softmax of x plus a bias over `axis` and all later axes. The bias is broadcast over inner or outer axes.
 */
function biasSoftmax(call: Call): Tensor {
  const [x, bias] = [call.tensor(0), call.tensor(1)];
  const axis = axisOf(call.attributes.number("axis", 1), x.rank);
  const isInner = call.attributes.flag("is_inner_broadcast", true);
  const missing = x.rank - bias.rank;
  const inner = [...bias.shape.slice(0, axis), ...new Array<number>(Math.max(missing, 0)).fill(1)];
  const spread = isInner && missing > 0 ? ops.reshape(bias, [...inner, ...bias.shape.slice(axis)]) : bias;
  const sum = ops.add(x, spread);
  return ops.reshape(ops.softmax(ops.reshape(sum, [...x.shape.slice(0, axis), -1]), { dim: -1 }), x.shape);
}

/** The distances between the rows of two matrices. */
function distances(call: Call): Tensor {
  const metric = call.attributes.text("metric", "sqeuclidean");
  if (metric !== "sqeuclidean" && metric !== "euclidean") throw new NodeProblem(`metric ${metric} is not supported`);
  const lengths = ops.cdist(call.tensor(0), call.tensor(1));
  return metric === "euclidean" ? lengths : ops.square(lengths);
}

/** Inputs: a condition, x, its scale and zero point, y, its scale and zero point, those of the result. */
function qLinearWhere(call: Call): Tensor {
  const [x, y] = [1, 4].map((at) => dequantized(call.tensor(at), call.tensor(at + 1), call.optional(at + 2)));
  return rounded(ops.where(call.tensor(0), x, y), call.tensor(7), call.optional(8));
}

/**
 * Takes slices of a tensor that is quantized with a scale and a zero point for each block along an axis. A uint8 tensor
 * holds one 8-bit element in each byte, or two 4-bit elements, adjacent along the last axis.
 */
function gatherBlockQuantized(call: Call): Tensor {
  const [data, scales, zeros] = [call.tensor(0), call.tensor(2), call.optional(3)];
  const { attributes } = call;
  const bits = attributes.number("bits", 4);
  if (bits !== 4 && bits !== 8) throw new NodeProblem(`weights of ${bits} bits are not supported`);
  const isBytes = data.dtype === "uint8" && keptType(data) === undefined;
  const isPacked = isBytes && bits === 4;
  const codes = isPacked ? unpackHalves(data) : data;
  const axis = axisOf(attributes.number("quantize_axis", 1), codes.rank);
  const spread = (x: Tensor) => {
    const repeated = ops.repeatInterleave(x, attributes.number("block_size", 128), { dim: axis });
    return ops.narrow(repeated, axis, 0, codes.shape[axis]).to("float32");
  };
  const given = zeros && isPacked ? ops.narrow(unpackHalves(zeros), -1, 0, lastElement(scales.shape)) : zeros;
  const zero = given ? spread(given) : isBytes ? 2 ** (bits - 1) : 0;
  const values = ops.mul(ops.sub(codes.to("float32"), zero), spread(scales)).to(scales.dtype);
  const inner = attributesOf([["axis", attributes.number("gather_axis", 0)]]);
  return indexing["Gather"](new Call([values, call.tensor(1)], inner, call)) as Tensor;
}

/** The low half of a byte comes first. */
function unpackHalves(packed: Tensor): Tensor {
  const wide = packed.to("int32");
  const halves = ops.stack([ops.bitwiseAnd(wide, 15), ops.bitwiseRightShift(wide, 4)], { dim: -1 });
  return ops.reshape(halves, [...packed.shape.slice(0, -1), 2 * lastElement(packed.shape)]);
}

/** An operator of the standard, as in an operator set. */
const standard =
  (operators: Operators, name: string, opset: number): Operator =>
  (call) =>
    operators[name](new Call(call.inputs, call.attributes, { opset, results: call.results, run: call.run }));

export const microsoftFused: Operators = {
  BiasSoftmax: biasSoftmax,
  CDist: distances,
  DequantizeLinear: standard(quantization, "DequantizeLinear", 21),
  ExpandDims: (call) => ops.unsqueeze(call.tensor(0), call.number(1)!),
  FusedConv: fusedConv,
  FusedGemm: fusedGemm,
  GatherBlockQuantized: gatherBlockQuantized,
  GatherND: standard(indexing, "GatherND", 13),
  GridSample: standard(vision, "GridSample", 16),
  Inverse: (call) => linalg.inv(call.tensor(0)),
  Pad: standard(padding, "Pad", 13),
  QLinearWhere: qLinearWhere,
  QuantizeLinear: standard(quantization, "QuantizeLinear", 21),
  Range: standard(creation, "Range", 11),
  Trilu: standard(shapes, "Trilu", 14),
};
