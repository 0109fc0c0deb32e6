/** Layers with weights, steps of optimizers, and steps of training of small models. */
import { sizeOf } from "../case.ts";
import { type Draw, indices, operand } from "../draw.ts";
import { type Drawn, each, type Family } from "../family.ts";

/** A recurrent layer over a sequence, with one to a few hundred steps and rows. */
function recurrent(draw: Draw): Drawn {
  const [batch, steps] = [draw.size(1, 64), draw.size(1, 128)];
  const [width, hidden] = [draw.size(4, 256), draw.size(4, 384)];
  if (batch * steps * hidden * (width + hidden) > 2 ** 29) return recurrent(draw);
  return {
    kind: "layer",
    operands: [operand(draw, [batch, steps, width])],
    args: [width, hidden],
    options: { batchFirst: true, numLayers: draw.pick([1, 1, 2]) },
    gradients: draw.chance(0.4),
    slack: 64,
  };
}

function cell(draw: Draw): Drawn {
  const [batch, width, hidden] = [draw.size(1, 256), draw.size(4, 384), draw.size(4, 384)];
  return { kind: "layer", operands: [operand(draw, [batch, width])], args: [width, hidden], slack: 64 };
}

function encoder(draw: Draw): Drawn {
  const headDim = draw.pick([16, 32, 64]);
  const [heads, batch, length] = [draw.pick([1, 2, 4, 8]), draw.size(1, 32), draw.size(2, 256)];
  const width = heads * headDim;
  if (batch * length * width * width * 12 > 2 ** 31) return encoder(draw);
  return {
    kind: "layer",
    operands: [operand(draw, [batch, length, width])],
    args: [width, heads],
    options: { dimFeedforward: 4 * width, dropout: 0, batchFirst: true },
    gradients: draw.chance(0.5),
    slack: 64,
  };
}

/** A classifier with hidden layers of drawn widths. */
function multilayer(draw: Draw): Drawn {
  const [batch, inputs, classes] = [draw.size(1, 512), draw.size(2, 1024), draw.size(2, 20)];
  const widths = [inputs, ...Array.from({ length: draw.integer(1, 3) }, () => draw.size(4, 1024))];
  const hidden = widths.slice(1).flatMap((width, layer) => [["Linear", widths[layer], width], ["ReLU"]]);
  return {
    kind: "training",
    operands: [operand(draw, [batch, inputs]), indices(draw, [batch], classes)],
    args: [...hidden, ["Linear", widths.at(-1)!, classes]],
    options: { optimizer: draw.pick(["SGD", "AdamW"]) },
    slack: 16,
  };
}

/** LeNet's layers (LeCun et al., 1998) with drawn channels. */
function convolutional(draw: Draw): Drawn {
  const [batch, side] = [draw.size(1, 128), draw.pick([20, 28, 32])];
  const [first, second, hidden] = [draw.size(4, 32), draw.size(4, 64), draw.size(16, 256)];
  const rest = ((side - 4) / 2 - 4) / 2;
  const layers = [
    ["Conv2d", 1, first, 5],
    ["ReLU"],
    ["MaxPool2d", 2],
    ["Conv2d", first, second, 5],
    ["ReLU"],
    ["MaxPool2d", 2],
    ["Flatten"],
    ["Linear", second * rest * rest, hidden],
    ["ReLU"],
    ["Linear", hidden, 10],
  ];
  const operands = [operand(draw, [batch, 1, side, side]), indices(draw, [batch], 10)];
  return { kind: "training", operands, args: layers, options: { optimizer: "AdamW" }, slack: 64 };
}

/** Typical parameters of a model: some matrices, and as many vectors. */
function optimizerStep(draw: Draw): Drawn {
  const shapes = Array.from({ length: draw.integer(1, 12) }, (_, position) =>
    position % 2 === 0 ? draw.shape(2, draw.size(64, 2 ** 20)) : [draw.size(4, 4096)],
  );
  const bounded = shapes.filter((shape) => sizeOf(shape) < 2 ** 20);
  const kept = bounded.length === 0 ? [[64, 64]] : bounded;
  return { kind: "optimizer", operands: kept.map((shape) => operand(draw, shape)), options: { lr: 1e-3 }, slack: 16 };
}

export const layers: Family = {
  ...each("nn.LSTM nn.GRU nn.RNN", recurrent),
  ...each("nn.LSTMCell nn.GRUCell nn.RNNCell", cell),
  "nn.TransformerEncoderLayer": encoder,
  "nn.BatchNorm2d": (draw) => {
    const [batch, channels, side] = [draw.size(2, 64), draw.size(2, 256), draw.size(2, 64)];
    const shape = [batch, channels, side, side];
    if (sizeOf(shape) > 2 ** 22)
      return { kind: "layer", operands: [operand(draw, [8, 16, 16, 16])], args: [16], slack: 32 };
    return {
      kind: "layer",
      operands: [operand(draw, shape)],
      args: [channels],
      gradients: draw.chance(0.5),
      slack: 32,
    };
  },
  "nn.MultiheadAttention": (draw) => {
    const [heads, length, batch] = [draw.pick([1, 2, 4, 8]), draw.size(2, 256), draw.size(1, 16)];
    const width = heads * draw.pick([16, 32, 64]);
    const x = operand(draw, [batch, length, width]);
    return { kind: "layer", operands: [x, x, x], args: [width, heads], options: { batchFirst: true }, slack: 64 };
  },
};

export const optimizers: Family = {
  ...each(
    "optim.SGD optim.Adam optim.AdamW optim.RMSprop optim.Adagrad optim.Adadelta optim.Adamax optim.NAdam " +
      "optim.RAdam optim.ASGD optim.Rprop",
    optimizerStep,
  ),
};

export const training: Family = { multilayer, convolutional };
