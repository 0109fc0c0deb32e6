/** Runs factorizations on every backend, and returns results as float64 matrices. */

import { afterAll } from "bun:test";
import type { BackendName } from "../../src/backend/names.ts";
import { withBackend, withStrict } from "../../src/backend/policy.ts";
import { whyUnavailable } from "../../src/backend/registry.ts";
import { tensor } from "../../src/ops/creation/tensor.ts";
import { stack } from "../../src/ops/join/cat.ts";
import { reshape } from "../../src/ops/view/reshape.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { usually } from "../support/repeats.ts";
import { type Matrix, rounded } from "./matrices.ts";

export type RealDType = "float32" | "float64";

/** The relative distance from 1 to the next number. */
export const epsilonOf: Readonly<Record<RealDType, number>> = { float32: 2 ** -23, float64: 2 ** -52 };

/** LAPACK's test suite accepts a residual of fewer than this many roundings. */
export const THRESHOLD = 30;

/** Backends with the dtypes that they compute linear algebra in. */
export const places: readonly { readonly backend: BackendName; readonly dtype: RealDType }[] = (
  [
    ["reference", "float64"],
    ["reference", "float32"],
    ["cpu", "float64"],
    ["cpu", "float32"],
    ["metal", "float32"],
  ] as const
)
  .filter(([backend]) => whyUnavailable(backend) === undefined)
  .map(([backend, dtype]) => ({ backend, dtype }));

/** Sizes around those at which kernels change their method. */
export const sizes: readonly number[] = [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64];
/** Sizes that metal's kernels do not support. A usual run has only those that are one more than whole blocks. */
export const largeSizes = usually([65, 100, 127, 128, 129], (size) => size % 64 === 1);

/**
 * The sizes at which a family of matrices is computed. Random matrices have all sizes. In a usual run each other family
 * has a third of the sizes, small and large ones, so that each size occurs in every third family.
 */
export const inTurn = <Size>(family: string, names: readonly string[], all: readonly Size[]): readonly Size[] =>
  usually(all, (_, at) => family === "random" || at % 3 === names.indexOf(family) % 3);

let runsOn: BackendName | undefined;

/** Runs on one backend; with `isStrict` it must not fall back. */
export function on<Result>(backend: BackendName, isStrict: boolean, body: () => Result): Result {
  runsOn = backend;
  return withStrict(isStrict, () => withBackend(backend, body));
}

/** The matrix with its elements rounded to a dtype. */
export const inDType = (x: Matrix, dtype: string): Matrix => (dtype === "float32" ? rounded(x) : x);

export const toTensor = ({ rows, columns, values }: Matrix, dtype: RealDType): Tensor =>
  reshape(tensor(values, { dtype }), [rows, columns]);

export function toMatrix(x: Tensor): Matrix {
  const [rows, columns] = x.shape.slice(-2) as [number, number];
  return { rows, columns, values: new Float64Array(x.dataSync() as Float64Array) };
}

/** Matrices of one shape as a batch. */
export const batchOf = (matrices: readonly Matrix[], dtype: RealDType): Tensor =>
  stack(matrices.map((own) => toTensor(own, dtype)));

/** The matrices of a batch. */
export function matricesIn(x: Tensor): Matrix[] {
  const [rows, columns] = x.shape.slice(-2) as [number, number];
  const values = new Float64Array(x.dataSync() as Float64Array);
  const size = rows * columns;
  return Array.from({ length: x.shape[0] }, (_, at) => ({
    rows,
    columns,
    values: values.slice(at * size, (at + 1) * size),
  }));
}

/**
 * Records a residual in roundings. The unit is at least the smallest normal number, so that zeros do not divide by
 * zero. With `ORCHARD_PRINT_RATIOS=1` the worst residuals are printed at the end of a file, by backend.
 *
 * @param of names the computation and the matrices, such as "cholesky, hilbert". Default: the line of the caller
 */
export function ratio(residual: number, scale: number, dtype: RealDType, of?: string): number {
  const own = residual === 0 ? 0 : residual / Math.max(scale * epsilonOf[dtype], Number.MIN_VALUE);
  if (isPrinted) remember(`${runsOn} ${dtype}`, of ?? callersLine(), own);
  return own;
}

const isPrinted = process.env["ORCHARD_PRINT_RATIOS"] === "1";
const worst = new Map<string, number>();

function remember(place: string, of: string, own: number): void {
  const key = `${of} | ${place}`;
  const known = worst.get(key);
  if (known === undefined || !(own <= known)) worst.set(key, own); // NaN is the worst
}

/** Returns the caller's line, such as "cholesky.test.ts:52". */
const callersLine = (): string => /([\w.]+\.test\.ts:\d+)/.exec(new Error().stack ?? "")?.[1] ?? "?";

if (isPrinted)
  afterAll(() => {
    const rows = [...worst].sort(([a], [b]) => (a < b ? -1 : 1));
    console.log(rows.map(([key, own]) => `${own.toFixed(2).padStart(8)}  ${key}`).join("\n"));
    worst.clear();
  });
