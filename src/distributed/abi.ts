/**
 * `bun:ffi` declarations of MPI's C interface, and the handles of each family of libraries.
 *
 * A handle is a pointer in Open MPI (the address of an exported object) and in the standard ABI of MPI 5 (a small
 * constant), and an int in MPICH. All are passed as `i64`, since an int uses the lower half of a register. No function
 * has more than eight arguments, so all of them are in registers on arm64; on x86-64 each argument on the stack has
 * eight bytes.
 */
import { DTypeError } from "../core/errors.ts";
import { isComplex, type RealDType } from "../tensor/dtype.ts";
import type { Tensor } from "../tensor/tensor.ts";

const call = (...args: ("i64" | "i32" | "buffer")[]) => ({ args, returns: "i32" }) as const;

/** Handles and addresses of elements are `i64`; `buffer` is memory that a call writes before it returns. */
export const declarations = {
  MPI_Initialized: call("buffer"),
  MPI_Finalized: call("buffer"),
  MPI_Init_thread: call("i64", "i64", "i32", "buffer"),
  MPI_Finalize: call(),
  MPI_Abort: call("i64", "i32"),
  MPI_Comm_rank: call("i64", "buffer"),
  MPI_Comm_size: call("i64", "buffer"),
  MPI_Comm_dup: call("i64", "buffer"),
  MPI_Comm_set_errhandler: call("i64", "i64"),
  MPI_Error_string: call("i32", "buffer", "buffer"),
  MPI_Get_library_version: call("buffer", "buffer"),
  MPI_Test: call("buffer", "buffer", "i64"),
  MPI_Ibarrier: call("i64", "buffer"),
  MPI_Ibcast: call("i64", "i32", "i64", "i32", "i64", "buffer"),
  MPI_Iallreduce: call("i64", "i64", "i32", "i64", "i64", "i64", "buffer"),
  MPI_Iallgather: call("i64", "i32", "i64", "i64", "i32", "i64", "i64", "buffer"),
  MPI_Ireduce_scatter: call("i64", "i64", "i64", "i64", "i64", "i64", "buffer"),
  MPI_Ireduce_scatter_block: call("i64", "i64", "i32", "i64", "i64", "i64", "buffer"),
  MPI_Ialltoall: call("i64", "i32", "i64", "i64", "i32", "i64", "i64", "buffer"),
  MPI_Isend: call("i64", "i32", "i64", "i32", "i32", "i64", "buffer"),
  MPI_Irecv: call("i64", "i32", "i64", "i32", "i32", "i64", "buffer"),
} as const;

/** The element types of messages. 16-bit floats are reduced in float32 and otherwise sent as bits. */
export type WireType = "float64" | "float32" | "int64" | "int32" | "uint32" | "int16" | "int8" | "uint8";

/** How MPI combines elements of several ranks. */
export type Reduction = "sum" | "max" | "min";

/** The handles and constants of a family of libraries. */
export interface Handles {
  readonly world: number;
  readonly types: Readonly<Record<WireType, number>>;
  readonly reductions: Readonly<Record<Reduction, number>>;
  readonly errorsReturn: number;
  /** `MPI_IN_PLACE`: passed instead of the operands' address if the operands are in the result's memory. */
  readonly inPlace: number;
  readonly statusIgnore: number;
  /** The thread level in which only the thread that initialized MPI calls it. */
  readonly funneled: number;
}

/** The interface of a library. */
export type Family = "Open MPI" | "MPICH" | "MPI 5 ABI";

/** The names of the objects that Open MPI exports (`mpi.h` of version 1.3 and later). */
const openMpiSymbols = {
  world: "ompi_mpi_comm_world",
  errorsReturn: "ompi_mpi_errors_return",
  types: {
    float64: "ompi_mpi_double",
    float32: "ompi_mpi_float",
    int64: "ompi_mpi_int64_t",
    int32: "ompi_mpi_int32_t",
    uint32: "ompi_mpi_uint32_t",
    int16: "ompi_mpi_int16_t",
    int8: "ompi_mpi_int8_t",
    uint8: "ompi_mpi_uint8_t",
  },
  reductions: { sum: "ompi_mpi_op_sum", max: "ompi_mpi_op_max", min: "ompi_mpi_op_min" },
} as const;

/** MPICH's ABI, which Intel MPI, MVAPICH and Cray MPI share since 2014. */
const mpich: Handles = {
  world: 0x44000000,
  errorsReturn: 0x54000001,
  types: {
    float64: 0x4c00080b,
    float32: 0x4c00040a,
    int64: 0x4c00083a,
    int32: 0x4c000439,
    uint32: 0x4c00043d,
    int16: 0x4c000238,
    int8: 0x4c000137,
    uint8: 0x4c00013b,
  },
  reductions: { sum: 0x58000003, max: 0x58000001, min: 0x58000002 },
  inPlace: -1,
  statusIgnore: 1,
  funneled: 1,
};

/** The MPI standard 5.0, chapter 20 (Application Binary Interface). */
const standard: Handles = {
  world: 0x101,
  errorsReturn: 0x143,
  types: {
    float64: 0x214,
    float32: 0x210,
    int64: 0x258,
    int32: 0x250,
    uint32: 0x251,
    int16: 0x248,
    int8: 0x240,
    uint8: 0x241,
  },
  reductions: { sum: 0x21, max: 0x23, min: 0x22 },
  inPlace: 1,
  statusIgnore: 0,
  funneled: 1024,
};

/**
 * Returns the interface and the handles of a library.
 *
 * @param addressOf returns the address of an exported symbol, or null if there is none
 * @param path the library's file, whose name identifies the standard ABI
 */
export function handlesOf(addressOf: (symbol: string) => number | null, path: string): [Family, Handles] {
  if (/libmpi_abi\b/.test(path)) return ["MPI 5 ABI", standard];
  const world = addressOf(openMpiSymbols.world);
  if (world === null) return ["MPICH", mpich];
  const all = <Name extends string>(names: Readonly<Record<Name, string>>) =>
    Object.fromEntries(Object.entries<string>(names).map(([name, symbol]) => [name, addressOf(symbol) ?? 0])) as Record<
      Name,
      number
    >;
  const { errorsReturn } = all({ errorsReturn: openMpiSymbols.errorsReturn });
  const [types, reductions] = [all(openMpiSymbols.types), all(openMpiSymbols.reductions)];
  return ["Open MPI", { world, errorsReturn, types, reductions, inPlace: 1, statusIgnore: 0, funneled: 1 }];
}

/** The message type of each dtype for elements that are moved but not reduced. */
const wireTypes: Readonly<Record<RealDType, WireType>> = {
  float64: "float64",
  float32: "float32",
  float16: "int16",
  bfloat16: "int16",
  int64: "int64",
  int32: "int32",
  uint32: "uint32",
  int8: "int8",
  uint8: "uint8",
  bool: "uint8",
};

/** Returns the message type of a tensor's elements. @throws {DTypeError} `complex` */
export function wireTypeOf(operation: string, { dtype }: Tensor): WireType {
  if (!isComplex(dtype)) return wireTypes[dtype];
  throw new DTypeError(operation, "complex", `expected real numbers, got ${dtype}; send viewAsReal(x)`);
}
