/** Softmax, normalization and losses: functions of rows or channels. */
import type { DType } from "../../../../src/tensor/dtype.ts";
import { type Draw, indices, operand } from "../draw.ts";
import { at, type Drawn, each, type Family } from "../family.ts";

const halfOrFloat = (draw: Draw): DType => draw.share({ float32: 0.75, bfloat16: 0.15, float16: 0.05, float64: 0.05 });

function softmax(draw: Draw, name: string): Drawn {
  const shape = draw.anyShape(undefined, undefined, 2);
  const dim = draw.chance(0.8) ? -1 : draw.integer(0, shape.length - 1);
  return {
    operands: [operand(draw, shape, { dtype: halfOrFloat(draw), anyLayout: true })],
    args: [at(0), dim],
    gradients: draw.chance(0.3),
    slack: 4,
    theirs: name === "softmin" ? { name: "nn.functional.softmin" } : {},
  };
}

/** Rows of a drawn length with a weight, and an optional bias. */
function ofRows(draw: Draw, parameters: number) {
  const shape = draw.anyShape(undefined, undefined, 2);
  const dtype = draw.pick<DType>(["float32", "float32", "bfloat16"]);
  const width = shape.at(-1)!;
  const others = Array.from({ length: parameters }, () => operand(draw, [width], { dtype }));
  return { x: operand(draw, shape, { dtype }), others, width, gradients: draw.chance(0.35), slack: 16 };
}

/** A picture, a signal or a volume. */
function channels(draw: Draw) {
  const [batch, count] = [draw.size(1, 64), draw.size(1, 64) * draw.pick([1, 2, 4])];
  const rank = draw.pick([1, 2, 2, 2, 3]);
  const most = Math.max(1, 2 ** 22 / (batch * count));
  return { batch, count, shape: [batch, count, ...draw.shape(rank, draw.size(1, most))] };
}

const weights = (draw: Draw, count: number) => [operand(draw, [count]), operand(draw, [count])];

/** Predictions and targets of one shape. */
function pairs(draw: Draw, given: { low: number; high: number } | "normal" = "normal"): Drawn {
  const shape = draw.anyShape();
  return {
    operands: [operand(draw, shape, { values: given }), operand(draw, shape, { values: given })],
    gradients: draw.chance(0.4) ? [0] : false,
    slack: 16,
  };
}

/** Scores of classes: from two classes to a vocabulary. */
function scores(draw: Draw) {
  const classes = draw.share({ few: 0.4, some: 0.4, vocabulary: 0.2 });
  const [low, high] = { few: [2, 20], some: [20, 1000], vocabulary: [1000, 50_000] }[classes] as [number, number];
  const count = draw.size(low, high);
  const rows = draw.size(1, Math.max(2, Math.min(2 ** 16, 2 ** 22 / count)));
  return { rows, count, x: operand(draw, [rows, count]), targets: indices(draw, [rows], count) };
}

const ofScores = (draw: Draw): Drawn => {
  const { x, targets } = scores(draw);
  return { operands: [x, targets], gradients: draw.chance(0.5), slack: 16 };
};

const functional = (name: string) => ({ theirs: { name: `nn.functional.${name}` } });
const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

