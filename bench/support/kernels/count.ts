/** What the kernels of a call do, as the software device counts it. */
import { metalContext } from "../../../src/backend/metal/context.ts";

/** Of all kernels of a call together. */
export interface Counts {
  /** Device memory read and written; accesses issued, no cache. */
  readonly bytes: number;
  /** Threadgroup memory read and written. */
  readonly threadgroupBytes: number;
  /** Of a threadgroup of the kernel that has the most. */
  readonly barriers: number;
  /** Multiply-accumulates of matrices of 8 x 8. */
  readonly matrixWork: number;
  /** Constants read, a thread's share of parameters. */
  readonly constantBytes: number;
  /** Of the kernel that moves the most bytes. */
  readonly threadgroups: number;
  /** Of one of its threadgroups. */
  readonly threads: number;
}

/** The figures that are stored, and must not rise. */
export const bounded = ["bytes", "threadgroupBytes", "barriers", "matrixWork", "constantBytes"] as const;

/** Milliseconds: what a slow machine may take for one call. */
const LONGEST_RUN = 600_000;

/** Runs a call on the device and counts its kernels. */
export function count(run: () => unknown): Counts {
  const context = metalContext();
  context.wait();
  context.configure("count", true);
  context.report({ clear: true });
  try {
    run();
    context.wait(context.commit(), LONGEST_RUN);
  } finally {
    context.configure("count", false);
  }
  const kernels = context.report({ clear: true }).dispatches.map(({ counters }) => counters);
  if (kernels.length === 0) throw new Error("expected a call that launches kernels, got none");
  const moved = (kernel: (typeof kernels)[number]) => kernel.device_bytes_read + kernel.device_bytes_written;
  const main = kernels.reduce((most, kernel) => (moved(kernel) > moved(most) ? kernel : most));
  const sum = (of: (kernel: (typeof kernels)[number]) => number) =>
    kernels.reduce((total, kernel) => total + of(kernel), 0);
  return {
    bytes: sum(moved),
    threadgroupBytes: sum((kernel) => kernel.threadgroup_bytes_read + kernel.threadgroup_bytes_written),
    barriers: Math.max(...kernels.map((kernel) => Math.round(kernel.barriers / kernel.threadgroups))),
    matrixWork: sum((kernel) => kernel.matrix_multiply_accumulates),
    constantBytes: sum((kernel) => kernel.constant_bytes_read),
    threadgroups: main.threadgroups,
    threads: Math.round(main.threads / main.threadgroups),
  };
}
