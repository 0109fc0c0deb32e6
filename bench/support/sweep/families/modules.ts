/** Layers that apply the operations of the other families, with their weights. */
import type { Argument, Options } from "../case.ts";
import { sizeOf } from "../case.ts";
import { type Draw, indices, operand } from "../draw.ts";
import { type Drawn, each, type Family } from "../family.ts";

/** Names of PyTorch's classes that Orchard exports under the same names. */
const layersNamed = (names: string): string =>
  names
    .trim()
    .split(/\s+/)
    .map((name) => `nn.${name}`)
    .join(" ");

const rankOf = (name: string): number => Number(/(\d)d/.exec(name)?.[1] ?? 2);

/** A layer of one input. */
function over(draw: Draw, shape: readonly number[], args: readonly Argument[], more: Partial<Drawn> = {}): Drawn {
  return {
    kind: "layer",
    operands: [operand(draw, shape)],
    args,
    gradients: draw.chance(0.3),
    slack: 32,
    ...more,
  };
}

/** A batch of channels over a signal, a picture or a volume of a drawn size. */
function channels(draw: Draw, rank: number, least = 4): number[] {
  const [batch, count] = [draw.size(2, 32), draw.size(2, 128)];
  const side = Math.max(least, Math.round(draw.size(2 ** rank, 2 ** 20 / (batch * count) + 2 ** rank) ** (1 / rank)));
  return [batch, count, ...Array<number>(rank).fill(side)];
}

const activations = each(
  layersNamed(
    `ReLU ReLU6 GELU SiLU Mish Sigmoid Tanh Hardsigmoid Hardswish LogSigmoid Softsign Tanhshrink Softplus ELU SELU
    CELU LeakyReLU Hardtanh Hardshrink Softshrink Identity`,
  ),
  (draw) => over(draw, draw.anyShape(), []),
);

/** Pairs of predictions and targets. */
const losses = each(
  layersNamed(
    "MSELoss L1Loss SmoothL1Loss HuberLoss SoftMarginLoss BCEWithLogitsLoss BCELoss KLDivLoss PoissonNLLLoss",
  ),
  (draw) => {
    const shape = draw.anyShape();
    const values = { low: 0.1, high: 0.9 };
    const operands = [operand(draw, shape, { values }), operand(draw, shape, { values })];
    return { kind: "layer", operands, args: [], gradients: draw.chance(0.4) ? [0] : [], slack: 32 };
  },
);

const classified = each(layersNamed("CrossEntropyLoss NLLLoss MultiMarginLoss"), (draw) => {
  const [rows, classes] = [draw.size(1, 2048), draw.size(2, 2000)];
  const operands = [operand(draw, [rows, classes]), indices(draw, [rows], classes)];
  return { kind: "layer", operands, args: [], gradients: draw.chance(0.4), slack: 32 };
});

const convolutions = each(
  layersNamed("Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d"),
  (draw, name) => {
    const shape = channels(draw, rankOf(name), 8);
    const [out, kernel] = [draw.size(2, 96), draw.pick([1, 3, 3, 5])];
    const work = sizeOf(shape) * out * kernel ** rankOf(name);
    return over(draw, shape, [shape[1], work > 2 ** 32 ? 2 : out, kernel], { options: { padding: kernel >> 1 } });
  },
);

const pools = each(layersNamed("MaxPool1d MaxPool2d MaxPool3d AvgPool1d AvgPool2d AvgPool3d"), (draw, name) =>
  over(draw, channels(draw, rankOf(name)), [draw.integer(2, 3)]),
);
const lpPools = each(layersNamed("LPPool1d LPPool2d LPPool3d"), (draw, name) =>
  over(draw, channels(draw, rankOf(name)), [2, 2], { gradients: false }),
);
const adaptivePools = each(
  layersNamed(
    `AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d`,
  ),
  (draw, name) => over(draw, channels(draw, rankOf(name)), [draw.integer(1, 4)]),
);

const paddings = each(
  layersNamed(
    `ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d
    CircularPad1d CircularPad2d CircularPad3d ZeroPad1d ZeroPad2d ZeroPad3d`,
  ),
  (draw, name) => over(draw, channels(draw, rankOf(name), 5), [draw.integer(1, 3)], { gradients: draw.chance(0.2) }),
);
const constantPaddings = each(layersNamed("ConstantPad1d ConstantPad2d ConstantPad3d"), (draw, name) =>
  over(draw, channels(draw, rankOf(name)), [draw.integer(1, 3), 0.5]),
);

const channelNorms = each(
  layersNamed("BatchNorm1d BatchNorm2d BatchNorm3d InstanceNorm1d InstanceNorm2d InstanceNorm3d"),
  (draw, name) => {
    const shape = channels(draw, rankOf(name));
    return over(draw, shape, [shape[1]]);
  },
);

