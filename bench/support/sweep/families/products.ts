/** Products of matrices and vectors, and linear algebra. */
import type { DType } from "../../../../src/tensor/dtype.ts";
import { type Draw, operand } from "../draw.ts";
import { at, type Drawn, each, type Family } from "../family.ts";

/** Maximum multiplications of a call: about a second of one thread. */
const MOST_WORK = 2 ** 33;

/** Three sizes whose product is bounded. A sixth of the products are tall, flat or thin. */
function sizes(draw: Draw, batch = 1): [m: number, n: number, k: number] {
  const [low, high] = draw.pick([
    [16, 2048],
    [16, 2048],
    [1, 4096],
    [1, 512],
  ] as const);
  const drawn = [0, 1, 2].map(() => draw.size(low, high)) as [number, number, number];
  const work = batch * drawn[0] * drawn[1] * drawn[2];
  return work > MOST_WORK ? sizes(draw, batch) : drawn;
}

const productDType = (draw: Draw): DType => draw.share({ float32: 0.8, bfloat16: 0.1, float64: 0.1 });

/** A matrix, plain or transposed, because programs store weights in both ways. */
function matrix(draw: Draw, shape: readonly number[], dtype: DType) {
  const made = operand(draw, shape, { dtype });
  const dims = [shape.length - 2, shape.length - 1] as const;
  return draw.chance(0.25) ? { ...made, layout: { kind: "transposed", dims } as const } : made;
}

const SLACK = 16; // libraries add the terms of sums of up to 4,096 products in different orders

function product(draw: Draw): Drawn {
  const [[m, n, k], dtype] = [sizes(draw), productDType(draw)];
  return {
    operands: [matrix(draw, [m, k], dtype), matrix(draw, [k, n], dtype)],
    gradients: draw.chance(0.2),
    slack: SLACK,
  };
}

function batched(draw: Draw): Drawn & { sizes: readonly number[] } {
  const batch = draw.size(2, 400);
  const [m, n, k] = draw.chance(0.7)
    ? ([0, 1, 2].map(() => draw.size(2, 128)) as [number, number, number])
    : sizes(draw, batch);
  const dtype = productDType(draw);
  return {
    operands: [matrix(draw, [batch, m, k], dtype), matrix(draw, [batch, k, n], dtype)],
    gradients: draw.chance(0.15),
    slack: SLACK,
    sizes: [batch, m, n, k],
  };
}

const withoutSizes = ({ sizes: _, ...drawn }: Drawn & { sizes: readonly number[] }): Drawn => drawn;

const equations = ["bhqd,bhkd->bhqk", "bhqk,bhkd->bhqd", "bij,bjk->bik", "bi,bj->bij", "bij,bij->b", "ijk,kl->ijl"];

/** A drawn size for each letter of an equation. */
function einsum(draw: Draw): Drawn {
  const equation = draw.pick(equations);
  const letters = [...new Set(equation.match(/[a-z]/g)!)];
  const most = 2 ** (26 / letters.length);
  const named = Object.fromEntries(letters.map((letter) => [letter, draw.size(2, most)]));
  const operands = equation
    .split("->")[0]
    .split(",")
    .map((axes) =>
      operand(
        draw,
        [...axes].map((letter) => named[letter]),
      ),
    );
  return { operands, args: [equation, at(0), at(1)], gradients: draw.chance(0.2), slack: SLACK };
}

function distances(draw: Draw): Drawn {
  const [p, r, m] = [draw.size(2, 1500), draw.size(2, 1500), draw.size(1, 256)];
  return { operands: [operand(draw, [p, m]), operand(draw, [r, m])], slack: 256 };
}

/** Square matrices: one, or many small ones. */
function squares(draw: Draw, values: "wellConditioned" | "positiveDefinite", dtypes?: readonly DType[]) {
  const dtype = draw.pick(dtypes ?? (["float32", "float32", "float64"] as const));
  const shape = draw.chance(0.6) ? [draw.size(2, 400)] : [draw.size(2, 200), draw.size(2, 40)];
  const n = shape.at(-1)!;
  return { n, batch: shape.slice(0, -1), dtype, matrix: operand(draw, [...shape, n], { dtype, values }) };
}

