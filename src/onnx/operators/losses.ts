/** Losses, random numbers, and signals. */
import { tensor } from "../../ops/creation/tensor.ts";
import * as ops from "../../ops/index.ts";
import { Generator } from "../../random/generator.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type Call, type Operators, Results } from "../call.ts";
import { castTo } from "../cast.ts";
import { NodeProblem } from "../errors.ts";
import { listOf } from "./axes.ts";

/** −weight[target] · x[target], reduced as the standard says: a mean is weighted. */
function likelihoodLoss(call: Call, logProbabilities: Tensor): Tensor {
  const target = call.tensor(1);
  const weight = call.optional(2);
  const reduction = call.attributes.text("reduction", "mean");
  if (reduction !== "mean" && reduction !== "sum" && reduction !== "none")
    throw new NodeProblem(`attribute reduction: expected mean, sum or none, got ${reduction}`);
  const ignored = call.attributes.has("ignore_index") ? call.attributes.number("ignore_index") : undefined;
  const isUsed = ignored === undefined ? undefined : ops.ne(target, ignored);
  const safe = isUsed ? ops.where(isUsed, target, ops.zerosLike(target)) : target;
  const chosen = ops.squeeze(ops.gather(logProbabilities, 1, ops.unsqueeze(safe, 1).to("int64")), 1);
  const classes = weight
    ? ops.reshape(ops.indexSelect(weight, 0, ops.flatten(safe).to("int64")), safe.shape)
    : undefined;
  const ones = ops.ones(target.shape, { dtype: logProbabilities.dtype });
  const weights = isUsed ? ops.where(isUsed, classes ?? ones, ops.zerosLike(ones)) : (classes ?? ones);
  const losses = ops.mul(ops.neg(chosen), weights);
  if (reduction === "none") return losses;
  return reduction === "sum" ? ops.sum(losses) : ops.div(ops.sum(losses), ops.sum(weights));
}

function crossEntropy(call: Call): Results {
  const logProbabilities = ops.logSoftmax(call.tensor(0), { dim: 1 });
  return new Results(likelihoodLoss(call, logProbabilities), logProbabilities);
}

/** A generator from the seed attribute, which is a float; without that attribute, the library's generator. */
const generatorOf = (call: Call): { generator: Generator } | Record<string, never> =>
  call.attributes.has("seed") ? { generator: new Generator(Math.abs(Math.trunc(call.attributes.number("seed")))) } : {};

/** Returns random numbers of a shape: drawn in float32, then cast to the type in `dtype`. */
function random(call: Call, shape: readonly number[], kind: "normal" | "uniform", byDefault: number): Tensor {
  const number = (name: string, value: number) => call.attributes.number(name, value);
  const type = number("dtype", byDefault);
  if (kind === "normal") {
    const z = ops.randn(shape, generatorOf(call));
    return castTo(ops.add(ops.mul(z, number("scale", 1)), number("mean", 0)), type);
  }
  const [low, high] = [number("low", 0), number("high", 1)];
  return castTo(ops.add(ops.mul(ops.rand(shape, generatorOf(call)), high - low), low), type);
}

const onnxNumbers: Readonly<Record<string, number>> = { float32: 1, float64: 11, float16: 10, bfloat16: 16 };
const numberOf = (x: Tensor): number => onnxNumbers[x.dtype] ?? 1;

const bernoulli = (call: Call): Tensor => {
  const x = call.tensor(0);
  const drawn = ops.lt(ops.rand(x.shape, generatorOf(call)), x.to("float32"));
  return call.attributes.has("dtype") ? castTo(drawn, call.attributes.number("dtype")) : drawn.to(x.dtype);
};

/** The inputs are logarithms of probabilities that need not add up to one. */
function multinomial(call: Call): Tensor {
  const weights = ops.softmax(call.tensor(0).to("float32"), { dim: 1 });
  const drawn = ops.multinomial(weights, call.attributes.number("sample_size", 1), {
    replacement: true,
    ...generatorOf(call),
  });
  return castTo(drawn, call.attributes.number("dtype", 6));
}

/** Σ aₖ cos(2πkn / N), where N is one less for a symmetric window. */
const window =
  (coefficients: readonly number[]) =>
  (call: Call): Tensor => {
    const size = call.number(0)!;
    const length = call.attributes.flag("periodic", true) ? size : size - 1;
    const values = listOf(size, (at) =>
      coefficients.reduce((sum, value, k) => sum + value * Math.cos((2 * Math.PI * k * at) / length), 0),
    );
    return castTo(tensor(values, { dtype: "float64", shape: [size] }), call.attributes.number("output_datatype", 1));
  };

/** Triangular filters on the mel scale, from bins of a spectrum. */
function melWeights(call: Call): Tensor {
  const [mels, length, rate, low, high] = [0, 1, 2, 3, 4].map((at) => call.number(at)!) as [
    ...[number, number, number, number, number],
  ];
  const bins = Math.floor(length / 2) + 1;
  const toMel = (hertz: number) => 2595 * Math.log10(1 + hertz / 700);
  const step = (toMel(high) - toMel(low)) / (mels + 2);
  const points = listOf(mels + 2, (at) => {
    const hertz = 700 * (10 ** ((at * step + toMel(low)) / 2595) - 1);
    return Math.floor(((length + 1) * hertz) / rate);
  });
  const weights = listOf(bins * mels, () => 0);
  for (let mel = 0; mel < mels; mel++) {
    const [start, center, end] = [points[mel], points[mel + 1], points[mel + 2]];
    if (center === start && center < bins) weights[center * mels + mel] = 1;
    for (let bin = start; bin <= Math.min(center, bins - 1) && center > start; bin++)
      weights[bin * mels + mel] = (bin - start) / (center - start);
    for (let bin = center; bin < Math.min(end, bins); bin++) weights[bin * mels + mel] = (end - bin) / (end - center);
  }
  return castTo(
    tensor(weights, { dtype: "float64", shape: [bins, mels] }),
    call.attributes.number("output_datatype", 1),
  );
}

export const losses: Operators = {
  NegativeLogLikelihoodLoss: (call) => likelihoodLoss(call, call.tensor(0)),
  SoftmaxCrossEntropyLoss: crossEntropy,
};

export const randomNumbers: Operators = {
  Bernoulli: bernoulli,
  Multinomial: multinomial,
  RandomNormal: (call) => random(call, call.attributes.numbers("shape") ?? [], "normal", 1),
  RandomNormalLike: (call) => random(call, call.tensor(0).shape, "normal", numberOf(call.tensor(0))),
  RandomUniform: (call) => random(call, call.attributes.numbers("shape") ?? [], "uniform", 1),
  RandomUniformLike: (call) => random(call, call.tensor(0).shape, "uniform", numberOf(call.tensor(0))),
};

export const signals: Operators = {
  BlackmanWindow: window([0.42, -0.5, 0.08]),
  HammingWindow: window([25 / 46, -21 / 46]),
  HannWindow: window([0.5, -0.5]),
  MelWeightMatrix: melWeights,
};
