/** The names of options: the result of a call with an option, compared with the same call without. */
import {
  addRmsNorm,
  batchNorm,
  cosineEmbeddingLoss,
  cosineSimilarity,
  cumulativeTrapezoid,
  diff,
  flashAttention,
  gammainc,
  gammaincc,
  grad,
  gradient,
  gridSample,
  layerNorm,
  manualSeed,
  multilabelMarginLoss,
  multiMarginLoss,
  pad,
  pairwiseDistance,
  polygamma,
  quantile,
  rmsNorm,
  type Tensor,
  tensor,
  trapezoid,
  zeta,
} from "../../../src/index.ts";
import { attentionOptions } from "../../../src/ops/attention/primitive.ts";
import { activationNames, type Finish, finished, noFinish } from "../../../src/ops/convolution/finish.ts";
import { functions as rowFunctions } from "../../../src/ops/distance/row_pairs.cpu.ts";
import { gammaPairs } from "../../../src/ops/elementwise/incomplete_gamma.cpu.ts";
import { padModes } from "../../../src/ops/join/pad.cpu.ts";
import { marginLosses } from "../../../src/ops/loss/margin.cpu.ts";
import { batchNormOptions } from "../../../src/ops/normalization/batch_norm_primitive.ts";
import { normalizationOptions } from "../../../src/ops/normalization/primitive.ts";
import { borders, modes } from "../../../src/ops/picture/grid_sample.cpu.ts";
import { interpolations } from "../../../src/ops/reduction/order.cpu.ts";
import { functions as neighborFunctions } from "../../../src/ops/scan/trapezoid.cpu.ts";
import { drawn, shaped, variable, type Walk } from "./walk.ts";

/** Σ results · factors. */
const weighted = (label: string, results: readonly Tensor[]): Tensor =>
  results
    .map((result, at) => result.mul(drawn(`${label} ${at}`, result.shape, { low: 0.5, high: 2 })).sum() as Tensor)
    .reduce((total, own) => total.add(own) as Tensor);

const spread = { low: -2, high: 2 } as const;

// ---------------------------------------------------------------- attention

const SHAPE = [1, 2, 6, 8] as const;

function attention(name: string, [q, k, v]: readonly Tensor[]): Tensor[] {
  const own = [q, k, v].map(variable);
  const lists = [shaped([6, 6], drawnMask(), "bool"), drawn("bias", [2, 6, 6], spread), drawn("sinks", [2], spread)];
  const [mask, bias, sinks] = lists as [Tensor<"bool">, Tensor, Tensor];
  manualSeed(5);
  // Rows are not contiguous in memory, except for `quads`.
  const inputs = name === "quads" ? own : own.map((operand) => strided(operand));
  const options = {
    mask: { mask },
    bias: { bias },
    sinks: { sinks },
    slopes: { alibi: [0.5, 0.1] },
    softcap: { softcap: 1.5 },
    band: { window: 1 },
    dropout: { dropout: 0.4 },
    packed: { cuSeqlens: [0, 2, 6] },
  }[name];
  const withSums = name === "gradLogSumExp" || name === "logSumExp";
  const results = flashAttention(inputs[0], inputs[1], inputs[2], { ...options, returnLogSumExp: true });
  const used = name === "gradLogSumExp" ? [results.out, results.logSumExp] : [results.out];
  const gradients = grad(weighted("attention", used as Tensor[]), own);
  return [...gradients, results.out as Tensor, ...(withSums ? [results.logSumExp as Tensor] : [])];
}

const drawnMask = (): number[] => Array.from({ length: 36 }, (_, at) => Number(at % 6 === 0 || at % 5 !== 2));
const strided = (x: Tensor): Tensor => x.transpose(2, 3).contiguous().transpose(2, 3) as Tensor;

export const attentionOption: readonly Walk[] = [
  {
    names: attentionOptions.names,
    operands: () => ["q", "k", "v"].map((label) => drawn(label, SHAPE, spread)),
    compute: attention,
    base: (operands) => attention("none", operands),
    // The layout of operands and additional results do not change a result.
    same: [["logSumExp", "quads"]],
    unchanged: ["logSumExp", "quads"],
  },
];

// ---------------------------------------------------------------- normalization

const normalization = (name: string, [x, residual, weight, bias]: readonly Tensor[]): Tensor[] => {
  const own = { x: variable(x), weight: variable(weight), bias: variable(bias) };
  const plain = () => rmsNorm(own.x) as Tensor;
  const scaled = () => rmsNorm(own.x, { weight: own.weight }) as Tensor;
  const gradient = (out: Tensor, of: Tensor) => grad(weighted("normalization", [out]), [of]);
  switch (name) {
    case "mean":
      return [layerNorm(own.x) as Tensor];
    case "residual":
      return [addRmsNorm(own.x, residual).out as Tensor];
    case "weight":
      return [scaled()];
    case "bias":
      return [layerNorm(own.x, { bias: own.bias }) as Tensor];
    case "gradSum": {
      const { out, sum } = addRmsNorm(own.x, residual);
      return grad(weighted("normalization", [out as Tensor, sum as Tensor]), [own.x]);
    }
    case "gradX":
      return gradient(plain(), own.x);
    case "gradWeight":
      return gradient(scaled(), own.weight);
    case "gradBias":
      return gradient(layerNorm(own.x, { bias: own.bias }) as Tensor, own.bias);
    default:
      return [plain()];
  }
};

export const normalizationOption: readonly Walk[] = [
  {
    names: normalizationOptions.names,
    operands: () => [
      drawn("x", [5, 12], { low: -1, high: 3 }),
      drawn("residual", [5, 12], spread),
      drawn("weight", [12], { low: 0.5, high: 2 }),
      drawn("bias", [12], spread),
    ],
    compute: normalization,
    base: (operands) => normalization("none", operands),
  },
];

