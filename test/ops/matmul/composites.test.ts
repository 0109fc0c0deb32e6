/** Operations on matrices that are composed of others: Kronecker and cross products, covariances, distances, traces. */
import { describe, expect, test } from "bun:test";
import { enableGrad } from "../../../src/autograd/modes.ts";
import { withBackend } from "../../../src/backend/policy.ts";
import { ArgumentError, DTypeError, ShapeError } from "../../../src/core/errors.ts";
import { ones, zeros } from "../../../src/ops/creation/full.ts";
import { tensor } from "../../../src/ops/creation/tensor.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import { gradcheck } from "../../../src/ops/gradient/gradcheck.ts";
import { type CdistOptions, cdist } from "../../../src/ops/matmul/cdist.ts";
import { type CovarianceOptions, corrcoef, cov } from "../../../src/ops/matmul/covariance.ts";
import { cross } from "../../../src/ops/matmul/cross.ts";
import { kron } from "../../../src/ops/matmul/kron.ts";
import "../../../src/ops/methods.ts";
import { trace } from "../../../src/ops/reduction/trace.ts";
import { isFloat } from "../../../src/tensor/dtype.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { errorOf } from "../../support/errors.ts";
import { tested, testTable } from "../run.ts";
import type { Block } from "../samples.ts";
import type { OperationRow, Round } from "../table.ts";
import { roundingsOf } from "../wanted.ts";
import { matrices, productDTypes, wrapped } from "./products.ts";

const floats = productDTypes.slice(0, 4);
const alone = (shape: readonly number[]) => ({ inputs: [{ shape }], options: undefined });

const traceRow: OperationRow = {
  name: "trace",
  compute: ([x]) => trace(x),
  dtypes: productDTypes,
  samples: [
    ...[
      [0, 0],
      [1, 1],
      [4, 4],
      [3, 7],
      [7, 3],
      [0, 3],
      [130, 130],
    ].map(alone),
    { inputs: [{ shape: [5, 6], layout: "transposed" as const }], options: undefined },
  ],
  oracle([x], _, round) {
    const [m, n] = x.shape as [number, number];
    let sum = 0;
    for (let i = 0; i < Math.min(m, n); i++) sum = round(sum + x.values[i * n + i]);
    return { shape: [], values: [sum], dtype: isFloat(x.dtype) ? x.dtype : "int64" };
  },
  accuracy: { flash: true },
  gradient: true,
};

/** Coordinates of an element of a shape. */
const coordinates = (index: number, shape: readonly number[]): number[] => {
  let left = index;
  return shape
    .toReversed()
    .map((size) => {
      const own = left % size;
      left = Math.floor(left / size);
      return own;
    })
    .reverse();
};
const positionOf = (at: readonly number[], shape: readonly number[]): number =>
  shape.reduce((position, size, axis) => position * size + at[axis], 0);

function kronOracle([a, b]: readonly Block[], _: undefined, round: Round) {
  const rank = Math.max(a.shape.length, b.shape.length);
  const full = ({ shape }: Block): number[] => [...Array<number>(rank - shape.length).fill(1), ...shape];
  const [left, right] = [full(a), full(b)];
  const shape = left.map((size, axis) => size * right[axis]);
  const count = shape.reduce((all, size) => all * size, 1);
  const values = Array.from({ length: count }, (_value, index) => {
    const at = coordinates(index, shape);
    const x =
      a.values[
        positionOf(
          at.map((own, axis) => Math.floor(own / right[axis])),
          left,
        )
      ];
    const y =
      b.values[
        positionOf(
          at.map((own, axis) => own % right[axis]),
          right,
        )
      ];
    return wrapped(a.dtype, round(x * y));
  });
  return { shape, values };
}

const kronRow: OperationRow = {
  name: "kron",
  compute: ([a, b]) => kron(a, b),
  dtypes: productDTypes,
  samples: [
    matrices([2, 3], [4, 5]),
    matrices([3], [2, 2], "strided", "transposed"),
    matrices([2, 2], [3]),
    matrices([7, 1], [1, 9]),
    matrices([2, 0], [3, 2]),
    matrices([2, 1, 3, 2], [2, 2, 1, 3]),
    matrices([2, 1, 2, 1, 2], [2, 2, 1, 3, 2]),
    matrices([2, 2, 2, 1, 2, 1], [3, 2]),
  ],
  oracle: kronOracle,
  accuracy: { flash: true },
  sumLength: () => 64,
  gradient: true,
};

interface Along {
  readonly dim: number;
}

