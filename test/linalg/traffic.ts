/** The memory traffic and number of dispatches of a function's kernels on the software Metal device. */
import { expect } from "bun:test";
import { metalContext } from "../../src/backend/metal/context.ts";
import { on } from "./run.ts";

export interface Traffic<Result> {
  readonly dispatches: number;
  /** Bytes of device memory. */
  readonly read: number;
  readonly written: number;
  /** Bytes read and written, kernel by kernel. */
  readonly each: readonly number[];
  readonly result: Result;
}

/** Runs the body on metal; the checker must find nothing. */
export function watched<Result>(body: () => Result): Traffic<Result> {
  const context = metalContext();
  const watch = (isOn: boolean): void => {
    for (const setting of ["check", "count"]) context.configure(setting, isOn);
  };
  context.wait();
  watch(true);
  try {
    context.report({ clear: true });
    const result = on("metal", true, body);
    context.wait();
    const { dispatches, findings } = context.report({ clear: true });
    expect(findings).toEqual([]);
    const sumOf = (own: (at: (typeof dispatches)[number]) => number): number =>
      dispatches.reduce((sum, at) => sum + own(at), 0);
    return {
      dispatches: sumOf(({ count }) => count),
      read: sumOf(({ counters }) => counters.device_bytes_read),
      written: sumOf(({ counters }) => counters.device_bytes_written),
      each: dispatches.map(({ counters }) => counters.device_bytes_read + counters.device_bytes_written),
      result,
    };
  } finally {
    watch(false);
  }
}
