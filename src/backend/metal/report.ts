/** Something that the checker, or the device, found wrong; docs/checker.md explains each kind. */
export interface Finding {
  /** Such as `"threadgroup-race"`, `"out-of-bounds"`, `"uninitialized-read"`; docs/checker.md lists them. */
  kind: string;
  severity: "error" | "note";
  /** One sentence: the kernel, the line, the threads, the buffer. */
  message: string;
  kernel: string | null;
  file: string | null;
  line: number;
  /** How often it was found. */
  count: number;
}

/**
 * @internal Whether the compiler found it in the source, such as a variable that is read before it is written. It names
 * no kernel.
 */
export const isAboutSource = ({ kernel, kind }: Finding): boolean => kernel === null && kind === "uninitialized-read";

/** What a dispatch moved and did; bytes and numbers. */
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

/** The counters of equal dispatches, added up. */
export interface DispatchCounters {
  label: string | null;
  kernel: string;
  count: number;
  counters: Counters;
}

/** `findings` and `dispatches` are those of the software device; Apple's gives none. */
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
