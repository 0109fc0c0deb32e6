/** Draws batches of matrices of every family, with sizes and batches limited by a budget. */
import {
  definiteFamilies,
  families,
  identity,
  type Matrix,
  matrix,
  product,
  scaled,
  symmetricFamilies,
  transposed,
} from "./matrices.ts";
import { mulberry32, randomNumbers } from "./random.ts";
import { inDType, type RealDType } from "./run.ts";

/** The shapes that a factorization accepts: any matrix, one with at most as many columns as rows, or a square one. */
export type Kind = "general" | "tall" | "square" | "symmetric" | "definite";

/** A batch, and how it was drawn, for error messages. */
export interface Drawn {
  readonly matrices: readonly Matrix[];
  readonly families: readonly string[];
  readonly rows: number;
  readonly columns: number;
  readonly choose: Chooser;
}

/** Random choices of one case. */
export class Chooser {
  readonly #uniform: () => number;

  constructor(seed: number) {
    this.#uniform = mulberry32(seed);
  }

  below = (count: number): number => Math.floor(this.#uniform() * count);
  flag = (): boolean => this.#uniform() < 0.5;
  of = <Value>(values: readonly Value[]): Value => values[this.below(values.length)]!;
  /** Draws a whole number from 1 to `most`, as often below √most as above. */
  size = (most: number): number =>
    this.flag() ? 1 + this.below(most) : Math.min(most, Math.floor(Math.exp(this.#uniform() * Math.log(most + 1))));
}

type Make = (rows: number, columns: number, choose: Chooser) => Matrix;

const seed = (choose: Chooser): number => 1 + choose.below(1 << 20);

/** Covariance matrices from few samples: rank 1 to 5. */
const covariance: Make = (size, _, choose) => {
  const samples = 1 + choose.below(5);
  const values = randomNumbers(size * samples, seed(choose));
  const x: Matrix = { rows: size, columns: samples, values };
  return scaled(product(x, transposed(x)), 1 / samples);
};

const tridiagonal: Make = (size, _, choose) => {
  const values = randomNumbers(2 * size, seed(choose));
  return matrix(size, size, (i, j) =>
    i === j ? values[i] : Math.abs(i - j) === 1 ? values[size + Math.min(i, j)] : 0,
  );
};

/** A matrix of zeros, except a block somewhere on the diagonal. */
const island: Make = (size, _, choose) => {
  const width = choose.size(size);
  const first = choose.below(size - width + 1);
  const inner = covariance(width, width, choose);
  return matrix(size, size, (i, j) => {
    const isInside = Math.min(i, j) >= first && Math.max(i, j) < first + width;
    return isInside ? inner.values[(i - first) * width + j - first] : 0;
  });
};

/** The identity with permuted rows; a symmetric one swaps pairs. */
const permutation: Make = (rows, columns, choose) => {
  const place = Array.from({ length: rows }, (_, i) => i);
  for (let i = rows - 1; i > 0; i--) {
    const other = choose.below(i + 1);
    [place[i], place[other]] = [place[other], place[i]];
  }
  return matrix(rows, columns, (i, j) => Number(place[i] === j));
};

const swaps: Make = (size, _, choose) => {
  const shift = choose.below(size);
  return matrix(size, size, (i, j) => Number((i + j) % size === shift));
};

const seeded =
  (make: (rows: number, columns: number, seed: number) => Matrix): Make =>
  (rows, columns, choose) =>
    make(rows, columns, seed(choose));

const all = (
  named: Readonly<Record<string, (...size: [number, number, number]) => Matrix>>,
): Readonly<Record<string, Make>> =>
  Object.fromEntries(Object.entries(named).map(([name, make]) => [name, seeded(make)]));
const ofSize = (
  named: Readonly<Record<string, (size: number, seed: number) => Matrix>>,
): Readonly<Record<string, Make>> =>
  all(
    Object.fromEntries(
      Object.entries(named).map(([name, make]) => [name, (rows: number, _: number, own: number) => make(rows, own)]),
    ),
  );

const general: Readonly<Record<string, Make>> = {
  ...all(families),
  permutation,
  "of low rank": (rows, columns, choose) => {
    const rank = Math.min(rows, columns, 1 + choose.below(3));
    const [left, right] = [randomNumbers(rows * rank, seed(choose)), randomNumbers(rank * columns, seed(choose))];
    return product({ rows, columns: rank, values: left }, { rows: rank, columns, values: right });
  },
};
const square: Readonly<Record<string, Make>> = { ...general, tridiagonal, covariance, island };

const makers: Readonly<Record<Kind, Readonly<Record<string, Make>>>> = {
  general,
  tall: general,
  square,
  symmetric: {
    ...ofSize(symmetricFamilies),
    tridiagonal,
    covariance,
    island,
    "swapped rows": swaps,
    "a multiple of the identity": (size, _, choose) => scaled(identity(size), randomNumbers(1, seed(choose))[0]),
  },
  definite: ofSize(definiteFamilies),
};

/** The maximum number of rows and columns, and of rows · columns · the larger one for a batch. */
export interface Budget {
  readonly most: number;
  readonly operations: number;
}

const LARGEST_BATCH = 40;
/** The decimal exponents of a scale, so that numbers of the families stay within the dtype. */
const scales: Readonly<Record<RealDType, readonly number[]>> = { float32: [-25, 25], float64: [-200, 200] };

/** Draws a case: one family for the whole batch, or one for each matrix; in a quarter of the cases scaled. */
export function draw(kind: Kind, dtype: RealDType, { most, operations }: Budget, own: number): Drawn {
  const choose = new Chooser(own);
  const rows = choose.size(most);
  const isOblong = (kind === "general" || kind === "tall") && choose.below(3) > 0;
  const columns = isOblong ? choose.size(kind === "tall" ? rows : most) : rows;
  const cost = rows * columns * Math.max(rows, columns);
  const count = 1 + choose.below(Math.max(1, Math.min(LARGEST_BATCH, Math.floor(operations / cost))));
  const names = Object.keys(makers[kind]);
  const shared = choose.of(names);
  const isMixed = choose.flag();
  const power = choose.below(4) === 0 ? choose.of(scales[dtype]) * (choose.below(100) / 100) : 0;
  const chosen = Array.from({ length: count }, () => (isMixed ? choose.of(names) : shared));
  const matrices = chosen.map((name) => {
    const made = makers[kind][name](rows, columns, choose);
    const factor = /near|graded/.test(name) ? 1 : 10 ** power;
    return inDType(scaled(made, factor), dtype);
  });
  return { matrices, families: [...new Set(chosen)], rows, columns, choose };
}
