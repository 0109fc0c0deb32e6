/** Every factorization of drawn batches and sizes: residuals and orthogonality in float64. */
import { describe, expect, test } from "bun:test";
import type { BackendName } from "../../src/backend/names.ts";
import { choleskyEx } from "../../src/linalg/cholesky/cholesky.ts";
import { choleskyInverse, choleskySolve } from "../../src/linalg/cholesky/solve.ts";
import { eigh, eigvalsh } from "../../src/linalg/eigh/eigh.ts";
import { ldlFactorEx, ldlSolve } from "../../src/linalg/ldl/ldl.ts";
import { lu, luFactorEx } from "../../src/linalg/lu/factor.ts";
import { invEx } from "../../src/linalg/lu/inverse.ts";
import { luSolve, solveEx } from "../../src/linalg/lu/solve.ts";
import { geqrf } from "../../src/linalg/qr/geqrf.ts";
import { householderProduct } from "../../src/linalg/qr/householder_product.ts";
import { lstsq } from "../../src/linalg/qr/lstsq.ts";
import { ormqr } from "../../src/linalg/qr/ormqr.ts";
import { qr } from "../../src/linalg/qr/qr.ts";
import { pinv } from "../../src/linalg/svd/pinv.ts";
import { svd, svdvals } from "../../src/linalg/svd/svd.ts";
import { solveTriangular } from "../../src/linalg/triangular/triangular.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { repeats } from "../support/repeats.ts";
import { type Budget, type Drawn, draw, type Kind } from "./draw.ts";
import { residualOf } from "./eigenvectors.ts";
import { families, identity, type Matrix, matrix, product, transposed } from "./matrices.ts";
import { departure, distance, gram, inverse, leastSquares, orthogonality, solution, turned } from "./residuals.ts";
import { batchOf, inDType, matricesIn, on, places, type RealDType, THRESHOLD } from "./run.ts";

/** One case: its matrices as a tensor, and other drawn values. */
interface Case extends Drawn {
  readonly x: Tensor;
  readonly dtype: RealDType;
}

/** The ratios measured for matrix `at` of a batch, by the name of the measure. */
type Residuals = (a: Matrix, at: number) => Readonly<Record<string, number>>;

interface Factorization {
  readonly kind: Kind;
  readonly run: (own: Case) => Residuals;
}

/** The codes of the matrices, 0 for success. */
const codesOf = (info: Tensor): number[] => Array.from(info.dataSync() as ArrayLike<number>, Number);
/** Rows of numbers, one for each matrix. */
const rowsOf = (x: Tensor): Float64Array[] => {
  const values = Float64Array.from(x.dataSync() as ArrayLike<number>);
  const width = x.shape.at(-1)!;
  return Array.from({ length: x.shape[0] }, (_, at) => values.slice(at * width, (at + 1) * width));
};
const hasNumbers = ({ values }: Matrix): boolean => values.every(Number.isFinite);
const lower = (x: Matrix, unit: boolean): Matrix =>
  matrix(x.rows, x.columns, (i, j) => (i === j && unit ? 1 : j <= i ? x.values[i * x.columns + j] : 0));
const upper = (x: Matrix, rows: number): Matrix =>
  matrix(rows, x.columns, (i, j) => (j >= i ? x.values[i * x.columns + j] : 0));
/** Right-hand sides, the same for all matrices of a batch. */
const sides = ({ rows, choose, dtype }: Case): Matrix =>
  inDType(families.random(rows, choose.of([1, 2, 5, 40]), 1 + choose.below(1 << 20)), dtype);

/** Returns an infinite ratio for a wrong order or sign, otherwise 0. */
const broken = (isBroken: boolean): number => (isBroken ? Number.POSITIVE_INFINITY : 0);
const isDescending = (values: Float64Array): boolean =>
  values.every((value, at) => at === 0 || values[at - 1] >= value);

/** Whether a solution may overflow the dtype: a pivot is 0, or tiny compared with right-hand sides of about 1. */
const mayOverflow = (factors: Matrix, dtype: RealDType): boolean => {
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < factors.rows; i++) least = Math.min(least, Math.abs(factors.values[i * factors.columns + i]));
  return least < (dtype === "float32" ? 1e-20 : 1e-250);
};

