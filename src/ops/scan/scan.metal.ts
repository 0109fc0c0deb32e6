import type { MetalImplementation } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reachOf, reads, writes } from "../../backend/metal/launch.ts";
import { sliceValues } from "../../backend/metal/slices.ts";
import { MAX_RANK } from "../../tensor/shape.ts";
import { sliceCount, slicesOf } from "../../tensor/slices.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type Lines, lineCount } from "./lines.ts";
import { type ScanAttributes, type ScanName, scanParameters, scans } from "./primitive.ts";

const THREADS = 256;
/** A threadgroup takes each slice of this length and more, where the operation allows it. */
const LONG = 64;

export const scanMetal = (name: ScanName): MetalImplementation<ScanAttributes> => ({
  unsupported: noFloat64,
  run({ inputs: [x, a = x], outputs: [output], attributes: { axis, reverse } }) {
    const operands = [x!, a!, output!];
    const slices = slicesOf(operands, axis, { reverse });
    const count = sliceCount(slices);
    const hasLong = name === "cumsum" || name === "cumprod";
    const isLong = hasLong && slices.length >= LONG && Math.abs(slices.along[0]!) === 1;
    return launch({
      file: "scan/scan.metal",
      name: `${isLong ? "scan_long" : "scan"}_${metalTypeOf(x!.dtype)}`,
      constants: [scans.ordinal(name)],
      operands: [reads(x!), reads(a!), writes(output!)],
      parameters: scanParameters.bytes(sliceValues(slices, operands)),
      threadgroups: isLong ? [count] : [Math.ceil(count / THREADS)],
      threadgroup: THREADS,
    });
  },
});

/** `LineParameters` of `kernels/scan/lines.h`. */
export function lineParameters(operands: readonly Tensor[], lines: Lines): Uint8Array {
  const words = new BigInt64Array(4 * MAX_RANK + 9);
  const put = (at: number, numbers: readonly number[]) => {
    for (const [index, value] of numbers.entries()) words[at + index] = BigInt(value);
  };
  put(0, lines.shape);
  for (const [operand, strides] of lines.strides.entries()) put((operand + 1) * MAX_RANK, strides);
  put(4 * MAX_RANK, lines.along);
  put(
    4 * MAX_RANK + 3,
    lines.offsets.map((offset, operand) => offset - reachOf(operands[operand]!).first),
  );
  put(4 * MAX_RANK + 6, [lines.shape.length, lines.length, lineCount(lines)]);
  return new Uint8Array(words.buffer);
}
