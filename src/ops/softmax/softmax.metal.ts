import type { MetalImplementation } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { sliceValues } from "../../backend/metal/slices.ts";
import { lastElement } from "../../core/collections.ts";
import { type Slices, sliceCount, slicesOf } from "../../tensor/slices.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type SoftmaxAttributes, type SoftmaxName, softmaxes, softmaxParameters } from "./primitive.ts";

/** Size of a state: the largest element and the sum. */
const STATE_BYTES = 8;
/** Size that the kernel declares if it needs no states. */
const LEAST_BYTES = 16;

export const softmaxMetal = (
  name: SoftmaxName,
): MetalImplementation<SoftmaxAttributes, [Tensor, ...Tensor[]], [Tensor]> => ({
  unsupported: noFloat64,
  run({ inputs: [x, y = x], outputs: [output], attributes: { axis } }) {
    const operands = [x, y, output];
    const slices = slicesOf(operands, axis);
    const { lanes, count, threads } = teamFor(slices);
    const columns = threads / lanes;
    const fits = slices.length <= lanes * count;
    const isAdjacent = slices.along.every((stride) => stride === 1);
    return launch({
      file: "softmax/softmax.metal",
      name: `softmax_${metalTypeOf(x.dtype)}`,
      constants: [softmaxes.ordinal(name), columns, lanes, Number(fits), count, Number(isAdjacent)],
      operands: [reads(x), reads(y), writes(output)],
      parameters: softmaxParameters.bytes(sliceValues(slices, operands)),
      threadgroups: Math.ceil(sliceCount(slices) / columns),
      threadgroup: threads,
      threadgroupMemory: [lanes < 32 ? threads * STATE_BYTES : LEAST_BYTES],
    });
  },
});

/** Threads that share a slice, elements that each holds, and threads of a threadgroup. */
interface Team {
  readonly lanes: number;
  readonly count: number;
  readonly threads: number;
}

/** Teams for slices of up to lanes · count elements; longer slices use the last one. */
const rowTeams: readonly Team[] = [
  ...[4, 8, 16, 32].map((count) => ({ lanes: 32, count, threads: 128 })),
  ...[8, 16, 32].map((count) => ({ lanes: 256, count, threads: 256 })),
];
const columnTeams: readonly Team[] = [
  { lanes: 1, count: 16, threads: 256 },
  { lanes: 8, count: 16, threads: 256 },
];

/**
 * Returns a team of at least a SIMD-group if a slice is contiguous, or of few threads if neighboring slices are
 * adjacent in memory.
 */
function teamFor({ length, along, nest }: Slices): Team {
  const isSideBySide = Math.abs(along[0]) !== 1 && Math.abs(lastElement(nest.strides[0])) === 1;
  const teams = isSideBySide ? columnTeams : rowTeams;
  return teams.find(({ lanes, count }) => length <= lanes * count) ?? lastElement(teams);
}