const dropouts = each(
  layersNamed("Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout"),
  (draw, name) => over(draw, channels(draw, rankOf(name)), [0.3], { compared: null }),
);

const rows = (draw: Draw): number[] => draw.anyShape(undefined, 64, 2);

const ofRows: Family = {
  ...each(layersNamed("LayerNorm RMSNorm"), (draw) => {
    const shape = rows(draw);
    return over(draw, shape, [[shape.at(-1)!]], { options: { eps: 1e-5 } });
  }),
  ...each(layersNamed("Softmax LogSoftmax Softmin"), (draw) => over(draw, rows(draw), [-1])),
  ...each(layersNamed("CosineSimilarity PairwiseDistance"), (draw, name) => {
    const shape = rows(draw);
    const args = name.endsWith("Similarity") ? [1] : [];
    return { ...over(draw, shape, args), operands: [operand(draw, shape), operand(draw, shape)], slack: 64 };
  }),
  "nn.Linear": (draw) => {
    const [m, n, k] = [draw.size(1, 1024), draw.size(1, 2048), draw.size(1, 2048)];
    return over(draw, [m, k], [k, n]);
  },
  "nn.Bilinear": (draw) => {
    const [batch, first, second, out] = [draw.size(1, 256), draw.size(2, 64), draw.size(2, 64), draw.size(2, 64)];
    const operands = [operand(draw, [batch, first]), operand(draw, [batch, second])];
    return { kind: "layer", operands, args: [first, second, out], slack: 64 };
  },
  "nn.GLU": (draw) => over(draw, [draw.size(1, 512), 2 * draw.size(1, 512)], [-1]),
  "nn.Threshold": (draw) => over(draw, draw.anyShape(), [0.1, 1]),
  "nn.RReLU": (draw) => over(draw, draw.anyShape(), [0.1, 0.3], { compared: null }),
  "nn.Flatten": (draw) => over(draw, channels(draw, 2), []),
  "nn.Unflatten": (draw) => over(draw, [draw.size(1, 512), 2 * draw.size(1, 512)], [1, [2, -1]]),
};

const ofIndices: Family = each(layersNamed("Embedding EmbeddingBag"), (draw, name) => {
  const [rowsOfTable, width] = [draw.size(2, 2 ** 14), draw.size(2, 256)];
  const index = indices(draw, [draw.size(1, 64), draw.size(1, 128)], rowsOfTable);
  const options: Options = name.endsWith("Bag") ? { mode: "sum" } : {};
  return { kind: "layer", operands: [index], args: [rowsOfTable, width], options, slack: 32 };
});

const ofPictures: Family = {
  "nn.PReLU": (draw) => {
    const shape = channels(draw, 2);
    return over(draw, shape, [shape[1]]);
  },
  "nn.GroupNorm": (draw) => {
    const [batch, count, ...sides] = channels(draw, 2) as [number, number, ...number[]];
    return over(draw, [batch, 4 * count, ...sides], [4, 4 * count]);
  },
  "nn.LocalResponseNorm": (draw) => over(draw, channels(draw, 2), [draw.integer(2, 5)], { gradients: false }),
  "nn.Softmax2d": (draw) => over(draw, channels(draw, 2), []),
  "nn.PixelShuffle": (draw) => {
    const [batch, count, ...sides] = channels(draw, 2) as [number, number, ...number[]];
    return over(draw, [batch, 4 * count, ...sides], [2]);
  },
  "nn.PixelUnshuffle": (draw) => over(draw, [draw.size(1, 16), draw.size(1, 64), 16, 24], [2]),
  "nn.ChannelShuffle": (draw) => over(draw, [draw.size(1, 16), 4 * draw.size(1, 32), 16, 24], [4]),
  ...each(layersNamed("Upsample UpsamplingNearest2d UpsamplingBilinear2d"), (draw) =>
    over(draw, [draw.size(1, 16), draw.size(1, 64), draw.size(4, 64), draw.size(4, 64)], [], {
      options: { scaleFactor: 2 },
    }),
  ),
  "nn.Unfold": (draw) => over(draw, [draw.size(1, 16), draw.size(1, 32), 20, 24], [3], { options: { padding: 1 } }),
  "nn.Fold": (draw) =>
    over(draw, [draw.size(1, 16), 4 * draw.size(1, 32), 100], [[20, 20], 2], { options: { stride: 2 } }),
};

export const modules: Family = {
  ...activations,
  ...losses,
  ...classified,
  ...convolutions,
  ...pools,
  ...lpPools,
  ...adaptivePools,
  ...paddings,
  ...constantPaddings,
  ...channelNorms,
  ...dropouts,
  ...ofRows,
  ...ofIndices,
  ...ofPictures,
};