const crossRow: OperationRow<Along> = {
  name: "cross",
  compute: ([a, b], options) => cross(a, b, options),
  dtypes: productDTypes,
  samples: (
    [
      [[3], [3], -1],
      [[5, 3], [5, 3], 1],
      [[5, 3], [1, 3], -1],
      [[3, 4], [3, 1], 0],
      [[2, 3, 4], [2, 3, 4], 1],
      [[0, 3], [0, 3], -1],
    ] as const
  ).map(([a, b, dim]) => ({ inputs: [{ shape: a }, { shape: b }], options: { dim } })),
  oracle([a, b], { dim }, round) {
    const shape = a.shape.map((size, axis) => Math.max(size && b.shape[axis], 0) && Math.max(size, b.shape[axis]));
    const axis = dim < 0 ? dim + shape.length : dim;
    const read = (x: Block, at: readonly number[]): number =>
      x.values[
        positionOf(
          at.map((own, i) => (x.shape[i] === 1 ? 0 : own)),
          x.shape,
        )
      ];
    const count = shape.reduce((all, size) => all * size, 1);
    const values = Array.from({ length: count }, (_value, index) => {
      const at = coordinates(index, shape);
      const [i, j] = [at.with(axis, (at[axis] + 1) % 3), at.with(axis, (at[axis] + 2) % 3)];
      return wrapped(a.dtype, round(round(read(a, i) * read(b, j)) - round(read(a, j) * read(b, i))));
    });
    return { shape, values };
  },
  accuracy: { flash: true },
  sumLength: () => 12,
  gradient: true,
};

interface Weights {
  readonly correction?: number;
  readonly fweights?: readonly number[];
  readonly aweights?: readonly number[];
}

const covarianceOptions = ({ correction, fweights, aweights }: Weights, like: Tensor): CovarianceOptions => ({
  ...(correction !== undefined && { correction }),
  ...(fweights && { fweights: tensor([...fweights], { dtype: "int32" }) }),
  ...(aweights && { aweights: tensor([...aweights], { dtype: like.dtype as "float32" }) }),
});

/**
 * NumPy's definition, except that a matrix of one row keeps its axes. `ofTerms` maps each term of a sum, for example to
 * its magnitude.
 */
function covariance(
  x: Block,
  { correction = 1, fweights, aweights }: Weights,
  round: Round,
  ofTerms: (term: number) => number = (term) => term,
): number[][] {
  const [rows, n] = (x.shape.length === 2 ? x.shape : [1, x.shape[0] ?? 1]) as [number, number];
  const w = Array.from({ length: n }, (_, k) => (fweights?.[k] ?? 1) * (aweights?.[k] ?? 1));
  const total = w.reduce((all, own) => all + own, 0);
  const lost = aweights ? (correction * w.reduce((all, own, k) => all + own * aweights[k], 0)) / total : correction;
  const scale = Math.max(0, total - lost);
  const row = (i: number): number[] => Array.from(x.values.slice(i * n, (i + 1) * n));
  const centered = Array.from({ length: rows }, (_, i) => {
    const mean = round(row(i).reduce((all, value, k) => round(all + round(value * w[k])), 0) / total);
    return row(i).map((value) => round(value - mean));
  });
  return centered.map((left) =>
    centered.map((right) =>
      round(left.reduce((all, value, k) => round(all + ofTerms(round(value * w[k] * right[k]))), 0) / scale),
    ),
  );
}

const covRow: OperationRow<Weights> = {
  name: "cov",
  compute: ([x], options) => cov(x, covarianceOptions(options, x)),
  dtypes: floats,
  samples: (
    [
      [[3, 5], {}],
      [[2, 40], { correction: 0 }],
      [[7], {}],
      [[1, 6], { correction: 2 }],
      [[2, 4], { fweights: [1, 3, 0, 2] }],
      [[2, 4], { aweights: [0.5, 0.25, 1, 2] }],
      [[3, 4], { fweights: [1, 3, 0, 2], aweights: [0.5, 0.25, 1, 2], correction: 0.5 }],
      [[33, 65], {}],
    ] as const
  ).map(([shape, options]) => ({ inputs: [{ shape }], options, gradient: shape[0] < 30 })),
  oracle([x], options, round) {
    const values = covariance(x, options, round);
    // A sum of products. In float64, the plain computation and the oracle are the same, so their difference is no
    // bound.
    const terms = roundingsOf(x.shape.at(-1) ?? 1, x.dtype);
    const roundings = covariance(x, options, round, Math.abs).flatMap((row) => row.map((sum) => terms * sum));
    return { shape: values.length === 1 ? [] : [values.length, values.length], values: values.flat(), roundings };
  },
  accuracy: { flash: true },
  gradientRoundings: () => 64,
  gradient: true,
};

