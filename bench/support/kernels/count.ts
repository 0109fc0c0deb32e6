/** Counts the work of a call's kernels on the software device. */
import { metalContext } from "../../../src/backend/metal/context.ts";

/** The counts of all kernels of a call together. */
export interface Counts {
  /** Device memory read and written, without caches. */
  readonly bytes: number;
  /** Threadgroup memory read and written. */
  readonly threadgroupBytes: number;
  /** Barriers per threadgroup, of the kernel that has the most. */
  readonly barriers: number;
  /** Multiply-accumulate operations on 8 × 8 matrices. */
  readonly matrixWork: number;
  /** Constants read: each thread's share of parameters. */
  readonly constantBytes: number;
  /** Threadgroups of the kernel that moves the most bytes. */
  readonly threadgroups: number;
  /** Threads in one of its threadgroups. */
  readonly threads: number;
}

/** The stored counts, which must not increase. */
export const bounded = ["bytes", "threadgroupBytes", "barriers", "matrixWork", "constantBytes"] as const;

/** Maximum milliseconds for one call, also on a slow machine. */
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
