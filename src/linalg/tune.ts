/** Measures the size from which metal is faster than the cpu for one large matrix. */

import { noGrad } from "../autograd/modes.ts";
import { withBackend, withStrict } from "../backend/policy.ts";
import { eye } from "../ops/creation/eye.ts";
import { add, mul } from "../ops/elementwise/arithmetic.ts";
import { matmul } from "../ops/matmul/matmul.ts";
import { randn } from "../ops/random/randn.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { choleskyEx } from "./cholesky/cholesky.ts";
import { type LargeOperation, type LinalgTable, largeOperations } from "./crossover.ts";
import { MAX_BLOCKED_SIZE } from "./eigh/blocked.metal.ts";
import { eigh } from "./eigh/eigh.ts";
import { luFactorEx } from "./lu/factor.ts";
import { mT } from "./matrices.ts";
import { qr } from "./qr/qr.ts";
import { MAX_BLOCKED_ROWS } from "./svd/blocks.metal.ts";
import { svd } from "./svd/svd.ts";
import { solveTriangular } from "./triangular/triangular.ts";

/** The sizes and samples to measure. */
export interface LinalgGrid {
  /** Rows of a matrix, in ascending order. */
  readonly sizes: readonly number[];
  /** Samples per backend, alternating between backends. */
  readonly rounds: number;
}

export const fullLinalgGrid: LinalgGrid = {
  sizes: [96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072],
  rounds: 7,
};
export const quickLinalgGrid: LinalgGrid = { sizes: [128, 256, 512, 1024, 2048], rounds: 3 };

/** The median time at one size on each backend, in milliseconds. */
export interface LinalgMeasurement {
  readonly size: number;
  readonly metal: number;
  readonly cpu: number;
}

/** Reports an operation once it is measured. */
export type LinalgReport = (operation: LargeOperation, measured: readonly LinalgMeasurement[]) => void;

type Compute = (a: Tensor) => Tensor;
const computations: Readonly<Record<LargeOperation, Compute>> = {
  cholesky: (a) => choleskyEx(a).factor,
  solveTriangular: (a) => solveTriangular(a, a, { upper: false }),
  lu: (a) => luFactorEx(a).lu,
  qr: (a) => qr(a).q,
  eigh: (a) => eigh(a).eigenvectors,
  svd: (a) => svd(a).u,
};

/** The maximum number of rows that Metal's kernels support, if there is a limit. */
const mostRows: Readonly<Partial<Record<LargeOperation, number>>> = {
  eigh: MAX_BLOCKED_SIZE,
  svd: MAX_BLOCKED_ROWS,
};

/** Measures this machine. @param backends the two backends to compare; tests use the same one twice */
export function tuneLinalg(
  grid: LinalgGrid,
  report: LinalgReport = () => undefined,
  backends: readonly ["metal" | "cpu", "cpu"] = ["metal", "cpu"],
): LinalgTable {
  const entries = largeOperations.map((operation) => {
    const sizes = grid.sizes.filter((size) => size <= (mostRows[operation] ?? Number.POSITIVE_INFINITY));
    const measured = sizes.map((size) => measure(computations[operation], size, grid.rounds, backends));
    report(operation, measured);
    return [operation, leastSizeFrom(measured)] as const;
  });
  return { metalFrom: Object.fromEntries(entries) as LinalgTable["metalFrom"] };
}

/** Returns the smallest size from which metal was faster at every size; null if it was slower at the largest. */
export function leastSizeFrom(measured: readonly LinalgMeasurement[]): number | null {
  const last = measured.findLastIndex(({ metal, cpu }) => metal >= cpu);
  return measured[last + 1]?.size ?? null;
}

function measure(
  compute: Compute,
  size: number,
  rounds: number,
  [device, host]: readonly ["metal" | "cpu", "cpu"],
): LinalgMeasurement {
  const time = (backend: "metal" | "cpu"): number =>
    withStrict(true, () => withBackend(backend, () => timeOn(compute, size)));
  const samples = Array.from({ length: rounds + 1 }, () => [time(device), time(host)] as const).slice(1);
  const median = (of: 0 | 1): number => samples.map((sample) => sample[of]).toSorted((a, b) => a - b)[rounds >> 1];
  return { size, metal: median(0), cpu: median(1) };
}

/** Milliseconds until the result is ready, with an operand that is already on the backend. */
function timeOn(compute: Compute, size: number): number {
  return noGrad(() => {
    const x = randn([size, size]);
    const a = add(matmul(x, mT(x)), mul(eye(size), size));
    a.storage.memory.hostBytes();
    const started = performance.now();
    const result = compute(a);
    result.storage.memory.hostBytes(); // waits for a device
    const milliseconds = performance.now() - started;
    for (const tensor of [x, a, result]) tensor.dispose();
    return milliseconds;
  });
}
