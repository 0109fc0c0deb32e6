import type { Implementation } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { mergedLoop } from "../../backend/metal/loop.ts";
import { elementCount } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type RopeAttributes, rowsOf, turnsOf } from "./problem.ts";

/** Pairs whose turns fit beside the other parameters into the 4 KB that a kernel is given inline. */
const MOST_PAIRS = 448;
const THREADS = 256;

export const ropeMetal: Implementation<RopeAttributes> = {
  unsupported: (call) =>
    noFloat64(call) ??
    (call.attributes.frequencies.length > MOST_PAIRS ? `rows turn up to ${2 * MOST_PAIRS} elements there` : undefined),
  run({ inputs: [x, positions], outputs: [output], attributes }) {
    const pairs = attributes.frequencies.length;
    const columns = x!.shape.at(-1)! - pairs; // a thread each: for a pair, or for an element that stays
    const rows = elementCount(x!.shape.slice(0, -1));
    const width = Math.min(columns, THREADS);
    launch({
      file: "position/rope.metal",
      name: `rope_${metalTypeOf(x!.dtype)}_${metalTypeOf(positions?.dtype ?? "int64")}`,
      constants: [Number(positions !== undefined)],
      operands: [reads(x!), reads(positions ?? output!), writes(output!)],
      parameters: parametersOf(x!, output!, positions, attributes),
      grid: [columns, rows],
      threadgroup: [width, Math.min(rows, Math.floor(THREADS / width))],
    });
  },
};

/** `Rope` of `kernels/position/rope.metal`. */
function parametersOf(
  x: Tensor,
  output: Tensor,
  positions: Tensor | undefined,
  { frequencies, magnitude, interleaved, offset }: RopeAttributes,
): Uint8Array {
  const strides = rowsOf(x, output, positions);
  const pairs = frequencies.length;
  const [stride, outStride] = [x.strides.at(-1)!, output.strides.at(-1)!];
  const [step, second] = interleaved ? [2, 1] : [1, pairs];
  const { parameters } = mergedLoop(
    strides.shape,
    [
      { tensor: x, strides: strides.x },
      { tensor: positions ?? output, strides: strides.positions },
      { tensor: output, strides: strides.out },
    ],
    [offset, pairs, step, second, stride, outStride],
  );
  const turns = new BigUint64Array(1 + MOST_PAIRS);
  new Float32Array(turns.buffer).set([magnitude]);
  turns.set(turnsOf(frequencies), 1);
  return Buffer.concat([parameters, new Uint8Array(turns.buffer)]);
}
