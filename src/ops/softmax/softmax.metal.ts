import type { MetalImplementation } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { sliceValues } from "../../backend/metal/slices.ts";
import { type Slices, sliceCount, slicesOf } from "../../tensor/slices.ts";
import { type SoftmaxAttributes, type SoftmaxName, softmaxes, softmaxParameters } from "./primitive.ts";

const THREADS = 256;
/** Elements that a thread holds: `HELD` of the kernel. */
const HELD = 16;
/** Of a state: the largest element and the sum. */
const STATE_BYTES = 8;

export const softmaxMetal = (name: SoftmaxName): MetalImplementation<SoftmaxAttributes> => ({
  unsupported: noFloat64,
  run({ inputs: [x, y = x], outputs: [output], attributes: { axis } }) {
    const operands = [x!, y!, output!];
    const slices = slicesOf(operands, axis);
    const lanes = lanesFor(slices);
    const columns = THREADS / lanes;
    return launch({
      file: "softmax/softmax.metal",
      name: `softmax_${metalTypeOf(x!.dtype)}`,
      constants: [softmaxes.ordinal(name), columns, lanes, slices.length <= lanes * HELD ? 1 : 0],
      operands: [reads(x!), reads(y!), writes(output!)],
      parameters: softmaxParameters.bytes(sliceValues(slices, operands)),
      threadgroups: Math.ceil(sliceCount(slices) / columns),
      threadgroup: THREADS,
      threadgroupMemory: [THREADS * STATE_BYTES],
    });
  },
});

/**
 * Threads that share a slice: a SIMD-group or more where its elements are adjacent, few where those of adjacent slices
 * are.
 */
function lanesFor({ length, along, nest }: Slices): number {
  const isSideBySide = Math.abs(along[0]!) !== 1 && Math.abs(nest.strides[0]!.at(-1)!) === 1;
  if (isSideBySide) return length <= HELD ? 1 : 8;
  return length <= 32 * HELD ? 32 : THREADS;
}