const corrcoefRow: OperationRow = {
  name: "corrcoef",
  compute: ([x]) => corrcoef(x),
  dtypes: floats,
  samples: [[3, 5], [2, 40], [7], [9, 33]].map(alone),
  oracle([x], _, round) {
    const c = covariance(x, {}, round);
    const values = c.map((row, i) => row.map((value, j) => round(value / round(Math.sqrt(c[i][i] * c[j][j])))));
    return { shape: values.length === 1 ? [] : [values.length, values.length], values: values.flat() };
  },
  accuracy: { flash: true, ulps: 2 },
  gradientRoundings: () => 64,
  gradient: true,
};

const distance = (p: number, differences: readonly number[], round: Round): number => {
  const sizes = differences.map(Math.abs);
  if (p === 0) return sizes.filter((size) => size !== 0).length;
  if (p === Number.POSITIVE_INFINITY) return Math.max(0, ...sizes);
  return round(sizes.reduce((all, size) => round(all + round(size ** p)), 0) ** (1 / p));
};

const cdistRow: OperationRow<CdistOptions> = {
  name: "cdist",
  compute: ([a, b], options) => cdist(a, b, options),
  dtypes: floats,
  samples: [
    ...[0, 0.5, 1, 1.5, 2, 3, Number.POSITIVE_INFINITY].map((p) => ({
      name: `p ${p}`,
      inputs: [{ shape: [4, 3] }, { shape: [5, 3] }],
      options: { p },
    })),
    ...(
      [
        [
          [2, 4, 3],
          [5, 3],
        ],
        [
          [2, 1, 4, 3],
          [3, 5, 3],
        ],
        [
          [4, 1],
          [5, 1],
        ],
        [
          [4, 0],
          [5, 0],
        ],
        [
          [0, 3],
          [5, 3],
        ],
        [
          [4, 3],
          [0, 3],
        ],
        [
          [33, 20],
          [40, 20],
        ],
      ] as const
    ).map(([a, b]) => ({
      name: `[${a}] and [${b}]`,
      inputs: [{ shape: a }, { shape: b }],
      options: {},
      gradient: a[0] < 30,
    })),
  ],
  oracle([a, b], { p = 2 }, round) {
    const [m, n, k] = [a.shape.at(-2)!, b.shape.at(-2)!, a.shape.at(-1)!];
    const lead = [...a.shape.slice(0, -2)];
    const own = b.shape.slice(0, -2);
    const batch = Array.from(
      { length: Math.max(lead.length, own.length) },
      (_, axis, rank = Math.max(lead.length, own.length)) =>
        Math.max(lead.at(axis - rank) ?? 1, own.at(axis - rank) ?? 1),
    );
    const placeOf = (at: readonly number[], shape: readonly number[]): number =>
      positionOf(
        shape.map((size, axis) => (size === 1 ? 0 : at[axis + at.length - shape.length])),
        shape,
      );
    const count = batch.reduce((all, size) => all * size, 1);
    const values = Array.from({ length: count * m * n }, (_, index) => {
      const at = coordinates(Math.floor(index / (m * n)), batch);
      const [i, j] = [Math.floor((index % (m * n)) / n), index % n];
      const [left, right] = [(placeOf(at, lead) * m + i) * k, (placeOf(at, own) * n + j) * k];
      const differences = Array.from({ length: k }, (_value, c) => round(a.values[left + c] - b.values[right + c]));
      return distance(p, differences, round);
    });
    return { shape: [...batch, m, n], values };
  },
  accuracy: { flash: true, ulps: 4 },
  sumLength: () => 64,
  gradient: true,
};

testTable("traces, Kronecker and cross products", [traceRow, kronRow]);
testTable("cross products", [crossRow]);
testTable("covariances", [covRow]);
testTable("correlations", [corrcoefRow]);
testTable("distances", [cdistRow]);

