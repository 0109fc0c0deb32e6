import type { MetalImplementation } from "../../backend/backend.ts";
import { launch, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { matricesOf } from "../matrices.ts";
import { type SvdAttributes, svdOutputs, svdParameters } from "./primitive.ts";

const FLOAT_BYTES = 4;
const THREADGROUP_BYTES = 32768;
/** Rows that rotate in a threadgroup: with more, a single matrix is slower here than on the cpu. */
const MOST_ROWS = 64;
/** Threads of a SIMD-group, and the most groups of a threadgroup. */
const LANES = 32;
const MOST_GROUPS = 16;

export const svdMetal: MetalImplementation<SvdAttributes> = {
  unsupported: (call) => noFloat64(call) ?? tooLarge(call.inputs[0]!, call.attributes),
  run({ inputs: [a], outputs, attributes }) {
    const { batch, rows, columns } = matricesOf(a!);
    const { u, s, vh, info } = svdOutputs(outputs, attributes);
    const groups = Math.min(MOST_GROUPS, Math.max(1, Math.ceil(Math.min(rows, columns) / 2)));
    const [matrix, rotations, norms] = memoryOf(a!, attributes);
    const hasNorms = matrix + rotations + norms <= THREADGROUP_BYTES;
    return launch({
      file: "linalg/svd.metal",
      name: hasNorms ? "svd" : "svd_without_norms",
      operands: [reads(a!), writes(u ?? s), writes(s), writes(vh ?? s), writes(info)],
      parameters: svdParameters.bytes({ batch, rows, columns, ...attributes }),
      threadgroups: [batch],
      threadgroup: groups * LANES,
      threadgroupMemory: hasNorms ? [matrix, rotations, norms] : [matrix, rotations],
    });
  },
};

/** Bytes of the matrix, of its rotations and of the norms of its rows. */
function memoryOf(a: Tensor, { vectors }: SvdAttributes): [matrix: number, rotations: number, norms: number] {
  const { rows, columns } = matricesOf(a);
  const small = Math.min(rows, columns);
  const bytes = (count: number) => Math.max(16, Math.ceil((count * FLOAT_BYTES) / 16) * 16);
  return [bytes(rows * columns), bytes(vectors ? small ** 2 : 0), bytes(small)];
}

function tooLarge(a: Tensor, attributes: SvdAttributes): string | undefined {
  const { rows, columns } = matricesOf(a);
  const [matrix, rotations] = memoryOf(a, attributes);
  if (Math.min(rows, columns) <= MOST_ROWS && matrix + rotations <= THREADGROUP_BYTES) return undefined;
  return (
    `the kernel keeps a matrix and its rotations in ${THREADGROUP_BYTES} bytes of threadgroup memory, got ${rows} x ` +
    `${columns}, which take ${matrix + rotations}`
  );
}