export const rows: Family = {
  ...each("softmax logSoftmax softmin", softmax),
  layerNorm(draw) {
    const { x, others, width, ...drawn } = ofRows(draw, 2);
    const args = [at(0), [width], at(1), at(2)];
    const options = { weight: at(1), bias: at(2) };
    return { ...drawn, operands: [x, ...others], ours: { args: [at(0)], options }, theirs: { args } };
  },
  rmsNorm(draw) {
    const { x, others, width, ...drawn } = ofRows(draw, 1);
    const theirs = { args: [at(0), [width], at(1), 1e-6] };
    return { ...drawn, operands: [x, ...others], ours: { args: [at(0)], options: { weight: at(1) } }, theirs };
  },
  addLayerNorm(draw) {
    const { x, others, width, ...drawn } = ofRows(draw, 2);
    const options = { weight: at(2), bias: at(3), normalizedShape: [width] };
    return { ...drawn, operands: [x, x, ...others], args: [at(0), at(1)], options };
  },
  addRmsNorm(draw) {
    const { x, others, ...drawn } = ofRows(draw, 1);
    return { ...drawn, operands: [x, x, ...others], args: [at(0), at(1)], options: { weight: at(2) } };
  },
  groupNorm(draw) {
    const { count, shape } = channels(draw);
    const divisors = [1, 2, 4, 8, 16, 32].filter((groups) => count % groups === 0);
    const groups = draw.pick(divisors);
    return {
      operands: [operand(draw, shape), ...weights(draw, count)],
      args: [at(0), groups],
      options: { weight: at(1), bias: at(2) },
      gradients: draw.chance(0.3),
      slack: 32,
    };
  },
  instanceNorm(draw) {
    const { count, shape } = channels(draw);
    const wide = shape.map((size, axis) => (axis === shape.length - 1 ? size + 1 : size));
    const options = { weight: at(1), bias: at(2) };
    const operands = [operand(draw, wide), ...weights(draw, count)];
    return { operands, args: [at(0)], options, slack: 32, theirs: { name: "nn.functional.instance_norm" } };
  },
  batchNorm(draw) {
    const { count, shape } = channels(draw);
    const [batch, ...others] = shape as [number, ...number[]];
    return {
      operands: [operand(draw, [batch + 1, ...others]), ...weights(draw, count)],
      gradients: draw.chance(0.3),
      slack: 32,
      ours: { args: [at(0)], options: { weight: at(1), bias: at(2), training: true } },
      theirs: { name: "nn.functional.batch_norm", args: [at(0), null, null, at(1), at(2), true] },
    };
  },
  localResponseNorm(draw) {
    const { shape } = channels(draw);
    return { operands: [operand(draw, shape)], args: [at(0), draw.integer(2, 5)], slack: 16 };
  },
  ...each("normalize", (draw) => ({ operands: [operand(draw, draw.anyShape(undefined, 64, 2))], slack: 8 })),
  renorm: (draw) => ({ operands: [operand(draw, draw.anyShape(undefined, 64, 2))], args: [at(0), 2, 0, 1], slack: 16 }),
  ...each("cosineSimilarity pairwiseDistance", (draw) => {
    const shape = draw.anyShape(undefined, 64, 2);
    return { operands: [operand(draw, shape), operand(draw, shape)], slack: 32 };
  }),
  dist: (draw) => ({ ...pairs(draw), gradients: false, slack: 64 }),
  ...each("mseLoss l1Loss smoothL1Loss huberLoss softMarginLoss", (draw, name) => ({
    ...pairs(draw),
    ...functional(snake(name).replace("l1_loss", "l1_loss")),
  })),
  ...each("binaryCrossEntropy", (draw) => pairs(draw, { low: 0.05, high: 0.95 })),
  binaryCrossEntropyWithLogits: (draw) => pairs(draw, { low: 0, high: 1 }),
  ...each("klDiv hingeEmbeddingLoss poissonNllLoss", (draw, name) => ({
    ...pairs(draw, { low: 0.1, high: 1 }),
    ...functional(snake(name)),
  })),
  gaussianNllLoss(draw) {
    const shape = draw.anyShape();
    const positive = operand(draw, shape, { values: { low: 0.5, high: 2 } });
    return { operands: [operand(draw, shape), operand(draw, shape), positive], slack: 16 };
  },
  crossEntropy: ofScores,
  nllLoss: ofScores,
  multiMarginLoss: (draw) => ({ ...ofScores(draw), ...functional("multi_margin_loss") }),
  multilabelMarginLoss(draw) {
    const [batch, classes] = [draw.size(1, 500), draw.size(2, 60)];
    const targets = indices(draw, [batch, classes], classes);
    return { operands: [operand(draw, [batch, classes]), targets], slack: 16 };
  },
  multilabelSoftMarginLoss(draw) {
    const shape = draw.shape(2, draw.size(64, 2 ** 20));
    const targets = operand(draw, shape, { values: { low: 0, high: 1 } });
    return { operands: [operand(draw, shape), targets], slack: 16 };
  },
  ...each("marginRankingLoss cosineEmbeddingLoss tripletMarginLoss", (draw, name) => {
    const [batch, width] = [draw.size(1, 4096), draw.size(2, 256)];
    const shape = name === "marginRankingLoss" ? [batch * width] : [batch, width];
    const labels = operand(draw, [shape[0]], { values: { low: 1, high: 1 } });
    const third = name === "tripletMarginLoss" ? operand(draw, shape) : labels;
    return { operands: [operand(draw, shape), operand(draw, shape), third], slack: 64, ...functional(snake(name)) };
  }),
  tripletMarginWithDistanceLoss(draw) {
    const shape = [draw.size(1, 4096), draw.size(2, 256)];
    return { operands: [0, 1, 2].map(() => operand(draw, shape)), slack: 64 };
  },
  ctcLoss(draw) {
    const [times, batch, classes] = [draw.size(10, 200), draw.size(1, 32), draw.size(3, 80)];
    const labels = Math.max(1, Math.floor(times / 4));
    const targets = operand(draw, [batch, labels], { dtype: "int64", values: { low: 1, high: classes - 1 } });
    const lengths = [Array(batch).fill(times), Array(batch).fill(labels)];
    return {
      operands: [operand(draw, [times, batch, classes], { values: { low: -4, high: -1 } }), targets],
      args: [at(0), at(1), ...lengths],
      gradients: draw.chance(0.5),
      slack: 64,
      theirs: { name: "nn.functional.ctc_loss" },
    };
  },
};
