import type { MetalImplementation, OperationCall, TicketRange } from "../../backend/backend.ts";
import { launchBatch, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { lastElement } from "../../core/collections.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { matricesOf } from "../matrices.ts";
import { JACOBI, MAX_SIZE } from "../metal.ts";
import { factorWork, fasterOnCpu } from "../route.ts";
import { launchBlocked, MAX_BLOCKED_SIZE } from "./blocked.metal.ts";
import { type EighAttributes, eighParameters } from "./primitive.ts";

/** The kernels: each handles matrices of up to `rows` rows in threadgroup memory, with `threads` threads. */
const kernels = [
  { rows: 8, threads: 32 },
  { rows: 16, threads: 32 },
  { rows: 32, threads: 128 },
  { rows: MAX_SIZE, threads: 256 },
] as const;

export const eighMetal: MetalImplementation<EighAttributes, [Tensor, ...Tensor[]]> = {
  unsupported(call) {
    const [a] = call.inputs;
    const size = lastElement(a.shape);
    return noFloat64(call) ?? tooLarge(size) ?? fasterOnCpu("eigh", size > MAX_SIZE, factorWork(a));
  },
  run(call) {
    const [a] = call.inputs;
    return lastElement(a.shape) <= MAX_SIZE ? launchWhole(call) : launchBlocked(call);
  },
};

/** Why a matrix is computed on another backend. */
const tooLarge = (size: number): string | undefined =>
  size <= MAX_BLOCKED_SIZE
    ? undefined
    : `the kernels support at most ${MAX_BLOCKED_SIZE} rows, got ${size}: the cpu is faster for larger matrices`;

/** Handles one matrix per threadgroup, in its memory. */
function launchWhole({
  inputs: [a],
  outputs,
  attributes: { upper, vectors },
}: OperationCall<EighAttributes>): TicketRange {
  const { batch, rows: size } = matricesOf(a);
  const { rows, threads } = kernels.find((kernel) => size <= kernel.rows)!;
  return launchBatch(batch, JACOBI * batch * size ** 3, (count) => ({
    file: "linalg/eigh.metal",
    name: `${vectors ? "eigh" : "eigvalsh"}_${rows}`,
    operands: [reads(a), ...outputs.map(writes)],
    parameters: eighParameters.bytes({ batch: count, size, upper }),
    threadgroups: [count],
    threadgroup: threads,
  }));
}
