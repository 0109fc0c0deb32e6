/** Wraps MPI's functions in methods: error codes become exceptions, and handles are hidden. */
import { dlopen, ptr } from "bun:ffi";
import { declarations, type Family, type Handles, handlesOf, type Reduction, type WireType } from "./abi.ts";
import { DistributedError } from "./errors.ts";
import type { Pending } from "./job.ts";
import type { Located } from "./locate.ts";

type Library = ReturnType<typeof dlopen<typeof declarations>>;
type Functions = Library["symbols"];

/** A communicator: a group of ranks with a separate order of calls. */
export type Communicator = number;

/** Elements in memory that must not move while a call is in progress. */
export interface Elements {
  readonly bytes: Uint8Array;
  readonly type: WireType;
  readonly count: number;
}

const MAX_TEXT = 8_192;

/** A call in progress. Holds references to its memory until it is done. */
export class Request implements Pending {
  /** The handle that MPI_Test reads and clears: a pointer, or an int in the first four bytes. */
  readonly handle = new BigUint64Array(1);
  private readonly flag = new Int32Array(1);
  isDone = false;

  constructor(
    private readonly mpi: Mpi,
    private readonly operation: string,
    readonly kept: readonly unknown[],
  ) {}

  /** Lets MPI make progress. Returns whether the call is complete. @throws {DistributedError} `mpiFailed` */
  test(): boolean {
    if (this.isDone) return true;
    this.mpi.test(this.operation, this.handle, this.flag);
    this.isDone = this.flag[0] !== 0;
    return this.isDone;
  }
}

/** A loaded MPI library. */
export class Mpi {
  readonly path: string;
  readonly family: Family;
  private readonly library: Library;
  private readonly functions: Functions;
  private readonly handles: Handles;

  /** @throws {DistributedError} `mpiUnusable` if functions are missing. */
  constructor(private readonly located: Located) {
    const { path, addressOf } = located;
    this.path = path;
    try {
      this.library = dlopen(path, declarations);
      this.functions = this.library.symbols;
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new DistributedError("distributed.init", "mpiUnusable", `${path} can't be used: ${reason}`);
    }
    [this.family, this.handles] = handlesOf(addressOf, path);
  }

  get world(): Communicator {
    return this.handles.world;
  }

  /** Returns the name and version of the library: the first line of its version string. */
  version(): string {
    const [text, length] = [new Uint8Array(MAX_TEXT), new Int32Array(1)];
    this.check("distributed.init", this.functions.MPI_Get_library_version(text, length));
    return (
      textOf(text)
        .split(/[\n,]/)[0]
        .replace(/Version:\s*/, "")
        .trim() || this.family
    );
  }

  get isInitialized(): boolean {
    const flag = new Int32Array(1);
    this.functions.MPI_Initialized(flag);
    return flag[0] !== 0;
  }

  get isFinalized(): boolean {
    const flag = new Int32Array(1);
    this.functions.MPI_Finalized(flag);
    return flag[0] !== 0;
  }

  /** Initializes MPI so that errors are returned and do not end the process. */
  init(): void {
    if (!this.isInitialized)
      this.check("distributed.init", this.functions.MPI_Init_thread(0, 0, this.handles.funneled, new Int32Array(1)));
    this.returnErrors(this.world);
  }

  finalize(): void {
    this.check("distributed.finalize", this.functions.MPI_Finalize());
  }

  /**
   * Tells the launcher that this process ends successfully. Must be the process's last action after {@link finalize}.
   * Since 4.1, MPICH reports this in an `atexit` handler (`MPIR_pmi_finalize_on_exit` in its src/util/mpir_pmi.c). Bun
   * exits without running `atexit` handlers, and a launcher that receives no report kills the remaining ranks. A
   * library's handlers also run when it is unloaded, which works with MPICH. Open MPI has no such handler and stays
   * loaded.
   */
  unload(): void {
    if (!/^M(VA)?PICH/.test(this.version())) return;
    this.library.close();
    this.located.close();
  }

  /** Ends all ranks of the world. */
  abort(code: number): void {
    this.functions.MPI_Abort(this.world, code);
  }

  rank(): number {
    return this.number((out) => this.functions.MPI_Comm_rank(this.world, out));
  }

  size(): number {
    return this.number((out) => this.functions.MPI_Comm_size(this.world, out));
  }

  private number(call: (out: Int32Array) => number): number {
    const out = new Int32Array(1);
    this.check("distributed.init", call(out));
    return out[0];
  }

  /** Returns a communicator of the same ranks with a separate order of calls. */
  duplicate(communicator: Communicator): Communicator {
    const out = new BigUint64Array(1);
    this.check("distributed.init", this.functions.MPI_Comm_dup(communicator, out));
    const result = Number(out[0]);
    this.returnErrors(result);
    return result;
  }

