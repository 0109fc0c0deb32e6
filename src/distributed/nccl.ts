/** NCCL's functions, which exchange the memory of NVIDIA GPUs. Loaded only if no two ranks share a GPU. */
import { dlopen, ptr, read } from "bun:ffi";
import { environment } from "../core/environment.ts";
import { defaultNative } from "../core/native_environment.ts";
import type { Cuda } from "./cuda.ts";
import { DistributedError } from "./errors.ts";
import type { Pending } from "./job.ts";
import type { Elements } from "./mpi.ts";

const call = (...args: ("i64" | "i32" | "buffer")[]) => ({ args, returns: "i32" }) as const;

/** Names and parameters of nccl.h. Addresses, communicators and streams are `i64`. */
const declarations = {
  ncclGetVersion: call("buffer"),
  ncclGetUniqueId: call("buffer"),
  // ncclCommInitRank takes the ID by value, which bun:ffi can't pass; this form of 2.23 takes its address.
  ncclCommInitRankScalable: call("buffer", "i32", "i32", "i32", "i64", "i64"),
  ncclCommDestroy: call("i64"),
  ncclCommGetAsyncError: call("i64", "buffer"),
  ncclAllReduce: call("i64", "i64", "i64", "i32", "i32", "i64", "i64"),
  ncclReduce: call("i64", "i64", "i64", "i32", "i32", "i32", "i64", "i64"),
  ncclAllGather: call("i64", "i64", "i64", "i32", "i64", "i64"),
  ncclGroupStart: call(),
  ncclGroupEnd: call(),
  ncclGetErrorString: { args: ["i32"], returns: "ptr" },
} as const;

type Functions = ReturnType<typeof dlopen<typeof declarations>>["symbols"];

/** `ncclDataType_t`. 16-bit floats are summed in float32 and otherwise moved as bytes, like MPI's. */
const types = { int8: 0, uint8: 1, int32: 2, uint32: 3, int64: 4, float32: 7, float64: 8, int16: undefined } as const;
/** `ncclRedOp_t` and `ncclResult_t`. */
const [SUM, SUCCESS, IN_PROGRESS] = [0, 0, 7];
/** Bytes of `ncclUniqueId`. */
export const ID_BYTES = 128;

/** The library, before its communicator exists. */
export class NcclLibrary {
  readonly functions: Functions;
  /** `NCCL 2.28.9` */
  readonly name: string;

  /** @throws {Error} if the library or a function is missing */
  constructor(path = environment("ORCHARD_NCCL") ?? "libnccl.so.2") {
    // NVLink multicast is off: after a crash it can leave the GPUs of a shared machine unusable.
    defaultNative("NCCL_NVLS_ENABLE", process.env["NCCL_NVLS_ENABLE"] ?? "0");
    this.functions = dlopen(path, declarations).symbols;
    const version = new Int32Array(1);
    this.check("ncclGetVersion", this.functions.ncclGetVersion(version));
    const code = version[0];
    this.name = `NCCL ${Math.floor(code / 10_000)}.${Math.floor(code / 100) % 100}.${code % 100}`;
  }

  /** Creates the ID of a new communicator on one rank. */
  createId(): Uint8Array<ArrayBuffer> {
    const id = new Uint8Array(new ArrayBuffer(ID_BYTES));
    this.check("ncclGetUniqueId", this.functions.ncclGetUniqueId(id));
    return id;
  }

  /** @throws {DistributedError} `ncclFailed` */
  check(name: string, status: number): void {
    if (status === SUCCESS) return;
    const text = this.functions.ncclGetErrorString(status);
    const reason = text === null ? `error ${status}` : textAt(Number(text));
    const advice = "NCCL_DEBUG=INFO prints details, and ORCHARD_NCCL=none uses MPI instead";
    throw new DistributedError("distributed", "ncclFailed", `${name}: ${reason}; ${advice}`);
  }
}

