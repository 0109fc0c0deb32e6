import type { MetalImplementation } from "../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, writes } from "../backend/metal/launch.ts";
import { currentCapture } from "../observe/capture.ts";
import { fieldsOf, MAX_PARAMETERS, operandsOf, padded, type UpdateAttributes, updateParameters } from "./primitive.ts";
import { updateRules } from "./rules.ts";

const THREADS = 256;
/** Elements per threadgroup: `CHUNK` in the kernel. */
const CHUNK = 1024;

export const updateMetal: MetalImplementation<UpdateAttributes> = {
  unsupported: (call) =>
    call.attributes.members.length > MAX_PARAMETERS
      ? `the kernel updates at most ${MAX_PARAMETERS} parameters at once`
      : noFloat64(call),
  run({ inputs, outputs, attributes }) {
    const { stateBefore, stateAfter, before, gradients, after } = operandsOf(inputs, outputs, attributes);
    const sizes = after.map(({ size }) => size);
    const { firstChunks, total } = chunksOf(sizes, CHUNK);
    const parametersOf = (of: UpdateAttributes) => updateParameters.bytes({ ...fieldsOf(of, sizes), firstChunks });
    currentCapture()?.liveParameters((rows) =>
      parametersOf({
        ...attributes,
        members: attributes.members.map((member, at) => ({ ...member, coefficients: rows[at] })),
      }),
    );
    return launch({
      file: "optim/update.metal",
      name: `update_${metalTypeOf(after[0].dtype)}_${metalTypeOf(gradients[0].dtype)}`,
      constants: [updateRules.ordinal(attributes.rule), attributes.hasMaster ? 1 : 0],
      // Every buffer argument must be bound, so the first parameter fills the unused ones.
      operands: [
        reads(stateBefore ?? before[0]),
        writes(stateAfter ?? after[0]),
        ...padded(before, MAX_PARAMETERS, before[0]).map(reads),
        ...padded(gradients, MAX_PARAMETERS, gradients[0]).map(reads),
        ...padded(after, MAX_PARAMETERS, after[0]).map(writes),
      ],
      parameters: parametersOf(attributes),
      threadgroups: total,
      threadgroup: THREADS,
    });
  },
};

/** Returns the index of each tensor's first chunk, and the total number of chunks, of `chunk` elements each. */
export function chunksOf(sizes: readonly number[], chunk: number): { firstChunks: readonly number[]; total: number } {
  const firstChunks: number[] = [];
  let total = 0;
  for (const size of sizes) {
    firstChunks.push(total);
    total += Math.ceil(size / chunk);
  }
  return { firstChunks, total };
}
