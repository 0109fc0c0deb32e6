import type { Implementation } from "../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, type Operand, reads, writes } from "../backend/metal/launch.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { MOST_PARAMETERS } from "./batch.ts";
import { coefficientNames, ruleNames } from "./rules.ts";
import { operandsOf, type UpdateAttributes } from "./update.ts";

const THREADS = 256;
/** Elements of a threadgroup: `CHUNK` of the kernel. */
const CHUNK = 1024;
/** Bytes of `UpdateMember` and of what stands before them in `Update`, `kernels/optim/update.metal`. */
const [HEAD_BYTES, MEMBER_BYTES] = [16, 64];

export const updateMetal: Implementation<UpdateAttributes> = {
  unsupported: noFloat64,
  run({ inputs, outputs, attributes }) {
    const { stateBefore, stateAfter, before, gradients, after } = operandsOf(inputs, outputs, attributes);
    const counts = after.map(({ size }) => size);
    launch({
      file: "optim/update.metal",
      name: `update_${metalTypeOf(after[0]!.dtype)}_${metalTypeOf(gradients[0]!.dtype)}`,
      constants: [ruleNames.indexOf(attributes.rule), attributes.hasMaster ? 1 : 0],
      operands: [
        reads(stateBefore ?? before[0]!),
        writes(stateAfter ?? after[0]!),
        ...nine(before, reads),
        ...nine(gradients, reads),
        ...nine(after, writes),
      ],
      parameters: parametersOf(attributes, counts),
      threadgroups: counts.reduce((sum, count) => sum + chunksOf(count), 0),
      threadgroup: THREADS,
    });
  },
};

const chunksOf = (count: number): number => Math.ceil(count / CHUNK);

/** Every argument has to be bound: where there are fewer parameters, the first stands in. */
const nine = (tensors: readonly Tensor[], access: (tensor: Tensor) => Operand): Operand[] =>
  Array.from({ length: MOST_PARAMETERS }, (_, index) => access(tensors[index] ?? tensors[0]!));

/** `Update` of the kernel. */
function parametersOf({ plane, members }: UpdateAttributes, counts: readonly number[]): Uint8Array {
  const bytes = new Uint8Array(HEAD_BYTES + MOST_PARAMETERS * MEMBER_BYTES);
  const view = new DataView(bytes.buffer);
  view.setBigUint64(0, BigInt(plane), true);
  view.setUint32(8, members.length, true);
  let firstChunk = 0;
  for (const [index, { start, coefficients }] of members.entries()) {
    const at = HEAD_BYTES + index * MEMBER_BYTES;
    view.setBigUint64(at, BigInt(counts[index]!), true);
    view.setBigUint64(at + 8, BigInt(start), true);
    view.setUint32(at + 16, firstChunk, true);
    for (const [place, name] of coefficientNames.entries())
      view.setFloat32(at + 20 + 4 * place, coefficients[name], true);
    firstChunk += chunksOf(counts[index]!);
  }
  return bytes;
}