/** Returns the string at an address. */
function textAt(address: number): string {
  const bytes: number[] = [];
  for (let at = 0; ; at++) {
    const byte = read.u8(address, at);
    if (byte === 0) return Buffer.from(bytes).toString();
    bytes.push(byte);
  }
}

/** A communicator of all ranks, and the stream on which its calls run in their order. */
export class Nccl {
  private readonly communicator: number;
  private readonly stream: number;

  /**
   * Blocks until every rank has joined.
   *
   * @param id created by one rank
   */
  constructor(
    readonly library: NcclLibrary,
    private readonly cuda: Cuda,
    rank: number,
    size: number,
    id: Uint8Array<ArrayBuffer>,
  ) {
    const out = new BigUint64Array(1);
    const status = library.functions.ncclCommInitRankScalable(out, size, rank, 1, ptr(id), 0);
    library.check("ncclCommInitRankScalable", status);
    this.communicator = Number(out[0]);
    this.stream = cuda.createStream();
  }

  /** Sums in place over all ranks. */
  allReduce(elements: Elements): Pending {
    const { address, count, type } = described(elements);
    return this.issue("ncclAllReduce", ({ ncclAllReduce }) =>
      ncclAllReduce(address, address, count, type, SUM, this.communicator, this.stream),
    );
  }

  /** Sums parts of `from`. Rank r receives part r in `to`. @param counts the number of elements in each part */
  reduceParts(from: Elements, to: Elements, counts: readonly number[]): Pending {
    const [{ address, type }, { address: target }] = [described(from), described(to)];
    const bytesEach = from.bytes.byteLength / Math.max(from.count, 1);
    return this.issue("ncclReduce", ({ ncclGroupStart, ncclReduce, ncclGroupEnd }) => {
      let [status, start] = [ncclGroupStart(), 0];
      for (const [root, count] of counts.entries()) {
        const part = address + start * bytesEach;
        if (count > 0 && status === SUCCESS)
          status = ncclReduce(part, target, count, type, SUM, root, this.communicator, this.stream);
        start += count;
      }
      const ended = ncclGroupEnd();
      return status === SUCCESS ? ended : status;
    });
  }

  /** Joins the elements of all ranks, in the order of ranks. */
  allGather(from: Elements, to: Elements): Pending {
    const [{ address, count, type }, { address: target }] = [bytesOf(from), bytesOf(to)];
    return this.issue("ncclAllGather", ({ ncclAllGather }) =>
      ncclAllGather(address, target, count, type, this.communicator, this.stream),
    );
  }

  private issue(name: string, call: (functions: Functions) => number): Pending {
    this.library.check(name, call(this.library.functions));
    const mark = this.cuda.mark(this.stream);
    return {
      test: () => {
        this.checkAsync(name);
        return mark.test();
      },
    };
  }

  /** Errors of other ranks and of the network appear here. */
  private checkAsync(name: string): void {
    const status = new Int32Array(1);
    this.library.check(
      "ncclCommGetAsyncError",
      this.library.functions.ncclCommGetAsyncError(this.communicator, status),
    );
    if (status[0] !== IN_PROGRESS) this.library.check(name, status[0]);
  }

  /** Frees the communicator. Every rank must call this. */
  close(): void {
    this.library.functions.ncclCommDestroy(this.communicator);
    this.cuda.destroyStream(this.stream);
  }
}

/** The address, count and type of elements that NCCL adds. Managed memory has one address on the GPU and the host. */
function described({ bytes, count, type }: Elements) {
  const code = types[type];
  if (code === undefined) throw new DistributedError("distributed", "ncclFailed", `NCCL can't add elements of ${type}`);
  return { address: count === 0 ? 0 : ptr(bytes), count, type: code };
}

/** Describes the elements as bytes, for calls that only move them. */
const bytesOf = ({ bytes, count }: Elements) =>
  described({ bytes, count: count === 0 ? 0 : bytes.byteLength, type: "uint8" });
