import type { Implementation } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reachOf, reads, writes } from "../../backend/metal/launch.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type Lines, lineCount, linesOf } from "./lines.ts";
import { type ScanAttributes, type ScanName, scanNames } from "./names.ts";

const MAX_RANK = 8;
const THREADS = 256;
/** Lines of this length and more are walked along by a threadgroup each, where the operation allows it. */
const LONG = 64;

export const scanMetal = (name: ScanName): Implementation<ScanAttributes> => ({
  unsupported: noFloat64,
  run({ inputs: [x, second], outputs: [output], attributes: { axis, reverse } }) {
    const a = second ?? x!;
    const operands = [x!, a, output!];
    const lines = linesOf(operands, axis, reverse);
    const count = lineCount(lines);
    const isLong = lines.length >= LONG && (name === "cumsum" || name === "cumprod") && Math.abs(lines.along[0]!) === 1;
    launch({
      file: "scan/scan.metal",
      name: `${isLong ? "scan_long" : "scan"}_${metalTypeOf(x!.dtype)}`,
      constants: [scanNames.indexOf(name)],
      operands: [reads(x!), reads(a), writes(output!)],
      parameters: lineParameters(operands, lines),
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
