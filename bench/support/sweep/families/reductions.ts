/** Reductions, scans, sorts and counts. */
import type { DType } from "../../../../src/tensor/dtype.ts";
import type { Values } from "../case.ts";
import { type Draw, indices, operand } from "../draw.ts";
import { at, type Drawn, each, type Family } from "../family.ts";

/** Draws one axis, several, or all. Programs reduce the last one most often. */
function axesOf(draw: Draw, rank: number): number | number[] | null {
  const kind = draw.share({ last: 0.4, first: 0.15, one: 0.15, several: 0.12, all: 0.18 });
  if (kind === "all") return null;
  if (kind === "last" || rank === 1) return -1;
  if (kind === "first") return 0;
  if (kind === "one" || rank === 2) return draw.integer(0, rank - 1);
  const first = draw.integer(0, rank - 2);
  return [first, first + 1];
}

function reduce(draw: Draw, { values = "normal", dtype = draw.float() }: { values?: Values; dtype?: DType } = {}) {
  const shape = draw.anyShape();
  const dim = axesOf(draw, shape.length);
  return { x: operand(draw, shape, { dtype, values, anyLayout: true }), dim };
}

const withDim = (dim: number | number[] | null) => (dim === null ? [at(0)] : [at(0), dim]);

/** Draws one axis, mostly the last. */
const axisOf = (draw: Draw, rank: number): number => (draw.chance(0.6) ? -1 : draw.integer(0, rank - 1));

function along(draw: Draw, given: { values?: Values; dtype?: DType; most?: number } = {}): Drawn & { dim: number } {
  const shape = draw.anyShape(given.most);
  const dim = axisOf(draw, shape.length);
  const x = operand(draw, shape, {
    dtype: given.dtype ?? draw.float(),
    values: given.values ?? "normal",
    anyLayout: true,
  });
  return { operands: [x], args: [at(0), dim], dim };
}

/**
 * PyTorch's `torch.max` and similar functions return values and indices over one axis, but only values over all
 * elements.
 */
const extremum = (draw: Draw): Drawn => {
  const { x, dim } = reduce(draw);
  return { operands: [x], args: withDim(typeof dim === "object" ? null : dim) };
};

