type Buffers<Count extends number, Made extends "buffer"[] = []> = Made["length"] extends Count
  ? Made
  : Buffers<Count, [...Made, "buffer"]>;

const buffers = <const Count extends number>(count: Count): Buffers<Count> =>
  Array.from({ length: count }, () => "buffer") as Buffers<Count>;

/**
 * The functions of `orchard_cpu.h`, `orchard_cpu_memory.h` and `orchard_cpu_program.h` as `bun:ffi` declarations, and
 * the status codes. A test compares them with the headers.
 *
 * `buffer` is a view whose bytes native code accesses only during the call. Passing the view instead of its address
 * keeps it alive and in place. `bun:ffi` does not accept null; for an omitted operand, pass the parameter block.
 */
export const declarations = {
  orchard_cpu_abi_version: { args: [], returns: "i32" },
  orchard_cpu_last_error: { args: ["buffer", "i32"], returns: "i32" },
  orchard_cpu_configure: { args: ["buffer", "buffer"], returns: "i32" },
  orchard_cpu_describe: { args: ["buffer", "i32"], returns: "i32" },
  orchard_cpu_allocate: { args: ["f64", "buffer"], returns: "i32" },
  orchard_cpu_release: { args: ["ptr"], returns: "i32" },
  orchard_cpu_retake: { args: ["ptr"], returns: "i32" },
  orchard_cpu_collected: { args: ["ptr", "ptr"], returns: "void" },
  orchard_cpu_collector: { args: [], returns: "ptr" },
  orchard_cpu_set_memory_limit: { args: ["f64"], returns: "i32" },
  orchard_cpu_set_cache_limit: { args: ["f64"], returns: "i32" },
  orchard_cpu_trim: { args: [], returns: "i32" },
  orchard_cpu_fail_allocations: { args: ["i32"], returns: "i32" },
  orchard_cpu_statistics: { args: ["buffer"], returns: "i32" },
  orchard_cpu_reset_peak: { args: [], returns: "i32" },
  orchard_cpu_tables: { args: ["buffer", "i32"], returns: "i32" },
  orchard_cpu_run3: { args: ["i32", "buffer", "i32", ...buffers(3)], returns: "i32" },
  orchard_cpu_run6: { args: ["i32", "buffer", "i32", ...buffers(6)], returns: "i32" },
  orchard_cpu_run16: { args: ["i32", "buffer", "i32", ...buffers(16)], returns: "i32" },
  orchard_cpu_run29: { args: ["i32", "buffer", "i32", ...buffers(29)], returns: "i32" },
  orchard_cpu_run_rows: { args: ["i32", "buffer", "i32", "i32", "buffer"], returns: "i32" },
  orchard_cpu_run_program: { args: ["buffer", "i32", "buffer", "i32", "buffer", "i32", "buffer"], returns: "i32" },
} as const;

/** The version of the interface that these declarations describe. */
export const ABI_VERSION = 4;

/** `orchard_cpu_status`. The names are the codes of the resulting errors. */
export const Status = {
  ok: 0,
  invalidArgument: 1,
  outOfMemory: 9,
  unsupported: 13,
  internal: 15,
  memoryLimit: 16,
} as const;
export type StatusName = keyof typeof Status;

/** The fields of `orchard_cpu_statistics`, in order. */
export const statisticsFields = [
  "liveBytes",
  "liveBlocks",
  "cachedBytes",
  "cachedBlocks",
  "peakBytes",
  "allocations",
  "cacheHits",
  "refusals",
  "memoryLimit",
  "cacheLimit",
] as const;

/** The allocator's statistics, in bytes and counts. */
export type CpuStatistics = Record<(typeof statisticsFields)[number], number>;
