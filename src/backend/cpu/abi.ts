/** The block, the state before and after, and for each of nine parameters what it was, its gradient and what it becomes. */
const updateBuffers = [
  "buffer",
  "buffer",
  "buffer",
  "buffer",
  "buffer",
  "buffer",
  "buffer",
  "buffer",
  "buffer",
  "buffer",
  "buffer",
  "buffer",
  "buffer",
  "buffer",
  "buffer",
  "buffer",
  "buffer",
  "buffer",
  "buffer",
  "buffer",
  "buffer",
  "buffer",
  "buffer",
  "buffer",
  "buffer",
  "buffer",
  "buffer",
  "buffer",
  "buffer",
  "buffer",
] as const;

/** Fourteen gradients, or what becomes of them. */
const gradientBuffers = [
  "buffer",
  "buffer",
  "buffer",
  "buffer",
  "buffer",
  "buffer",
  "buffer",
  "buffer",
  "buffer",
  "buffer",
  "buffer",
  "buffer",
  "buffer",
  "buffer",
] as const;

type Buffers<Count extends number, Made extends "buffer"[] = []> = Made["length"] extends Count
  ? Made
  : Buffers<Count, [...Made, "buffer"]>;

const buffers = <const Count extends number>(count: Count): Buffers<Count> =>
  Array.from({ length: count }, () => "buffer") as Buffers<Count>;

/**
 * The functions of `orchard_cpu.h`, as `bun:ffi` declarations, and its codes. A test holds them against the header.
 *
 * `buffer` is a view whose bytes native code reads or writes during the call only: passing the view, and not an address
 * taken from it, keeps it alive and in place. `bun:ffi` takes no null for one: where an operand is left out, pass the block.
 */
export const declarations = {
  orchard_cpu_abi_version: { args: [], returns: "i32" },
  orchard_cpu_last_error: { args: ["buffer", "i32"], returns: "i32" },
  orchard_cpu_configure: { args: ["buffer", "buffer"], returns: "i32" },
  orchard_cpu_describe: { args: ["buffer", "i32"], returns: "i32" },
  orchard_cpu_allocate: { args: ["f64", "buffer"], returns: "i32" },
  orchard_cpu_release: { args: ["ptr"], returns: "i32" },
  orchard_cpu_collected: { args: ["ptr", "ptr"], returns: "void" },
  orchard_cpu_collector: { args: [], returns: "ptr" },
  orchard_cpu_set_memory_limit: { args: ["f64"], returns: "i32" },
  orchard_cpu_set_cache_limit: { args: ["f64"], returns: "i32" },
  orchard_cpu_trim: { args: [], returns: "i32" },
  orchard_cpu_fail_allocations: { args: ["i32"], returns: "i32" },
  orchard_cpu_statistics: { args: ["buffer"], returns: "i32" },
  orchard_cpu_reset_peak: { args: [], returns: "i32" },
  orchard_cpu_tables: { args: ["buffer", "i32"], returns: "i32" },
  orchard_cpu_run3: { args: ["i32", ...buffers(4)], returns: "i32" },
  orchard_cpu_run6: { args: ["i32", ...buffers(7)], returns: "i32" },
  orchard_cpu_run16: { args: ["i32", ...buffers(17)], returns: "i32" },
  orchard_cpu_run30: { args: ["i32", ...buffers(31)], returns: "i32" },
  orchard_cpu_convert: { args: ["buffer", "buffer", "buffer"], returns: "i32" },
  orchard_cpu_matmul: { args: ["buffer", "buffer", "buffer", "buffer", "buffer"], returns: "i32" },
  orchard_cpu_reduce: { args: ["buffer", "buffer", "buffer", "buffer"], returns: "i32" },
  orchard_cpu_slope: { args: ["buffer", "buffer", "buffer", "buffer"], returns: "i32" },
  orchard_cpu_select_at: { args: ["buffer", "buffer", "buffer", "buffer"], returns: "i32" },
  orchard_cpu_scan: { args: ["buffer", "buffer", "buffer", "buffer"], returns: "i32" },
  orchard_cpu_softmax: { args: ["buffer", "buffer", "buffer", "buffer"], returns: "i32" },
  orchard_cpu_cross_entropy: {
    args: ["buffer", "buffer", "buffer", "buffer", "buffer", "buffer", "buffer"],
    returns: "i32",
  },
  orchard_cpu_cross_entropy_gradient: {
    args: ["buffer", "buffer", "buffer", "buffer", "buffer", "buffer", "buffer"],
    returns: "i32",
  },
  orchard_cpu_loss: { args: ["buffer", "buffer", "buffer", "buffer", "buffer", "buffer"], returns: "i32" },
  orchard_cpu_loss_gradient: {
    args: ["buffer", "buffer", "buffer", "buffer", "buffer", "buffer", "buffer", "buffer"],
    returns: "i32",
  },
  orchard_cpu_normalize: {
    args: ["buffer", "buffer", "buffer", "buffer", "buffer", "buffer", "buffer", "buffer", "buffer"],
    returns: "i32",
  },
  orchard_cpu_normalize_gradient: {
    args: ["buffer", "buffer", "buffer", "buffer", "buffer", "buffer", "buffer", "buffer", "buffer", "buffer"],
    returns: "i32",
  },
  orchard_cpu_sort: { args: ["buffer", "buffer", "buffer", "buffer"], returns: "i32" },
  orchard_cpu_attention: {
    args: ["buffer", "buffer", "buffer", "buffer", "buffer", "buffer", "buffer", "buffer", "buffer", "buffer"],
    returns: "i32",
  },
  orchard_cpu_attention_backward: {
    args: [
      "buffer",
      "buffer",
      "buffer",
      "buffer",
      "buffer",
      "buffer",
      "buffer",
      "buffer",
      "buffer",
      "buffer",
      "buffer",
      "buffer",
      "buffer",
      "buffer",
      "buffer",
      "buffer",
      "buffer",
    ],
    returns: "i32",
  },
  orchard_cpu_attention_dropout_mask: { args: ["buffer", "buffer"], returns: "i32" },
  orchard_cpu_update: { args: updateBuffers, returns: "i32" },
  orchard_cpu_gradient_squares: { args: ["buffer", ...gradientBuffers, "buffer"], returns: "i32" },
  orchard_cpu_gradient_scale: {
    args: ["buffer", "buffer", ...gradientBuffers, ...gradientBuffers],
    returns: "i32",
  },
  orchard_cpu_attention_scores: { args: ["buffer"], returns: "i32" },
} as const;

/** The version of the interface that these declarations describe. */
export const ABI_VERSION = 1;

/** `orchard_cpu_status`. The names are the `code` of the error that a status becomes. */
export const Status = { ok: 0, invalidArgument: 1, outOfMemory: 9, unsupported: 13, internal: 15 } as const;
export type StatusName = keyof typeof Status;

/** `orchard_cpu_dtype`. */
export const DTypeCode = {
  float64: 0,
  float32: 1,
  float16: 2,
  bfloat16: 3,
  int64: 4,
  int32: 5,
  uint32: 6,
  int8: 7,
  uint8: 8,
  bool: 9,
} as const;
export type DTypeName = keyof typeof DTypeCode;

/** The numbers of `orchard_cpu_statistics`, in order. */
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

/** What the allocator counted; bytes and numbers. */
export type CpuStatistics = Record<(typeof statisticsFields)[number], number>;