export const reductions: Family = {
  ...each("sum mean nansum nanmean", (draw) => {
    const { x, dim } = reduce(draw);
    return { operands: [x], args: withDim(dim), gradients: draw.chance(0.25), slack: 8 };
  }),
  ...each("amax amin", (draw) => {
    const { x, dim } = reduce(draw);
    return { operands: [x], args: withDim(dim) };
  }),
  ...each("max min", extremum),
  ...each("argmax argmin", (draw) => ({ ...extremum(draw), compared: null })),
  aminmax(draw) {
    const { dim: _, ...drawn } = along(draw);
    return { ...drawn, args: [at(0)], options: { dim: drawn.args![1]! } };
  },
  prod(draw) {
    const { x, dim } = reduce(draw, { values: { low: 0.9, high: 1.1 } });
    return { operands: [x], args: withDim(typeof dim === "object" ? null : dim), slack: 8 };
  },
  ...each("all any", (draw) => {
    const { x, dim } = reduce(draw, {
      dtype: draw.pick<DType>(["bool", "bool", "float32"]),
      values: { low: 0, high: 1 },
    });
    return { operands: [x], args: withDim(dim) };
  }),
  ...each("std var variance", (draw, name) => {
    const { x, dim } = reduce(draw);
    return {
      operands: [x],
      args: withDim(dim),
      gradients: draw.chance(0.2),
      slack: 8,
      theirs: name === "variance" ? { name: "var" } : {},
    };
  }),
  ...each("stdMean varMean", (draw) => {
    const { x, dim } = reduce(draw);
    return { operands: [x], args: withDim(dim), slack: 8 };
  }),
  ...each("logsumexp", (draw) => {
    const { dim: _, ...drawn } = along(draw);
    return { ...drawn, gradients: draw.chance(0.3), slack: 4 };
  }),
  norm(draw) {
    const { x, dim } = reduce(draw);
    const p = draw.pick([2, 2, 1, 3]);
    return { operands: [x], args: [at(0), p], options: dim === null ? {} : { dim }, slack: 8 };
  },
  countNonzero(draw) {
    const { x, dim } = reduce(draw, {
      dtype: draw.pick<DType>(["bool", "float32", "int64"]),
      values: { low: 0, high: 2 },
    });
    return { operands: [x], args: withDim(dim) };
  },
  ...each("median nanmedian mode", (draw, name) => {
    const { dim: _, ...drawn } = along(draw, { dtype: "float32", most: 2 ** 21 });
    // PyTorch 2.15 gives NaN for the median of a tensor that is expanded along the axis
    const differs = name !== "mode" && drawn.operands[0].layout.kind === "expanded";
    return differs ? { ...drawn, compared: null } : drawn;
  }),
  ...each("quantile nanquantile", (draw, name) => {
    const { dim, operands } = along(draw, { dtype: "float32", most: 2 ** 21 });
    return { operands, args: [at(0), 0.3], options: { dim }, theirs: { name }, slack: 4 };
  }),
  kthvalue(draw) {
    const { dim, operands } = along(draw, { dtype: "float32", most: 2 ** 21 });
    const { shape } = operands[0];
    return { operands, args: [at(0), draw.integer(1, shape.at(dim)!), dim] };
  },
  ...each("cumsum cumprod logcumsumexp cummax cummin", (draw, name) => {
    const { dim: _, ...drawn } = along(draw, { values: name === "cumprod" ? { low: 0.9, high: 1.1 } : "normal" });
    return { ...drawn, slack: 64 };
  }),
  ...each("sort argsort", (draw, name) => {
    const { dim: _, ...drawn } = along(draw, { dtype: draw.pick<DType>(["float32", "int64"]), most: 2 ** 21 });
    return { ...drawn, compared: name === "sort" ? 0 : null };
  }),
  topk(draw) {
    const { dim, operands } = along(draw, { dtype: "float32", most: 2 ** 21 });
    return { operands, args: [at(0), draw.integer(1, Math.min(20, operands[0].shape.at(dim)!)), dim] };
  },
  diff(draw) {
    const { dim, operands } = along(draw);
    return { operands, options: { dim } };
  },
  gradient(draw) {
    const { dim, operands } = along(draw, { dtype: "float32" });
    const atLeastTwo = operands.map((x) => ({ ...x, shape: x.shape.with(dim, Math.max(2, x.shape.at(dim)!)) }));
    return { operands: atLeastTwo, options: { dim }, compared: 0 };
  },
  ...each("trapezoid cumulativeTrapezoid", (draw) => {
    const { dim, operands } = along(draw, { dtype: "float32" });
    return { operands, options: { dim }, slack: 64 };
  }),
  unique(draw) {
    const size = draw.size(64, 2 ** 20);
    return { operands: [indices(draw, [size], draw.size(2, 2 * size), draw.pick<DType>(["int64", "float32"]))] };
  },
  uniqueConsecutive(draw) {
    const size = draw.size(64, 2 ** 20);
    return { operands: [indices(draw, [size], draw.size(2, 8))] };
  },
  bincount(draw) {
    const size = draw.size(64, 2 ** 22);
    return { operands: [indices(draw, [size], draw.size(2, 2 ** 16))] };
  },
  histc: (draw) => ({
    operands: [operand(draw, [draw.size(64, 2 ** 22)])],
    options: { bins: draw.size(2, 1000), min: -3, max: 3 },
    compared: null,
  }),
  histogram: (draw) => ({
    operands: [operand(draw, [draw.size(64, 2 ** 22)])],
    args: [at(0), draw.size(2, 1000)],
    compared: null,
  }),
  ...each("searchsorted bucketize", (draw, name) => {
    const edges = { ...indices(draw, [draw.size(4, 2 ** 16)], 0, "float32"), values: { distinct: 2 ** 17 } };
    const x = operand(draw, draw.anyShape(2 ** 21), { values: { low: 0, high: 2 ** 17 } });
    return { operands: [edges, x], args: name === "bucketize" ? [at(1), at(0)] : [at(0), at(1)], compared: null };
  }),
  nonzero: (draw) => ({
    operands: [operand(draw, draw.anyShape(2 ** 21), { dtype: "bool", values: { low: 0, high: 1 } })],
  }),
  isin(draw) {
    const x = indices(draw, draw.anyShape(2 ** 20), 1000);
    return { operands: [x, indices(draw, [draw.size(1, 1000)], 1000)] };
  },
  cov: (draw) => {
    const [variables, observations] = draw.shape(2, draw.size(64, 2 ** 18)).map((size) => Math.min(size + 1, 1024));
    return { operands: [operand(draw, [variables, observations])], slack: 8 };
  },
  corrcoef: (draw) => {
    const [variables, observations] = draw.shape(2, draw.size(64, 2 ** 18)).map((size) => Math.min(size + 1, 1024));
    return { operands: [operand(draw, [variables, observations + 2])], slack: 64 };
  },
  trace: (draw) => ({ operands: [operand(draw, draw.shape(2, draw.size(64, 2 ** 22)))], slack: 8 }),
};
