/** Normalizations and softmax. */
import * as ops from "../../ops/index.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type Call, type Operators, Results } from "../call.ts";
import { axisOf } from "./axes.ts";

/**
 * A vector along the channels of x. Up to version 8, batch normalization without `spatial` has one value for each
 * element.
 */
const alongChannels = (vector: Tensor, x: Tensor): Tensor =>
  ops.reshape(vector, [1, ...(vector.rank > 1 ? vector.shape : [vector.size, ...x.shape.slice(2).map(() => 1)])]);

function batchNormalization(call: Call): Results {
  const [x, scale, bias, mean, variance] = [0, 1, 2, 3, 4].map((at) => call.tensor(at)) as [
    ...[Tensor, Tensor, Tensor, Tensor, Tensor],
  ];
  const eps = call.attributes.number("epsilon", 1e-5);
  if (!call.attributes.flag("training_mode")) {
    const y = normalized(x, mean, variance, eps);
    return new Results(scaled(y, x, scale, bias));
  }
  const axes = x.shape.flatMap((_, at) => (at === 1 ? [] : [at]));
  const momentum = call.attributes.number("momentum", 0.9);
  const ofBatch = ops.mean(x, { dim: axes });
  const varianceOfBatch = ops.var(x, { dim: axes, correction: 0 });
  const blend = (old: Tensor, fresh: Tensor) =>
    ops.add(ops.mul(old, momentum), ops.mul(fresh, 1 - momentum)).to(old.dtype);
  const y = scaled(normalized(x, ofBatch, varianceOfBatch, eps), x, scale, bias);
  return new Results(y, blend(mean, ofBatch), blend(variance, varianceOfBatch));
}

const normalized = (x: Tensor, mean: Tensor, variance: Tensor, eps: number): Tensor =>
  ops.mul(ops.sub(x, alongChannels(mean, x)), ops.rsqrt(ops.add(alongChannels(variance, x), eps)));

const scaled = (y: Tensor, x: Tensor, scale: Tensor, bias: Tensor): Tensor =>
  ops.add(ops.mul(y, alongChannels(scale, x)), alongChannels(bias, x)).to(x.dtype);

/** Normalizes groups of channels. The scale has one element per channel; up to version 20, one per group. */
function groupNormalization(call: Call): Tensor {
  const [x, scale, bias] = [call.tensor(0), call.tensor(1), call.tensor(2)];
  const groups = call.attributes.number("num_groups");
  const eps = call.attributes.number("epsilon", 1e-5);
  const channels = x.shape[1];
  const spread = (vector: Tensor) =>
    vector.size === channels ? vector : ops.repeatInterleave(vector, channels / groups);
  return scaled(ops.groupNorm(x, groups, { eps }), x, spread(scale), spread(bias));
}

function layerNormalization(call: Call): Results {
  const x = call.tensor(0);
  const axis = axisOf(call.attributes.number("axis", -1), x.rank);
  const dim = x.shape.slice(axis).map((_, at) => axis + at);
  const wide = x.dtype === "float64" ? x : x.to("float32");
  const mean = ops.mean(wide, { dim, keepdim: true });
  const centered = ops.sub(wide, mean);
  const inverse = ops.rsqrt(
    ops.add(ops.mean(ops.square(centered), { dim, keepdim: true }), call.attributes.number("epsilon", 1e-5)),
  );
  const bias = call.optional(2);
  const y = ops.mul(ops.mul(centered, inverse), call.tensor(1).to(wide.dtype));
  return new Results((bias ? ops.add(y, bias.to(wide.dtype)) : y).to(x.dtype), mean, inverse);
}

function rmsNormalization(call: Call): Tensor {
  const x = call.tensor(0);
  const axis = axisOf(call.attributes.number("axis", -1), x.rank);
  const dim = x.shape.slice(axis).map((_, at) => axis + at);
  const wide = x.dtype === "float64" ? x : x.to("float32");
  const square = ops.mean(ops.square(wide), { dim, keepdim: true });
  const y = ops.mul(wide, ops.rsqrt(ops.add(square, call.attributes.number("epsilon", 1e-5))));
  return ops.mul(y.to(x.dtype), call.tensor(1)).to(x.dtype);
}

/** If the norm is zero, the result is zeros, as in ONNX. */
function lpNormalization(call: Call): Tensor {
  const x = call.tensor(0);
  const dim = axisOf(call.attributes.number("axis", -1), x.rank);
  const isOne = call.attributes.number("p", 2) === 1;
  const norm = isOne
    ? ops.sum(ops.abs(x), { dim, keepdim: true })
    : ops.sqrt(ops.sum(ops.square(x), { dim, keepdim: true }));
  return ops.where(ops.eq(norm, 0), ops.zerosLike(x), ops.div(x, norm)).to(x.dtype);
}

function meanVarianceNormalization(call: Call): Tensor {
  const x = call.tensor(0);
  const dim = [...(call.attributes.numbers("axes") ?? [0, 2, 3])];
  const mean = ops.mean(x, { dim, keepdim: true });
  const deviation = ops.sqrt(ops.sub(ops.mean(ops.square(x), { dim, keepdim: true }), ops.square(mean)));
  return ops.div(ops.sub(x, mean), ops.add(deviation, 1e-9));
}

function localResponse(call: Call): Tensor {
  const { attributes } = call;
  return ops.localResponseNorm(call.tensor(0), attributes.number("size"), {
    alpha: attributes.number("alpha", 1e-4),
    beta: attributes.number("beta", 0.75),
    k: attributes.number("bias", 1),
  });
}

/** Up to version 12, the given axis and all later ones are flattened into one. */
function alongAxis(call: Call, compute: (x: Tensor, dim: number) => Tensor): Tensor {
  const x = call.tensor(0);
  const axis = axisOf(call.attributes.number("axis", call.opset < 13 ? 1 : -1), x.rank);
  if (call.opset >= 13) return compute(x, axis);
  const product = (sizes: readonly number[]) => sizes.reduce((result, size) => result * size, 1);
  const flat = ops.reshape(x, [product(x.shape.slice(0, axis)), product(x.shape.slice(axis))]);
  return ops.reshape(compute(flat, 1), x.shape);
}

/** 1 at the first of the largest elements, 0 elsewhere. */
function hardmax(x: Tensor, dim: number): Tensor {
  const places = ops.argmax(x, { dim, keepdim: true });
  const all = ops.reshape(
    ops.arange(x.shape[dim]).to("int64"),
    x.shape.map((size, at) => (at === dim ? size : 1)),
  );
  return ops.eq(places, all).to(x.dtype);
}

export const normalization: Operators = {
  BatchNormalization: batchNormalization,
  GroupNormalization: groupNormalization,
  Hardmax: (call) => alongAxis(call, hardmax),
  InstanceNormalization: (call) => {
    const [x, scale, bias] = [call.tensor(0), call.tensor(1), call.tensor(2)];
    return scaled(ops.groupNorm(x, x.shape[1], { eps: call.attributes.number("epsilon", 1e-5) }), x, scale, bias);
  },
  LRN: localResponse,
  LayerNormalization: layerNormalization,
  LogSoftmax: (call) => alongAxis(call, (x, dim) => ops.logSoftmax(x, { dim })),
  LpNormalization: lpNormalization,
  MeanVarianceNormalization: meanVarianceNormalization,
  RMSNormalization: rmsNormalization,
  Softmax: (call) => alongAxis(call, (x, dim) => ops.softmax(x, { dim })),
};