const channels = (name: string, [x, weight, bias]: readonly Tensor[]): Tensor[] => {
  const own = { x: variable(x), weight: variable(weight), bias: variable(bias) };
  const statistics = { runningMean: tensor([0.5, -1, 2]), runningVar: tensor([2, 0.5, 3]) };
  const training = true;
  const gradient = (out: Tensor, of: Tensor) => grad(weighted("channels", [out]), [of]);
  switch (name) {
    case "weight":
      return [batchNorm(own.x, { training, weight: own.weight }) as Tensor];
    case "bias":
      return [batchNorm(own.x, { training, bias: own.bias }) as Tensor];
    case "given":
      return [batchNorm(own.x, statistics) as Tensor];
    case "gradX":
      return gradient(batchNorm(own.x, { training }) as Tensor, own.x);
    case "gradWeight":
      return gradient(batchNorm(own.x, { training, weight: own.weight }) as Tensor, own.weight);
    case "gradBias":
      return gradient(batchNorm(own.x, { training, bias: own.bias }) as Tensor, own.bias);
    default:
      return [batchNorm(own.x, { training }) as Tensor];
  }
};

export const batchNormOption: readonly Walk[] = [
  {
    names: batchNormOptions.names,
    operands: () => [
      drawn("x", [4, 3, 7], { low: -1, high: 3 }),
      drawn("weight", [3], { low: 0.5, high: 2 }),
      drawn("bias", [3], spread),
    ],
    base: (operands) => channels("none", operands),
    compute: channels,
  },
];

// ---------------------------------------------------------------- after a convolution

export const finishActivation: readonly Walk[] = [
  {
    names: activationNames.names,
    operands: () => [drawn("finish", [2, 3, 40], { low: -6, high: 6 })],
    base: ([y]) => [y],
    // The kernel writes its result over the operand.
    compute: (name, [y]) => {
      const finish = { ...noFinish, activation: name as Finish["activation"], alpha: 0.2, beta: 0.7 };
      return finished(y.clone() as Tensor, undefined, undefined, finish);
    },
    unchanged: ["none"],
  },
];

// ---------------------------------------------------------------- rows of scores and pairs of rows

export const rowPair: readonly Walk[] = [
  {
    names: rowFunctions.names,
    operands: () => [drawn("first", [6, 5], spread), drawn("second", [6, 5], spread)],
    compute: (name, [a, b]) =>
      name === "distance"
        ? pairwiseDistance(a, b)
        : name === "similarity"
          ? cosineSimilarity(a, b)
          : cosineEmbeddingLoss(a, b, shaped([6], [1, -1, 1, 1, -1, 1]), { reduction: "none" }),
  },
];

const neighborFormulas = {
  differences: (x: Tensor) => diff(x),
  integral: (x: Tensor) => trapezoid(x),
  integrals: (x: Tensor) => cumulativeTrapezoid(x),
  slopes: (x: Tensor) => gradient(x, { dim: -1 }),
};

export const neighbors: readonly Walk[] = [
  {
    names: neighborFunctions.names,
    operands: () => [drawn("samples", [6, 5], spread)],
    compute: (name, [x]) => neighborFormulas[name as keyof typeof neighborFormulas](x),
  },
];

const gammaFunctions = {
  lower: gammainc,
  upper: gammaincc,
  zeta,
  polygamma: (_: Tensor, x: Tensor) => polygamma(2, x),
};

export const gammaPair: readonly Walk[] = [
  {
    names: gammaPairs.names,
    operands: () => [drawn("shapes", [7], { low: 1.1, high: 4 }), drawn("places", [7], { low: 1.1, high: 4 })],
    compute: (name, [a, x]) => gammaFunctions[name as keyof typeof gammaFunctions](a, x),
  },
];

export const marginLoss: readonly Walk[] = [
  {
    names: marginLosses.names,
    operands: () => [drawn("scores", [4, 5], spread)],
    compute: (name, [x]) =>
      name === "multiMargin"
        ? multiMarginLoss(x, shaped([4], [1, 0, 4, 2], "int64") as Tensor<"int64">, { reduction: "none" })
        : multilabelMarginLoss(x, shaped([4, 5], labels, "int64") as Tensor<"int64">, { reduction: "none" }),
  },
];

const labels = [1, 3, -1, 0, 0, 0, -1, 0, 0, 0, 4, 2, 1, -1, 0, 2, 3, -1, 0, 0];

export const quantileInterpolation: readonly Walk[] = [
  {
    names: interpolations.names,
    operands: () => [drawn("line", [3, 8], spread)],
    compute: (name, [x]) => quantile(x, [0.3, 0.55, 0.9], { dim: 1, interpolation: name as "linear" }),
  },
];

// ---------------------------------------------------------------- borders

export const gridBorder: readonly Walk[] = [
  {
    names: borders.names,
    operands: () => [drawn("picture", [1, 2, 4, 5], spread), drawn("grid", [1, 3, 3, 2], spread)],
    compute: (name, [x, grid]) => gridSample(x, grid, { paddingMode: name as "zeros" }),
  },
];

export const gridMode: readonly Walk[] = [
  {
    names: modes.names,
    operands: () => [drawn("picture", [1, 2, 4, 5], spread), drawn("grid", [1, 3, 3, 2], spread)],
    compute: (name, [x, grid]) => gridSample(x, grid, { mode: name as "bilinear" }),
  },
];

export const padMode: readonly Walk[] = [
  {
    names: padModes.names,
    operands: () => [drawn("border", [4, 5], spread)],
    compute: (name, [x]) => [pad(x, [3, 2, 2, 3], { mode: name as "reflect" })],
  },
];
