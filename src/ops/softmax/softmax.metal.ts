import type { Implementation } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { type Lines, lineCount, linesOf } from "../scan/lines.ts";
import { lineParameters } from "../scan/scan.metal.ts";
import { type SoftmaxAttributes, type SoftmaxName, softmaxNames } from "./names.ts";

const THREADS = 256;
/** Elements that a thread holds: `HELD` of the kernel. */
const HELD = 16;
/** Of a state: the largest element and the sum. */
const STATE_BYTES = 8;

export const softmaxMetal = (name: SoftmaxName): Implementation<SoftmaxAttributes> => ({
  unsupported: noFloat64,
  run({ inputs: [x, second], outputs: [output], attributes: { axis } }) {
    const y = second ?? x!;
    const operands = [x!, y, output!];
    const lines = linesOf(operands, axis);
    const lanes = lanesFor(lines);
    const columns = THREADS / lanes;
    launch({
      file: "softmax/softmax.metal",
      name: `softmax_${metalTypeOf(x!.dtype)}`,
      constants: [softmaxNames.indexOf(name), columns, lanes, lines.length <= lanes * HELD ? 1 : 0],
      operands: [reads(x!), reads(y), writes(output!)],
      parameters: lineParameters(operands, lines),
      threadgroups: Math.ceil(lineCount(lines) / columns),
      threadgroup: THREADS,
      threadgroupMemory: [THREADS * STATE_BYTES],
    });
  },
});

/** Threads that share a line: a SIMD-group or more where its elements are adjacent, few where those of adjacent lines are. */
function lanesFor({ length, along, strides }: Lines): number {
  const isSideBySide = Math.abs(along[0]!) !== 1 && Math.abs(strides[0]!.at(-1)!) === 1;
  if (isSideBySide) return length <= HELD ? 1 : 8;
  return length <= 32 * HELD ? 32 : THREADS;
}
