/** Code shared by the launches of attention's kernels. */
import type { TicketRange } from "../../backend/backend.ts";
import { gpuFamily } from "../../backend/metal/gpu_family.ts";
import { launch, metalTypeOf, type Operand, reads, writes } from "../../backend/metal/launch.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { fragmentKernel, fragmentTileFor } from "./fragments.metal.ts";
import { type Call, constantsOf, type OperandName, parametersOf } from "./parameters.metal.ts";
import { LARGEST_WIDTH } from "./primitive.ts";
import { problemOf } from "./problem.ts";
import { kernelName, rowsOf, type TiledKernel, threadsOf, tileFor } from "./tiles.metal.ts";

/** Returns why Metal's kernels can't run a call; undefined if they can. */
export function unsupportedReason(operation: Parameters<typeof problemOf>[0]): string | undefined {
  const { dim, valueDim, inputs } = problemOf(operation);
  if (inputs.q.tensor.dtype === "float64") return "Metal has no float64";
  const largest = Math.max(dim, valueDim);
  return largest > LARGEST_WIDTH ? `a head dimension of ${largest}, above the limit of ${LARGEST_WIDTH}` : undefined;
}

/** How a tiled kernel is launched. */
export interface TiledLaunch {
  readonly kernel: TiledKernel;
  /** Operands that the kernel reads and writes, as names or tensors, in the order of its buffers. */
  readonly reads: readonly (OperandName | "sequences" | Tensor)[];
  readonly writes: readonly OperandName[];
  /** The operands that the kernel reads tile by tile. */
  readonly streams: readonly OperandName[];
  /**
   * Returns the threadgroups, given the rows each holds and the columns (rows of the other side) it reads at a time.
   */
  readonly threadgroups: (rows: number, columns: number) => [number, number, number];
}

/** Encodes a kernel; does nothing if there are no rows to compute. */
export function launchTiled(call: Call, what: TiledLaunch): TicketRange | undefined {
  const { file, name, rows, columns, threadgroup } = kernelOf(call, what.kernel);
  const threadgroups = what.threadgroups(rows, columns);
  if (threadgroups.includes(0)) return undefined;
  return launch({
    file,
    name,
    constants: constantsOf(call, what.streams),
    operands: [
      ...what.reads.map((operand) => reads(tensorOf(call, operand))),
      ...what.writes.map((operand) => resultOf(call, operand)),
    ],
    parameters: parametersOf(call),
    threadgroups,
    threadgroup,
    work: workOf(call),
  });
}

/** Returns the kernel of a GPU family for a call. */
function kernelOf(call: Call, kernel: TiledKernel) {
  const { dtype } = call.operands.q!.tensor;
  const family = gpuFamily();
  const type = metalTypeOf(dtype);
  const fragments = family === "nvidia" ? fragmentTileFor(kernel, dtype, call.dim, call.valueDim) : undefined;
  if (fragments) return fragmentKernel(fragments, type);
  const tile = tileFor(kernel, family, dtype, call.dim, call.valueDim);
  return {
    file: `attention/${kernel}.metal`,
    name: kernelName(tile, type),
    rows: rowsOf(tile),
    columns: tile.columns,
    threadgroup: threadsOf(tile),
  };
}

/** Returns the floating-point operations of one pass over all pairs: scores and weighted sums of values. */
export const workOf = (call: Call): number =>
  2 *
  (call.dim + call.valueDim) *
  tilesOf(call, "queries", 1) *
  tilesOf(call, "keys", 1) *
  call.heads *
  sequenceCount(call);

/** Returns the tensor to bind for an operand. */
export function tensorOf(call: Call, operand: OperandName | "sequences" | Tensor): Tensor {
  if (typeof operand !== "string") return operand;
  const tensor = operand === "sequences" ? call.sequences : call.operands[operand]?.tensor;
  return tensor ?? call.standIn;
}

/**
 * Returns a result to bind. The stand-in for an absent result is bound as read-only, so that no other work waits for
 * it.
 */
export function resultOf(call: Call, operand: OperandName): Operand {
  const result = call.operands[operand];
  return result ? writes(result.tensor) : reads(call.standIn);
}

/** Returns the number of tiles of `size` queries or keys in the longest sequence. */
export const tilesOf = (call: Call, rows: "queries" | "keys", size: number): number =>
  Math.ceil((call.packed ? Math.max(0, ...call.packed.map((sequence) => sequence[rows])) : call[rows]) / size);

export const sequenceCount = (call: Call): number => call.packed?.length ?? call.batch;