const factorizations: Readonly<Record<string, Factorization>> = {
  cholesky: {
    kind: "definite",
    run: (own) => {
      const isUpper = own.choose.flag();
      const b = sides(own);
      const { factor, info } = choleskyEx(own.x, { upper: isUpper });
      const factors = matricesIn(factor);
      const codes = codesOf(info);
      const x = matricesIn(choleskySolve(batchOf([b], own.dtype), factor, { upper: isUpper }));
      const inverses = matricesIn(choleskyInverse(factor, { upper: isUpper }));
      return (a, at) => {
        const l = isUpper ? transposed(factors[at]) : factors[at];
        if (codes[at] !== 0) return {};
        const ratios = { factor: departure(a, product(l, transposed(l)), own.dtype, "cholesky") };
        if (mayOverflow(l, own.dtype)) return ratios;
        return {
          ...ratios,
          solution: solution(a, x[at], b, own.dtype, "choleskySolve"),
          inverse: inverse(a, inverses[at], own.dtype, "choleskyInverse"),
        };
      };
    },
  },
  lu: {
    kind: "general",
    run: ({ x, dtype }) => {
      const factors = lu(x);
      const [p, l, u] = [matricesIn(factors.p), matricesIn(factors.l), matricesIn(factors.u)];
      return (a, at) => ({ factors: departure(a, product(product(p[at], l[at]), u[at]), dtype, "lu") });
    },
  },
  solve: {
    kind: "square",
    run: (own) => {
      const b = sides(own);
      const { lu: factors, pivots } = luFactorEx(own.x);
      const again = matricesIn(luSolve(factors, pivots, batchOf([b], own.dtype)));
      const { result, info } = solveEx(own.x, batchOf([b], own.dtype));
      const [u, x, inverses] = [matricesIn(factors), matricesIn(result), matricesIn(invEx(own.x).inverse)];
      const codes = codesOf(info);
      return (a, at) => {
        if (codes[at] !== 0 || mayOverflow(u[at], own.dtype)) return {};
        return {
          solve: solution(a, x[at], b, own.dtype, "solve"),
          luSolve: solution(a, again[at], b, own.dtype, "luSolve"),
          inv: inverse(a, inverses[at], own.dtype, "inv"),
        };
      };
    },
  },
  qr: {
    kind: "general",
    run: ({ x, dtype, choose }) => {
      const mode = choose.of(["reduced", "complete"] as const);
      const found = qr(x, mode);
      const [q, r] = [matricesIn(found.q), matricesIn(found.r)];
      const alone = matricesIn(qr(x, "r").r);
      return (a, at) => ({
        factors: departure(a, product(q[at], r[at]), dtype, "qr"),
        q: orthogonality(q[at], dtype, "qr"),
        "r alone": gram(a, alone[at], dtype, "qr, r"),
      });
    },
  },
  geqrf: {
    kind: "tall",
    run: (own) => {
      const { x, dtype } = own;
      const { a: reflections, tau } = geqrf(x);
      const [q, r] = [matricesIn(householderProduct(reflections, tau)), matricesIn(reflections)];
      const b = sides(own);
      const products = matricesIn(
        ormqr(
          reflections,
          tau,
          batchOf(
            own.matrices.map(() => b),
            dtype,
          ),
          { transpose: true },
        ),
      );
      return (a, at) => ({
        factors: departure(a, product(q[at], upper(r[at], q[at].columns)), dtype, "geqrf"),
        q: orthogonality(q[at], dtype, "householderProduct"),
        ormqr: turned(
          q[at],
          b,
          matrix(q[at].columns, b.columns, (i, j) => products[at].values[i * b.columns + j]),
          dtype,
          "ormqr",
        ),
      });
    },
  },
  eigh: {
    kind: "symmetric",
    run: ({ x, dtype, choose }) => {
      const UPLO = choose.of(["L", "U"] as const);
      const { eigenvalues, eigenvectors } = eigh(x, { UPLO });
      const [values, vectors, alone] = [rowsOf(eigenvalues), matricesIn(eigenvectors), rowsOf(eigvalsh(x, UPLO))];
      return (a, at) => ({
        eigenvectors: residualOf(a, { values: [...values[at]], vectors: vectors[at] }, dtype, "eigh"),
        eigvalsh: distance(alone[at], values[at], dtype, "eigvalsh"),
        order: broken(!isDescending(values[at].toReversed())),
      });
    },
  },
  svd: {
    kind: "general",
    run: ({ x, dtype, choose }) => {
      const found = svd(x, { fullMatrices: choose.flag() });
      const [u, s, vh, alone] = [matricesIn(found.u), rowsOf(found.s), matricesIn(found.vh), rowsOf(svdvals(x))];
      return (a, at) => {
        const lengths = s[at];
        const weighted = matrix(a.rows, vh[at].rows, (i, k) =>
          k < lengths.length ? u[at].values[i * u[at].columns + k] * lengths[k] : 0,
        );
        return {
          factors: departure(a, product(weighted, vh[at]), dtype, "svd"),
          u: orthogonality(u[at], dtype, "svd, u"),
          vh: orthogonality(transposed(vh[at]), dtype, "svd, vh"),
          svdvals: distance(alone[at], lengths, dtype, "svdvals"),
          order: broken(!isDescending(lengths) || lengths.some((value) => value < 0)),
        };
      };
    },
  },
  lstsq: {
    kind: "general",
    run: (own) => {
      const driver = own.choose.of(["gelsy", "gelsd", "gelss"] as const);
      const b = sides(own);
      const x = matricesIn(
        lstsq(
          own.x,
          batchOf(
            own.matrices.map(() => b),
            own.dtype,
          ),
          { driver },
        ).solution,
      );
      return (a, at) => (hasNumbers(x[at]) ? { [driver]: leastSquares(a, x[at], b, own.dtype, driver) } : {});
    },
  },
  pinv: {
    kind: "general",
    run: ({ x, dtype }) => {
      const inverses = matricesIn(pinv(x));
      return (a, at) => {
        if (!hasNumbers(inverses[at])) return {};
        return { pinv: leastSquares(a, inverses[at], identity(a.rows), dtype, "pinv") };
      };
    },
  },
  ldl: {
    kind: "symmetric",
    run: (own) => {
      const { ld, pivots, info } = ldlFactorEx(own.x);
      const b = sides(own);
      const x = matricesIn(
        ldlSolve(
          ld,
          pivots,
          batchOf(
            own.matrices.map(() => b),
            own.dtype,
          ),
        ),
      );
      const codes = codesOf(info);
      return (a, at) =>
        codes[at] === 0 && hasNumbers(x[at]) ? { ldlSolve: solution(a, x[at], b, own.dtype, "ldlSolve") } : {};
    },
  },
  triangular: {
    kind: "square",
    run: (own) => {
      const options = { upper: own.choose.flag(), unitriangular: own.choose.flag() };
      const b = sides(own);
      const x = matricesIn(solveTriangular(own.x, batchOf([b], own.dtype), options));
      return (a, at) => {
        const triangle = options.upper
          ? transposed(lower(transposed(a), options.unitriangular))
          : lower(a, options.unitriangular);
        if (!hasNumbers(x[at])) return {};
        return { solution: solution(triangle, x[at], b, own.dtype, "solveTriangular") };
      };
    },
  },
};

