/** A problem found by the checker or the device; docs/checker.md explains each kind. */
export interface Finding {
  /**
   *  The kind, such as `"threadgroup-race"`, `"out-of-bounds"` or `"uninitialized-read"`; docs/checker.md lists them.
   */
  kind: string;
  severity: "error" | "note";
  /** A sentence with the kernel, the line, the threads and the buffer. */
  message: string;
  kernel: string | null;
  file: string | null;
  line: number;
  /** Number of occurrences. */
  count: number;
}

/**
 * @internal Whether the compiler found it in the source, such as a variable that is read before it is written. Such
 *   findings name no kernel.
 */
export const isAboutSource = ({ kernel, kind }: Finding): boolean => kernel === null && kind === "uninitialized-read";

/** Counters of a dispatch, in bytes and counts. */
export interface Counters {
  device_bytes_read: number;
  device_bytes_written: number;
  threadgroup_bytes_read: number;
  threadgroup_bytes_written: number;
  matrix_multiply_accumulates: number;
  barriers: number;
  simd_operations: number;
  atomics: number;
  threads: number;
  threadgroups: number;
  cache_lines_read: number;
  cache_lines_written: number;
  constant_bytes_read: number;
}

/** The summed counters of equal dispatches. */
export interface DispatchCounters {
  label: string | null;
  kernel: string;
  count: number;
  counters: Counters;
}

/** A context's report. Only the software device provides `findings` and `dispatches`. */
export interface MetalReport {
  notes: string[];
  settings: Record<string, string> | null;
  findings: Finding[];
  dispatches: DispatchCounters[];
}

/** Reads the dylib's JSON. */
export function parseReport(json: string): MetalReport {
  const { notes, settings, findings, dispatches } = JSON.parse(json) as Partial<MetalReport>;
  return { notes: notes ?? [], settings: settings ?? null, findings: findings ?? [], dispatches: dispatches ?? [] };
}
