/** Copies into another order, joins, views, and new tensors. */
import type { DType } from "../../../../src/tensor/dtype.ts";
import { sizeOf } from "../case.ts";
import { type Draw, operand } from "../draw.ts";
import { at, type Drawn, each, type Family } from "../family.ts";

const anyDType = (draw: Draw): DType =>
  draw.chance(0.8) ? draw.float() : draw.pick(["int64", "int32", "uint8", "bool"]);

function any(draw: Draw, leastRank = 1, anyLayout = true) {
  const dtype = anyDType(draw);
  const shape = draw.anyShape(undefined, undefined, leastRank);
  const values = dtype === "bool" ? ({ low: 0, high: 1 } as const) : "normal";
  const whole = !dtype.includes("float") && dtype !== "bool" ? ({ low: 0, high: 100 } as const) : values;
  return operand(draw, shape, { dtype, values: whole, anyLayout });
}

const one = (draw: Draw): Drawn => ({ operands: [any(draw)] });

/** Tensors that differ along one axis. */
function joined(draw: Draw): Drawn {
  const [first, dtype] = [draw.anyShape(2 ** 22), draw.float()];
  const dim = draw.integer(0, first.length - 1);
  const count = draw.integer(2, 4);
  const shapes = Array.from({ length: count }, () => first.with(dim, draw.size(1, first[dim] * 2)));
  return {
    operands: shapes.map((shape) => operand(draw, shape, { dtype, anyLayout: true })),
    args: [shapes.map((_, position) => at(position)), dim],
  };
}

/** Tensors of one shape, joined by a rule of the operation. */
const stacked = (draw: Draw): Drawn => {
  const [shape, dtype] = [draw.anyShape(2 ** 21), draw.float()];
  const operands = [0, 1, 2].map(() => operand(draw, shape, { dtype, anyLayout: true }));
  return { operands, args: [[at(0), at(1), at(2)]] };
};

/** The time of views does not depend on their size, only on the call. */
const views: Family = {
  reshape: (draw) => {
    const x = any(draw);
    return { operands: [x], args: [at(0), [sizeOf(x.shape)]] };
  },
  flatten: one,
  squeeze: one,
  ...each("atleast1d atleast2d atleast3d", (draw, name) => ({
    ...one(draw),
    theirs: { name: name.replace(/(\dd)/, "_$1") },
  })),
  unsqueeze: (draw) => ({ ...one(draw), args: [at(0), 0] }),
  ...each("transpose swapaxes movedim", (draw) => ({ operands: [any(draw, 2)], args: [at(0), 0, 1] })),
  permute: (draw) => {
    const x = any(draw, 2);
    return { operands: [x], args: [at(0), x.shape.map((_, axis) => axis).reverse()] };
  },
  expand: (draw) => {
    const x = operand(draw, [1, draw.size(1, 2 ** 16)]);
    const size = [draw.size(1, 64), x.shape[1]];
    return { operands: [x], args: [at(0), size], theirs: { name: "Tensor.expand" } };
  },
  ...each("select", (draw) => ({ ...one(draw), args: [at(0), 0, 0] })),
  narrow: (draw) => {
    const x = any(draw);
    return { operands: [x], args: [at(0), 0, 0, Math.max(1, x.shape[0] >> 1)] };
  },
  slice: (draw) => ({
    operands: [any(draw)],
    ours: { options: { dim: 0, step: 2 } },
    theirs: { name: "ops.aten.slice.Tensor", args: [at(0), 0, null, null, 2] },
  }),
  ...each("split chunk tensorSplit", (draw) => ({ ...one(draw), args: [at(0), 2] })),
  unbind: (draw) => ({ operands: [operand(draw, [draw.integer(1, 16), draw.size(8, 2 ** 14)])] }),
  vsplit: (draw) => ({ operands: [operand(draw, [2 * draw.size(1, 500), draw.size(1, 500)])], args: [at(0), 2] }),
  hsplit: (draw) => ({ operands: [operand(draw, [draw.size(1, 500), 2 * draw.size(1, 500)])], args: [at(0), 2] }),
  dsplit: (draw) => ({ operands: [operand(draw, [draw.size(1, 99), draw.size(1, 99), 4])], args: [at(0), 2] }),
  unflatten: (draw) => ({ operands: [operand(draw, [2 * draw.size(1, 2 ** 18)])], args: [at(0), 0, [2, -1]] }),
  broadcastTensors: (draw) => ({
    operands: [operand(draw, [draw.size(1, 2000), 1]), operand(draw, [1, draw.size(1, 2000)])],
    ours: { args: [[at(0), at(1)]] },
  }),
  asStrided: (draw) => {
    const size = draw.size(8, 2 ** 20);
    return { operands: [operand(draw, [2 * size])], args: [at(0), [size], [2]], theirs: { name: "as_strided" } };
  },
  slidingWindows: (draw) => ({
    operands: [operand(draw, [draw.size(1, 500), draw.size(8, 500)])],
    args: [at(0), 1, 4, 2],
    theirs: { name: "Tensor.unfold" },
  }),
  diagonal: (draw) => ({ operands: [operand(draw, draw.shape(2, draw.size(64, 2 ** 22)))] }),
};