  private returnErrors(communicator: Communicator): void {
    const status = this.functions.MPI_Comm_set_errhandler(communicator, this.handles.errorsReturn);
    this.check("distributed.init", status);
  }

  barrier(operation: string, on: Communicator): Request {
    return this.start(operation, [], (request) => this.functions.MPI_Ibarrier(on, request));
  }

  broadcast(operation: string, on: Communicator, elements: Elements, root: number): Request {
    const { count } = elements;
    return this.start(operation, [elements], (request) =>
      this.functions.MPI_Ibcast(addressOf(elements), count, this.type(elements), root, on, request),
    );
  }

  /** Reduces in place. */
  allReduce(operation: string, on: Communicator, elements: Elements, reduction: Reduction): Request {
    const [type, how] = [this.type(elements), this.handles.reductions[reduction]];
    return this.start(operation, [elements], (request) =>
      this.functions.MPI_Iallreduce(this.handles.inPlace, addressOf(elements), elements.count, type, how, on, request),
    );
  }

  allGather(operation: string, on: Communicator, from: Elements, to: Elements): Request {
    const type = this.type(from);
    return this.start(operation, [from, to], (request) =>
      this.functions.MPI_Iallgather(addressOf(from), from.count, type, addressOf(to), from.count, type, on, request),
    );
  }

  reduceScatter(operation: string, on: Communicator, from: Elements, to: Elements, reduction: Reduction): Request {
    const how = this.handles.reductions[reduction];
    return this.start(operation, [from, to], (request) =>
      this.functions.MPI_Ireduce_scatter_block(
        addressOf(from),
        addressOf(to),
        to.count,
        this.type(to),
        how,
        on,
        request,
      ),
    );
  }

  /** @param counts the number of elements for each rank, in the order of ranks */
  reduceScatterParts(
    operation: string,
    on: Communicator,
    from: Elements,
    to: Elements,
    counts: readonly number[],
    reduction: Reduction,
  ): Request {
    const how = this.handles.reductions[reduction];
    const [type, list] = [this.type(from), Int32Array.from(counts)];
    const kept = new Int32Array(new ArrayBuffer(list.byteLength)); // an array with an ArrayBuffer has a fixed address
    kept.set(list);
    return this.start(operation, [from, to, kept], (request) =>
      this.functions.MPI_Ireduce_scatter(addressOf(from), addressOf(to), ptr(kept), type, how, on, request),
    );
  }

  /** @param count the number of elements for each rank */
  allToAll(operation: string, on: Communicator, from: Elements, to: Elements, count: number): Request {
    const type = this.type(from);
    return this.start(operation, [from, to], (request) =>
      this.functions.MPI_Ialltoall(addressOf(from), count, type, addressOf(to), count, type, on, request),
    );
  }

  send(operation: string, on: Communicator, elements: Elements, rank: number, tag: number): Request {
    const type = this.type(elements);
    return this.start(operation, [elements], (request) =>
      this.functions.MPI_Isend(addressOf(elements), elements.count, type, rank, tag, on, request),
    );
  }

  receive(operation: string, on: Communicator, elements: Elements, rank: number, tag: number): Request {
    const type = this.type(elements);
    return this.start(operation, [elements], (request) =>
      this.functions.MPI_Irecv(addressOf(elements), elements.count, type, rank, tag, on, request),
    );
  }

  test(operation: string, handle: BigUint64Array, flag: Int32Array): void {
    this.check(operation, this.functions.MPI_Test(handle, flag, this.handles.statusIgnore));
  }

  private type({ type }: Elements): number {
    return this.handles.types[type];
  }

  private start(operation: string, kept: readonly unknown[], call: (request: BigUint64Array) => number): Request {
    const request = new Request(this, operation, kept);
    this.check(operation, call(request.handle));
    return request;
  }

  private check(operation: string, status: number): void {
    if (status === 0) return;
    const [text, length] = [new Uint8Array(MAX_TEXT), new Int32Array(1)];
    this.functions.MPI_Error_string(status, text, length);
    throw new DistributedError(operation, "mpiFailed", `${this.family} failed: ${textOf(text)}`);
  }
}

/** Returns the address of elements in an `ArrayBuffer`, which never moves. Small arrays without one may move. */
function addressOf({ bytes, count }: Elements): number {
  return count === 0 || bytes.buffer.byteLength === 0 ? 0 : ptr(bytes);
}

const textOf = (bytes: Uint8Array): string => {
  const end = bytes.indexOf(0);
  return Buffer.from(bytes.subarray(0, end < 0 ? bytes.length : end)).toString();
};
