import type { StorageMode } from "../../tensor/memory.ts";

/**
 * The functions of `orchard.h` as `bun:ffi` declarations. A test compares their names and types with the header.
 *
 * `buffer` is a view whose bytes native code accesses only during the call. Passing the view instead of its address
 * keeps it alive and in place. Native code owns any memory that it keeps.
 */
export const declarations = {
  orchard_abi_version: { args: [], returns: "i32" },
  orchard_last_error: { args: ["buffer", "u64", "buffer"], returns: "i32" },
  orchard_open: { args: ["buffer", "u64", "buffer"], returns: "i32" },
  orchard_close: { args: ["u64"], returns: "i32" },
  orchard_device_info: { args: ["u64", "u32", "buffer", "u64", "buffer"], returns: "i32" },
  orchard_retain: { args: ["u64"], returns: "i32" },
  orchard_release: { args: ["u64"], returns: "i32" },
  orchard_collected: { args: ["buffer", "buffer"], returns: "i32" },
  orchard_buffer_create: { args: ["u64", "buffer", "u64", "buffer"], returns: "i32" },
  orchard_tensor_create: { args: ["u64", "u64", "u32", "buffer", "u64", "buffer"], returns: "i32" },
  orchard_buffer_info_get: { args: ["u64", "buffer", "u64"], returns: "i32" },
  orchard_buffer_read: { args: ["u64", "u64", "buffer", "u64"], returns: "i32" },
  orchard_buffer_write: { args: ["u64", "u64", "buffer", "u64"], returns: "i32" },
  orchard_buffer_fill: { args: ["u64", "u64", "u64", "u32", "buffer"], returns: "i32" },
  orchard_buffer_copy: { args: ["u64", "u64", "u64", "u64", "u64", "buffer"], returns: "i32" },
  orchard_buffer_hint: { args: ["u64", "u32"], returns: "i32" },
  orchard_materialize: { args: ["buffer", "u64", "buffer", "u64"], returns: "i32" },
  orchard_write_back: { args: ["buffer", "u64", "u64", "u64", "buffer"], returns: "i32" },
  orchard_library_create: { args: ["u64", "buffer", "u64", "buffer"], returns: "i32" },
  orchard_library_functions: { args: ["u64", "buffer", "u64", "buffer"], returns: "i32" },
  orchard_pipeline_create: { args: ["u64", "buffer", "u64", "buffer"], returns: "i32" },
  orchard_pipeline_info: { args: ["u64", "buffer", "u64", "buffer"], returns: "i32" },
  orchard_dispatch_encode: { args: ["buffer", "u64", "buffer"], returns: "i32" },
  orchard_dispatches_encode: { args: ["buffer", "u64", "buffer"], returns: "i32" },
  orchard_commit: { args: ["u64", "buffer"], returns: "i32" },
  orchard_ticket_poll: { args: ["u64", "u64", "buffer"], returns: "i32" },
  orchard_ticket_wait: { args: ["u64", "u64", "u32"], returns: "i32" },
  orchard_completion_counter: { args: ["u64", "buffer"], returns: "i32" },
  orchard_statistics_get: { args: ["u64", "buffer", "u64"], returns: "i32" },
  orchard_trim: { args: ["u64", "u64"], returns: "i32" },
  orchard_label_push: { args: ["u64", "buffer", "u64"], returns: "i32" },
  orchard_label_pop: { args: ["u64"], returns: "i32" },
  orchard_capture_begin: { args: ["u64", "buffer", "u64"], returns: "i32" },
  orchard_capture_end: { args: ["u64"], returns: "i32" },
  orchard_configure: { args: ["u64", "buffer", "u64", "buffer", "u64"], returns: "i32" },
  orchard_report: { args: ["u64", "u32", "buffer", "u64", "buffer"], returns: "i32" },
  orchard_inject_fault: { args: ["u64", "buffer", "u64", "u32", "u32", "i32"], returns: "i32" },
} as const;

/** `orchard_status`, in order. The names are the codes of the resulting errors. */
export const statusNames = [
  "ok",
  "invalidArgument",
  "staleHandle",
  "wrongKind",
  "compileFailed",
  "functionNotFound",
  "constantMissing",
  "bindingMissing",
  "limitExceeded",
  "outOfMemory",
  "deviceFailed",
  "timeout",
  "closed",
  "unsupported",
  "io",
  "internal",
] as const;

export type StatusName = (typeof statusNames)[number];

export const Storage = { default: 0, shared: 1, private: 2 } as const satisfies Record<"default" | StorageMode, number>;

export const Access = { read: 1, write: 2, readwrite: 3 } as const;
export const GridKind = { threads: 0, threadgroups: 1 } as const;
/** `ORCHARD_PROBE_*` */
export const Probe = { capabilities: 1, libraries: 2 } as const;
export const OPEN_EXACT = 1;
export const BUFFER_ZERO = 1;
export const VIEW_CONTIGUOUS = 1;
export const MAX_INLINE_BYTES = 4096;

/** `MTLDataType`'s raw values of the scalar types. The vectors of 2, 3 and 4 follow each. */
export const dataTypes = {
  float: 3,
  half: 16,
  int: 29,
  uint: 33,
  short: 37,
  ushort: 41,
  char: 45,
  uchar: 49,
  bool: 53,
  long: 81,
  ulong: 85,
  bfloat: 121,
} as const;
export type ScalarTypeName = keyof typeof dataTypes;
