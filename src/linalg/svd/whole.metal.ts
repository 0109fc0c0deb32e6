import type { TicketRange } from "../../backend/backend.ts";
import { launchBatch, reads, writes } from "../../backend/metal/launch.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { matricesOf } from "../matrices.ts";
import { JACOBI } from "../metal.ts";
import { type SvdAttributes, type SvdOutputs, svdParameters } from "./primitive.ts";

const FLOAT_BYTES = 4;
const THREADGROUP_BYTES = 32768;
/** The maximum number of rows per threadgroup; larger matrices are rotated in blocks by several threadgroups. */
const MOST_ROWS = 64;
/** Threads per SIMD-group, and the maximum number of SIMD-groups per threadgroup. */
const LANES = 32;
const MOST_GROUPS = 16;

/** The sizes of a matrix. */
interface Sizes {
  readonly rows: number;
  readonly columns: number;
}

/** Whether a matrix and its rotations fit threadgroup memory. */
export function fitsThreadgroup(sizes: Sizes, attributes: SvdAttributes): boolean {
  const [matrix, rotations] = memoryOf(sizes, attributes);
  return Math.min(sizes.rows, sizes.columns) <= MOST_ROWS && matrix + rotations <= THREADGROUP_BYTES;
}

/** Rotates all rows of a matrix in threadgroup memory. */
export function launchWhole(a: Tensor, { u, s, vh, info }: SvdOutputs, attributes: SvdAttributes): TicketRange {
  const { batch, rows, columns } = matricesOf(a);
  const groups = Math.min(MOST_GROUPS, Math.max(1, Math.ceil(Math.min(rows, columns) / 2)));
  const [matrix, rotations, norms] = memoryOf({ rows, columns }, attributes);
  const hasNorms = matrix + rotations + norms <= THREADGROUP_BYTES;
  return launchBatch(batch, JACOBI * batch * rows * columns * Math.min(rows, columns), (count) => ({
    file: "linalg/svd.metal",
    name: hasNorms ? "svd" : "svd_without_norms",
    operands: [reads(a), writes(u ?? s), writes(s), writes(vh ?? s), writes(info)],
    parameters: svdParameters.bytes({ batch: count, rows, columns, ...attributes }),
    threadgroups: [count],
    threadgroup: groups * LANES,
    threadgroupMemory: hasNorms ? [matrix, rotations, norms] : [matrix, rotations],
  }));
}

/** The bytes of the matrix, of its rotations, of the norms of its rows, and of one more number. */
function memoryOf(
  { rows, columns }: Sizes,
  { vectors }: SvdAttributes,
): [matrix: number, rotations: number, norms: number] {
  const small = Math.min(rows, columns);
  const bytes = (count: number) => Math.max(16, Math.ceil((count * FLOAT_BYTES) / 16) * 16);
  return [bytes(rows * columns), bytes(vectors ? small ** 2 : 0), bytes(small + 1)];
}