/** Slow backends get small matrices. */
const budgets: Readonly<Record<string, Budget>> = {
  cpu: { most: 300, operations: 16e6 },
  reference: { most: 40, operations: 2e5 },
  metal: { most: 70, operations: 5e5 },
};
const cases: Readonly<Record<string, number>> = {
  cpu: repeats({ usual: 6, all: 75 }),
  reference: repeats({ usual: 1, all: 20 }),
  metal: repeats({ usual: 1, all: 8 }),
};

/** Draws a case and computes it; an error contains the seed that reproduces it. */
function check(name: string, backend: BackendName, dtype: RealDType, seed: number): void {
  const { kind, run } = factorizations[name];
  const drawn = draw(kind, dtype, budgets[backend], seed);
  const { matrices, rows, columns } = drawn;
  try {
    const residuals = on(backend, true, () => run({ ...drawn, dtype, x: batchOf(matrices, dtype) }));
    for (const [at, a] of matrices.entries())
      for (const [of, ratio] of Object.entries(residuals(a, at)))
        if (!(ratio < THRESHOLD)) throw new Error(`${of} of the matrix ${at} is off by ${ratio} roundings`);
  } catch (error) {
    const what = `${name}, seed ${seed}: ${matrices.length} x ${rows} x ${columns}, ${drawn.families.join(", ")}`;
    throw new Error(`${what}: ${(error as Error).message}`, { cause: error });
  }
}

for (const [place, { backend, dtype }] of places.entries())
  describe(`the linear algebra of drawn matrices, ${backend} ${dtype}`, () => {
    // metal computes ldl on the cpu backend
    for (const [index, name] of Object.keys(factorizations).entries())
      if (backend !== "metal" || name !== "ldl")
        test(`${name} is accurate in ${cases[backend]} drawn cases`, () => {
          expect(cases[backend]).toBeGreaterThan(0);
          for (let at = 0; at < cases[backend]; at++) check(name, backend, dtype, 1 + at * 1000 + index * 10 + place);
        });
  });
