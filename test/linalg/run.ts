/** Runs factorisations on every backend, and gives results as float64 matrices. */

import type { BackendName } from "../../src/backend/names.ts";
import { withBackend, withStrict } from "../../src/backend/policy.ts";
import { whyUnavailable } from "../../src/backend/registry.ts";
import { tensor } from "../../src/ops/creation/tensor.ts";
import { reshape } from "../../src/ops/view/reshape.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import type { Matrix } from "./matrices.ts";

export type RealDType = "float32" | "float64";

/** The relative distance from 1 to the next number. */
export const epsilonOf: Readonly<Record<RealDType, number>> = { float32: 2 ** -23, float64: 2 ** -52 };

/** What LAPACK's test suite takes for a right result: a residual of fewer than this many roundings. */
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

/** Sizes around those at which kernels change their ways. */
export const sizes: readonly number[] = [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64];
/** Sizes that metal's kernels leave to cpu. */
export const largeSizes: readonly number[] = [65, 100, 127, 128, 129];

/** Runs on one backend; `isStrict` where it has to run there. */
export const on = <Result>(backend: BackendName, isStrict: boolean, body: () => Result): Result =>
  withStrict(isStrict, () => withBackend(backend, body));

export const toTensor = ({ rows, columns, values }: Matrix, dtype: RealDType): Tensor =>
  reshape(tensor(values, { dtype }), [rows, columns]);

export function toMatrix(x: Tensor): Matrix {
  const [rows, columns] = x.shape.slice(-2) as [number, number];
  return { rows, columns, values: Float64Array.from(x.dataSync() as ArrayLike<number>) };
}

/** A residual in roundings: the least unit is the smallest normal number, so that zeros are no division by zero. */
export const ratio = (residual: number, scale: number, dtype: RealDType): number =>
  residual === 0 ? 0 : residual / Math.max(scale * epsilonOf[dtype], Number.MIN_VALUE);
