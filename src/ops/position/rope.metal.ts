import type { MetalImplementation } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { mergedLoop } from "../../backend/metal/loop.ts";
import { lastElement } from "../../core/collections.ts";
import { elementCount } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { MOST_PAIRS, type RopeAttributes, ropeParameters } from "./primitive.ts";
import { phasesOf, rowsOf } from "./rows.ts";

const THREADS = 256;

export const ropeMetal: MetalImplementation<RopeAttributes, [Tensor, ...Tensor[]], [Tensor]> = {
  unsupported: (call) =>
    noFloat64(call) ??
    (call.attributes.frequencies.length > MOST_PAIRS
      ? `more than ${2 * MOST_PAIRS} elements of a row rotate`
      : undefined),
  run({ inputs: [x, positions], outputs: [output], attributes }) {
    const pairs = attributes.frequencies.length;
    const columns = lastElement(x.shape) - pairs; // one thread per pair, and per unchanged element
    const rows = elementCount(x.shape.slice(0, -1));
    const width = Math.min(columns, THREADS);
    return launch({
      file: "position/rope.metal",
      name: `rope_${metalTypeOf(x.dtype)}_${metalTypeOf(positions?.dtype ?? "int64")}`,
      constants: [Number(positions !== undefined)],
      operands: [reads(x), reads(positions ?? output), writes(output)],
      parameters: parametersOf(x, output, positions, attributes),
      grid: [columns, rows],
      threadgroup: [width, Math.min(rows, Math.floor(THREADS / width))],
    });
  },
};

function parametersOf(
  x: Tensor,
  output: Tensor,
  positions: Tensor | undefined,
  { frequencies, magnitude, interleaved, offset }: RopeAttributes,
): Uint8Array {
  const strides = rowsOf(x, output, positions);
  const pairs = frequencies.length;
  const { loop } = mergedLoop(strides.shape, [
    { tensor: x, strides: strides.x },
    { tensor: positions ?? output, strides: strides.positions },
    { tensor: output, strides: strides.out },
  ]);
  return ropeParameters.bytes({
    rows: loop,
    offset,
    pairs,
    magnitude,
    phases: phasesOf(frequencies),
    ...(interleaved ? { step: 2, second: 1 } : { step: 1, second: pairs }),
    stride: lastElement(x.strides),
    outStride: lastElement(output.strides),
  });
}
