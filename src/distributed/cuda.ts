/** The few functions of NVIDIA's driver that order NCCL's work: streams, events, and the identity of a GPU. */
import { dlopen } from "bun:ffi";
import { environment } from "../core/environment.ts";
import { DistributedError } from "./errors.ts";
import type { Pending } from "./job.ts";

const call = (...args: ("i64" | "i32" | "buffer")[]) => ({ args, returns: "i32" }) as const;

/** Names and values of cuda.h. Handles are passed as `i64`. */
const declarations = {
  cuCtxGetDevice: call("buffer"),
  cuDeviceGetUuid_v2: call("buffer", "i32"),
  cuDeviceGetCount: call("buffer"),
  cuStreamCreate: call("buffer", "i32"),
  cuStreamDestroy_v2: call("i64"),
  cuEventCreate: call("buffer", "i32"),
  cuEventRecord: call("i64", "i64"),
  cuEventQuery: call("i64"),
  cuEventDestroy_v2: call("i64"),
} as const;

type Functions = ReturnType<typeof dlopen<typeof declarations>>["symbols"];

const [NOT_READY, NON_BLOCKING, WITHOUT_TIMING] = [600, 1, 2];

/** The driver. Its calls concern the GPU whose context is current on the calling thread. */
export class Cuda {
  private readonly functions: Functions;

  /** @throws {Error} if the library or a function is missing */
  constructor(path = environment("ORCHARD_METAL_CUDA") ?? "libcuda.so.1") {
    this.functions = dlopen(path, declarations).symbols;
  }

  /** The UUID of the current GPU, in hexadecimal. */
  currentGpu(): string {
    const device = this.number((out) => this.functions.cuCtxGetDevice(out));
    const uuid = new Uint8Array(16);
    this.check("cuDeviceGetUuid", this.functions.cuDeviceGetUuid_v2(uuid, device));
    return uuid.toHex();
  }

  /** The number of GPUs that this process sees. */
  gpuCount(): number {
    return this.number((out) => this.functions.cuDeviceGetCount(out));
  }

  private number(read: (out: Int32Array) => number): number {
    const out = new Int32Array(1);
    this.check("reading the device", read(out));
    return out[0];
  }

  /** Creates a stream, which does not wait for the default stream. */
  createStream(): number {
    return this.handle((out) => this.functions.cuStreamCreate(out, NON_BLOCKING));
  }

  destroyStream(stream: number): void {
    this.functions.cuStreamDestroy_v2(stream);
  }

  /** Returns a request that is complete when the stream reaches this point. */
  mark(stream: number): Pending {
    const event = this.handle((out) => this.functions.cuEventCreate(out, WITHOUT_TIMING));
    this.check("cuEventRecord", this.functions.cuEventRecord(event, stream));
    let isDone = false;
    return {
      test: () => {
        if (isDone) return true;
        const status = this.functions.cuEventQuery(event);
        if (status === NOT_READY) return false;
        isDone = true;
        this.functions.cuEventDestroy_v2(event);
        this.check("cuEventQuery", status);
        return true;
      },
    };
  }

  private handle(create: (out: BigUint64Array) => number): number {
    const out = new BigUint64Array(1);
    this.check("creating a stream or event", create(out));
    return Number(out[0]);
  }

  private check(name: string, status: number): void {
    if (status === 0) return;
    throw new DistributedError(
      "distributed",
      "gpuFailed",
      `NVIDIA's driver failed: ${name} returned CUDA error ${status}`,
    );
  }
}