/** For long sums, and matrices with a large condition number, errors may exceed a rounding error. */
const LINALG_SLACK = 256;
const ofSquare = (values: "wellConditioned" | "positiveDefinite", more: Partial<Drawn> = {}) => {
  return (draw: Draw): Drawn => ({ operands: [squares(draw, values).matrix], slack: LINALG_SLACK, ...more });
};

function tall(draw: Draw): Drawn {
  const n = draw.size(2, 200);
  const shape = draw.chance(0.7) ? [n + draw.size(1, 300), n] : [draw.size(2, 60), n, Math.max(1, n >> 1)];
  return { operands: [operand(draw, shape)], slack: LINALG_SLACK };
}

function systems(draw: Draw, values: "wellConditioned" | "positiveDefinite"): Drawn {
  const { matrix: a, batch, n, dtype } = squares(draw, values);
  return { operands: [a, operand(draw, [...batch, n, draw.size(1, 64)], { dtype })], slack: LINALG_SLACK };
}

const linalgDrawings: Family = {
  ...each("cholesky choleskyEx", ofSquare("positiveDefinite")),
  ...each("inv invEx det slogdet lu luFactor luFactorEx", ofSquare("wellConditioned")),
  ...each("logdet cond matrixRank pinv eigvalsh eigh ldlFactor ldlFactorEx", ofSquare("positiveDefinite")),
  ...each("matrixExp matrixNorm vectorNorm", ofSquare("wellConditioned")),
  ...each("eig eigvals", ofSquare("wellConditioned", { compared: null })), // the order of eigenvalues differs
  choleskyInverse: ofSquare("positiveDefinite", { compared: null }),
  choleskySolve: (draw) => {
    const drawn = systems(draw, "positiveDefinite");
    return { ...drawn, args: [at(1), at(0)] };
  },
  ...each("solve solveEx lstsq", (draw) => systems(draw, "wellConditioned")),
  tensorSolve: (draw) => {
    const n = draw.size(2, 400);
    return {
      operands: [operand(draw, [n, n], { values: "wellConditioned" }), operand(draw, [n])],
      slack: LINALG_SLACK,
    };
  },
  solveTriangular: (draw) => ({ ...systems(draw, "positiveDefinite"), options: { upper: draw.chance(0.5) } }),
  matrixPower: (draw) => ({
    operands: [squares(draw, "wellConditioned").matrix],
    args: [at(0), draw.integer(2, 9)],
    slack: 4 * LINALG_SLACK,
  }),
  ...each("qr geqrf", (draw) => ({ ...tall(draw), compared: null })),
  svd: (draw) => ({ ...tall(draw), compared: 1 }),
  svdvals: tall,
  multiDot(draw) {
    const [a, b, c, d] = [0, 1, 2, 3].map(() => draw.size(4, 500)) as [number, number, number, number];
    const operands = [
      [a, b],
      [b, c],
      [c, d],
    ].map((shape) => operand(draw, shape));
    return { operands, args: [[at(0), at(1), at(2)]], slack: 64 };
  },
  diagonal: (draw) => ({ operands: [operand(draw, draw.shape(2, draw.size(64, 2 ** 22)))] }),
  vander: (draw) => ({
    operands: [operand(draw, [draw.size(2, 2 ** 14)], { values: { low: -1, high: 1 } })],
    args: [at(0)],
    options: { N: draw.integer(2, 12) },
    ours: { options: { n: 8 } },
    theirs: { options: { N: 8 } },
  }),
  vecdot(draw) {
    const shape = draw.anyShape();
    return { operands: [operand(draw, shape), operand(draw, shape)], slack: 64 };
  },
};

/** These functions are outside of PyTorch's module for linear algebra. */
const outside = new Set(["choleskyInverse", "choleskySolve", "geqrf", "logdet"]);
const ours: Readonly<Record<string, string>> = { tensorSolve: "linalg.tensorsolve" };
const theirLinalg = (name: string): string => {
  const snake = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return ours[name] ?? (outside.has(name) ? snake : `linalg.${snake}`);
};

/** Factorizations in `linalg`, by name. */
export const linalg: Family = Object.fromEntries(
  Object.entries(linalgDrawings).map(([name, drawing]) => [
    `linalg.${name}`,
    (draw: Draw) => {
      const drawn = drawing(draw);
      return { ...drawn, theirs: { name: theirLinalg(name), ...drawn.theirs } };
    },
  ]),
);

