/**
 * Exchanges gradients and sharded parameters in training: over MPI, through memory that the host can read, or over
 * NCCL, from GPU to GPU.
 */
import { getBackend } from "../backend/policy.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { DistributedError } from "./errors.ts";
import type { Pending } from "./job.ts";
import { elementsOf, isReady } from "./memory.ts";
import type { Communicator, Elements, Mpi } from "./mpi.ts";
import type { Nccl } from "./nccl.ts";
import type { Connection } from "./world.ts";

export interface Exchange {
  /** The library, for traces and codepaths: `Open MPI v4.1.4` or `NCCL 2.28.9`. */
  readonly name: string;
  /** Whether a call can start without waiting for a device. */
  readonly isReady: (x: Tensor) => boolean;
  /** Sums x in place over all ranks. */
  allReduce(operation: string, x: Tensor): Pending;
  /** Sums `from` over all ranks; each rank receives its part. @param counts the elements of each rank's part */
  reduceParts(operation: string, from: Tensor, to: Tensor, counts: readonly number[]): Pending;
  /** Joins the elements of all ranks in the order of ranks. */
  allGather(operation: string, from: Tensor, to: Tensor): Pending;
}

/** Returns the exchange over MPI. MPI reads and writes host memory, and waits for a device that still computes it. */
export const mpiExchange = (mpi: Mpi, everyone: Communicator): Exchange => ({
  name: mpi.version(),
  isReady: () => true,
  allReduce: (operation, x) => mpi.allReduce(operation, everyone, elementsOf(operation, x), "sum"),
  reduceParts: (operation, from, to, counts) => {
    const [sent, received] = [elementsOf(operation, from), elementsOf(operation, to)];
    return mpi.reduceScatterParts(operation, everyone, sent, received, counts, "sum");
  },
  allGather: (operation, from, to) =>
    mpi.allGather(operation, everyone, elementsOf(operation, from), elementsOf(operation, to)),
});

/**
 * Returns the exchange over NCCL. NCCL's kernels run on a separate stream. They start once the Metal commands that
 * compute their operands are complete, so that the backward pass overlaps with the exchange.
 */
export const ncclExchange = (nccl: Nccl): Exchange => ({
  name: nccl.library.name,
  isReady,
  allReduce: (operation, x) => nccl.allReduce(gpuElementsOf(operation, x)),
  reduceParts: (operation, from, to, counts) =>
    nccl.reduceParts(gpuElementsOf(operation, from), gpuElementsOf(operation, to), counts),
  allGather: (operation, from, to) => nccl.allGather(gpuElementsOf(operation, from), gpuElementsOf(operation, to)),
});

/**
 * Returns the memory of a tensor in a shared Metal buffer, which is managed memory on an NVIDIA GPU. An access to other
 * memory of the host would end the GPU's context.
 */
function gpuElementsOf(operation: string, x: Tensor): Elements {
  const elements = elementsOf(operation, x); // moves private buffers to shared memory
  if (x.storage.memory.device === "metal") return elements;
  const text = `expected a tensor on the GPU, got ${x.describe()} in the host's memory; codepaths() tells why`;
  throw new DistributedError(operation, "notOnGpu", text);
}

/** Returns the exchange for tensors of the current backend. NCCL supports only the GPU's tensors. */
export const exchangeOf = ({ overMpi, overNccl }: Connection): Exchange =>
  overNccl !== undefined && getBackend() === "metal" ? overNccl : overMpi;