describe.each(tested)("products of several operations on %s", (backend) => {
  const on = <Result>(body: () => Result): Result => withBackend(backend, body);

  test("the gradient of a distance is 0 if two points are equal", () => {
    on(() => {
      for (const p of [0, 0.5, 1, 1.5, 2, 3, Number.POSITIVE_INFINITY]) {
        const x = tensor(
          [
            [1, 2],
            [4, 6],
          ],
          { requiresGrad: true },
        );
        const [gradient] = grad([cdist(x, tensor([[1, 2]]), { p }).sum()], [x]) as [Tensor];
        const [equal, other] = gradient.toArray() as number[][];
        expect(equal).toEqual([0, 0]);
        expect(other.some((value) => value > 0)).toBe(p !== 0);
      }
    });
  });

  test("distances by products equal those by differences, also far from 0", () => {
    on(() => {
      const x = Array.from({ length: 40 }, (_, i) =>
        Array.from({ length: 8 }, (_value, j) => 1000 + Math.sin(i * 8 + j)),
      );
      const a = tensor(x);
      const exact = cdist(a, a).toArray() as number[][];
      const byProducts = cdist(a, a, { computeMode: "useMmForEuclidDist" }).toArray() as number[][];
      const off = exact.flatMap((row, i) => row.map((value, j) => Math.abs(value - byProducts[i][j])));
      expect(Math.max(...off)).toBeLessThan(3e-3);
    });
  });

  test("cdist uses products for more than 25 points on a side, as in PyTorch", () => {
    on(() => {
      const points = (count: number) => tensor(Array.from({ length: count }, (_, at) => [1e4 + at, Math.sin(at)]));
      for (const [m, n] of [
        [25, 25],
        [26, 1],
        [1, 26],
      ] as const) {
        const [a, b] = [points(m), points(n)];
        const computeMode = Math.max(m, n) > 25 ? "useMmForEuclidDist" : "donotUseMmForEuclidDist";
        const [own, other] = [computeMode, "useMmForEuclidDistIfNecessary"] as const;
        expect(cdist(a, b, { computeMode: other }).toArray()).toEqual(cdist(a, b, { computeMode: own }).toArray());
        if (own === "useMmForEuclidDist") expect(cdist(a, b, { computeMode: own })).not.toEqual(cdist(a, b));
      }
    });
  });

  test("close points keep their distance", () => {
    on(() => {
      const a = tensor([[4096, 1]]);
      expect(cdist(a, tensor([[4096, 1 + 2 ** -20]])).item()).toBe(2 ** -20);
    });
  });
});

test("gradients of distances have gradients, for either order of the points", () => {
  const a = tensor(
    [
      [0.3, -1.2],
      [2, 0.7],
      [1.1, 0.4],
    ],
    { dtype: "float64", requiresGrad: true },
  );
  const b = tensor(
    [
      [0.9, 0.1],
      [-0.4, 1.6],
    ],
    { dtype: "float64", requiresGrad: true },
  );
  for (const options of [{ p: 1.5 }, { p: 2 }, { p: 3 }, { computeMode: "useMmForEuclidDist" as const }]) {
    gradcheck((x: Tensor, y: Tensor) => cdist(x, y, options), [a, b]);
    gradcheck(
      (x: Tensor, y: Tensor) => {
        const inner = enableGrad(() => grad([cdist(x, y, options).pow(2).sum()], [x, y], { createGraph: true }));
        return inner[0].square().sum().add(inner[1].sum());
      },
      [a, b],
    );
  }
});

describe("covariances equal their definition", () => {
  test("covariances of integers are float32, and a constant variable has no correlation", () => {
    expect(cov(tensor([[1, 2, 3]], { dtype: "int64" })).dtype as string).toBe("float32");
    expect(
      corrcoef(
        tensor([
          [1, 1],
          [1, 2],
        ]),
      ).toArray(),
    ).toEqual([
      [Number.NaN, Number.NaN],
      [Number.NaN, 1],
    ]);
    expect(corrcoef(tensor([1, 2, 4])).item()).toBe(1);
    expect(cov(tensor([[1, 2]]), { correction: 3 }).item()).toBe(Number.POSITIVE_INFINITY);
    expect(cov(zeros([2, 0])).toArray()).toEqual([
      [Number.NaN, Number.NaN],
      [Number.NaN, Number.NaN],
    ]);
  });

  test("the gradient of a weight of cov equals finite differences", () => {
    const x = tensor(
      [
        [0.3, -1.2, 2, 0.7],
        [1, 0.5, -0.4, 1.6],
      ],
      { dtype: "float64", requiresGrad: true },
    );
    const w = tensor([0.5, 1.5, 0.75, 1], { dtype: "float64", requiresGrad: true });
    gradcheck((own: Tensor, aweights: Tensor) => cov(own, { aweights }), [x, w]);
  });

  test.each([
    ["three axes", () => cov(zeros([2, 2, 2])), ShapeError, "at most two axes"],
    ["bools", () => cov(zeros([2, 2], { dtype: "bool" })), DTypeError, "expected numbers"],
    ["float fweights", () => cov(zeros([2, 2]), { fweights: ones([2]) }), DTypeError, "to be integers, got float32[2]"],
    [
      "integer aweights",
      () => cov(zeros([2, 2]), { aweights: ones([2], { dtype: "int32" }) }),
      DTypeError,
      "to be floats",
    ],
    ["too few weights", () => cov(zeros([2, 2]), { aweights: ones([3]) }), ShapeError, "a vector of 2"],
    [
      "a negative weight",
      () => cov(zeros([2, 2]), { aweights: tensor([1, -1]) }),
      ArgumentError,
      "negative one at index 1",
    ],
    ["weights of 0", () => cov(zeros([2, 2]), { aweights: zeros([2]) }), ArgumentError, "whose sum is not 0"],
  ] as const)("covariances reject %s", (_, call, kind, message) => {
    const error = errorOf(call);
    expect(error).toBeInstanceOf(kind);
    expect(error.message).toContain(message);
  });
});