export const products: Family = {
  ...each("matmul mm", product),
  bmm: (draw) => withoutSizes(batched(draw)),
  ...each("baddbmm addbmm", (draw, name) => {
    const { sizes: all, operands, ...drawn } = batched(draw);
    const [batch, m, n] = all as [number, number, number];
    const added = operand(draw, name === "baddbmm" ? [batch, m, n] : [m, n], { dtype: operands[0].dtype });
    return { ...drawn, operands: [added, ...operands], slack: 64 };
  }),
  addmm(draw) {
    const [[m, n, k], dtype] = [sizes(draw), productDType(draw)];
    const added = operand(draw, draw.chance(0.5) ? [n] : [m, n], { dtype });
    return { operands: [added, matrix(draw, [m, k], dtype), matrix(draw, [k, n], dtype)], slack: SLACK };
  },
  linear(draw) {
    const [[m, n, k], dtype] = [sizes(draw), productDType(draw)];
    const operands = [[m, k], [n, k], [n]].map((shape) => operand(draw, shape, { dtype }));
    return { operands, gradients: draw.chance(0.3), slack: SLACK };
  },
  addmv(draw) {
    const [m, k] = [draw.size(1, 4096), draw.size(1, 4096)];
    const operands = [operand(draw, [m]), matrix(draw, [m, k], "float32"), operand(draw, [k])];
    return { operands, slack: SLACK };
  },
  ...each("addr outer", (draw, name) => {
    const [m, n] = [draw.size(1, 2048), draw.size(1, 2048)];
    const vectors = [operand(draw, [m]), operand(draw, [n])];
    return { operands: name === "addr" ? [operand(draw, [m, n]), ...vectors] : vectors };
  }),
  ...each("dot inner", (draw) => {
    const shape = [draw.size(8, 2 ** 22)];
    return { operands: [operand(draw, shape), operand(draw, shape)], slack: 256 };
  }),
  kron(draw) {
    const shapes = [0, 1].map(() => [draw.size(1, 48), draw.size(1, 48)]);
    return { operands: shapes.map((shape) => operand(draw, shape)) };
  },
  tensordot(draw) {
    const [a, b, c, d] = [0, 1, 2, 3].map(() => draw.size(2, 48)) as [number, number, number, number];
    return { operands: [operand(draw, [a, b, c]), operand(draw, [b, c, d])], args: [at(0), at(1), 2], slack: SLACK };
  },
  einsum,
  bilinear(draw) {
    const [batch, first, second, out] = [draw.size(1, 256), draw.size(2, 64), draw.size(2, 64), draw.size(2, 64)];
    const shapes = [[batch, first], [batch, second], [out, first, second], [out]];
    return { operands: shapes.map((shape) => operand(draw, shape)), slack: SLACK };
  },
  cross: (draw) => {
    const shape = [draw.size(1, 2 ** 20), 3];
    return { operands: [operand(draw, shape), operand(draw, shape)], options: { dim: -1 } };
  },
  cdist: distances,
  pdist: (draw) => ({ operands: [operand(draw, [draw.size(2, 1200), draw.size(1, 128)])], slack: 256 }),
  ...each("flashAttention scaledDotProductAttention", (draw, name) => {
    const [batch, heads] = [draw.size(1, 8), draw.size(1, 16)];
    const [queries, keys] = [draw.size(1, 1024), draw.size(16, 1024)];
    const headDim = draw.pick([32, 48, 64, 64, 80, 96, 128]);
    const isCausal = draw.chance(0.4);
    const dtype = draw.pick<DType>(["float32", "float32", "bfloat16"]);
    const lengths = [isCausal ? keys : queries, keys, keys];
    return {
      operands: lengths.map((length) => operand(draw, [batch, heads, length, headDim], { dtype })),
      gradients: draw.chance(0.3),
      slack: SLACK,
      options: { isCausal },
      ours: name === "flashAttention" ? { options: { causal: isCausal } } : {},
      theirs: { name: "nn.functional.scaled_dot_product_attention" },
    };
  }),
};