const creations: Family = {
  ...each("zeros ones empty", (draw, name) => ({
    operands: [],
    args: [draw.anyShape()],
    compared: name === "empty" ? null : 0,
  })),
  ...each("rand randn", (draw) => ({ operands: [], args: [draw.anyShape()], compared: null })),
  full: (draw) => ({ operands: [], args: [draw.anyShape(), 2.5] }),
  ...each("zerosLike onesLike emptyLike randLike randnLike", (draw, name) => ({
    operands: [operand(draw, draw.anyShape())],
    compared: /^(zeros|ones)/.test(name) ? 0 : null,
  })),
  fullLike: (draw) => ({ operands: [operand(draw, draw.anyShape())], args: [at(0), 2.5] }),
  arange: (draw) => ({ operands: [], args: [draw.size(8, 2 ** 22)] }),
  ...each("linspace logspace", (draw) => ({ operands: [], args: [0, 1, draw.size(8, 2 ** 22)], slack: 4 })),
  eye: (draw) => ({ operands: [], args: [draw.size(2, 2000)] }),
  randperm: (draw) => ({ operands: [], args: [draw.size(8, 2 ** 20)], compared: null }),
  randint: (draw) => ({ operands: [], args: [0, 1000, draw.anyShape()], compared: null }),
  randintLike: (draw) => ({ operands: [operand(draw, draw.anyShape())], args: [at(0), 0, 1000], compared: null }),
  ...each("trilIndices triuIndices", (draw, name) => ({
    operands: [],
    args: [draw.size(2, 1000), draw.size(2, 1000)],
    theirs: { name: name === "trilIndices" ? "tril_indices" : "triu_indices" },
  })),
  bernoulli: (draw) => ({
    operands: [operand(draw, draw.anyShape(), { values: { low: 0, high: 1 } })],
    compared: null,
  }),
  multinomial(draw) {
    const shape = [draw.size(1, 500), draw.size(20, 2000)];
    const x = operand(draw, shape, { values: { low: 0, high: 1 } });
    return { operands: [x], args: [at(0), draw.integer(1, 8)], options: { replacement: true }, compared: null };
  },
  ...each("dropout alphaDropout featureAlphaDropout", (draw, name) => ({
    operands: [operand(draw, draw.anyShape(undefined, 64, 3), { dtype: draw.float() })],
    args: [at(0), 0.3],
    gradients: draw.chance(0.3),
    compared: null,
    theirs: {
      name: `nn.functional.${name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}`,
      options: { training: true }, // the default differs between PyTorch's functions
    },
  })),
  ...each("dropout1d dropout2d dropout3d", (draw, name) => {
    const rank = Number(name.at(-2));
    const shape = [draw.size(1, 32), draw.size(1, 64), ...draw.shape(rank, draw.size(4, 1024))];
    return { operands: [operand(draw, shape)], args: [at(0), 0.3], compared: null };
  }),
  rrelu: (draw) => ({ operands: [operand(draw, draw.anyShape())], slack: 2 }),
  gumbelSoftmax: (draw) => ({
    operands: [operand(draw, draw.shape(2, draw.size(64, 2 ** 20)))],
    compared: null,
    theirs: { name: "nn.functional.gumbel_softmax" },
  }),
};

export const shaping: Family = {
  ...views,
  ...creations,
  contiguous(draw) {
    const x = any(draw, 2);
    return { operands: [x], theirs: { name: "Tensor.contiguous" } };
  },
  clone: one,
  toDType(draw) {
    const to = draw.pick<DType>(["float32", "bfloat16", "float16", "float64", "int64"]);
    return { operands: [any(draw)], args: [at(0), to], theirs: { name: "to_dtype" } };
  },
  cat: (draw) => ({ ...joined(draw), gradients: draw.chance(0.15) }),
  ...each("stack hstack vstack dstack columnStack", (draw) => stacked(draw)),
  ...each("flip", (draw) => {
    const x = any(draw);
    return { operands: [x], args: [at(0), [draw.integer(0, x.shape.length - 1)]] };
  }),
  roll(draw) {
    const x = any(draw);
    return { operands: [x], args: [at(0), [draw.integer(1, 9)], [draw.integer(0, x.shape.length - 1)]] };
  },
  rot90: (draw) => ({ operands: [any(draw, 2)], args: [at(0), 1, [0, 1]] }),
  ...each("tile repeat", (draw, name) => {
    const x = operand(draw, draw.anyShape(2 ** 19), { dtype: draw.float() });
    const counts = x.shape.map(() => draw.integer(1, 3));
    return { operands: [x], args: [at(0), counts], theirs: { name: `Tensor.${name}` } };
  }),
  repeatInterleave(draw) {
    const x = operand(draw, draw.anyShape(2 ** 20));
    return { operands: [x], args: [at(0), draw.integer(2, 5), draw.integer(0, x.shape.length - 1)] };
  },
  pad(draw) {
    const x = operand(draw, draw.anyShape(2 ** 21), { dtype: draw.float() });
    const pad = [draw.integer(0, 5), draw.integer(1, 5)];
    return { operands: [x], args: [at(0), pad], theirs: { name: "nn.functional.pad" } };
  },
  ...each("tril triu", (draw) => ({ operands: [any(draw, 2)] })),
  diag: (draw) => ({ operands: [operand(draw, [draw.size(2, 2000)])] }),
  diagEmbed: (draw) => ({ operands: [operand(draw, [draw.size(1, 50), draw.size(2, 200)])] }),
  ...each("meshgrid", (draw) => ({
    operands: [operand(draw, [draw.size(2, 2000)]), operand(draw, [draw.size(2, 2000)])],
    args: [[at(0), at(1)]],
    options: { indexing: "ij" },
    theirs: { args: [at(0), at(1)] },
  })),
  cartesianProd: (draw) => ({
    operands: [operand(draw, [draw.size(2, 1000)]), operand(draw, [draw.size(2, 1000)])],
    ours: { args: [[at(0), at(1)]] },
  }),
  combinations: (draw) => ({ operands: [operand(draw, [draw.size(3, 800)])] }),
  blockDiag: (draw) => ({
    operands: [0, 1].map(() => operand(draw, draw.shape(2, draw.size(4, 2 ** 16)))),
    ours: { args: [[at(0), at(1)]] },
  }),
};
