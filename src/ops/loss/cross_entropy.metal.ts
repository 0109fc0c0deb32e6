import type { Implementation } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reachOf, reads, writes } from "../../backend/metal/launch.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkRangeLater } from "../indexing/range.metal.ts";
import { type Lines, lineCount } from "../scan/lines.ts";
import { classLines, firstPlane } from "./class_lines.ts";
import type { CrossEntropyAttributes } from "./cross_entropy_primitives.ts";

const FILE = "loss/cross_entropy.metal";
const MAX_RANK = 8;
const OPERANDS = 5;
const THREADS = 256;
/** Of a state: the largest logit and three sums. */
const STATE_BYTES = 16;
/** Logits of a line that one thread turns into gradients. */
const SEQUENCE = 16;
/** Lines of this length and more have a threadgroup each. */
const LONG = 512;

export const crossEntropyMetal: Implementation<CrossEntropyAttributes> = {
  unsupported: noFloat64,
  run({ operation, inputs, outputs: [losses, used, logSums], attributes }) {
    const [logits, targets, factors = losses!] = inputs;
    const size = logits!.shape[attributes.axis]!;
    checkRangeLater({ operation, index: targets!, size, except: attributes.ignoreIndex });
    const operands = [logits!, targets!, losses!];
    const lines = classLines(operands, attributes.axis);
    const { lanes, columns } = groupingOf(lines);
    launch({
      file: FILE,
      name: `cross_entropy_${metalTypeOf(logits!.dtype)}_${metalTypeOf(targets!.dtype)}`,
      constants: [variant(attributes, inputs.length > 2), columns, lanes],
      operands: [reads(logits!), reads(targets!), reads(factors), writes(losses!), writes(used!), writes(logSums!)],
      parameters: parametersOf(operands, lines, attributes, lines.length),
      threadgroups: Math.ceil(lineCount(lines) / columns),
      threadgroup: columns * lanes,
      threadgroupMemory: [columns * lanes * STATE_BYTES],
    });
  },
};

export const crossEntropyGradientMetal: Implementation<CrossEntropyAttributes> = {
  unsupported: noFloat64,
  run({ inputs, outputs: [gradient], attributes }) {
    const [logits, targets, logSums, scale, factors = logSums!, factorSum = logSums!] = inputs;
    using largest = firstPlane(logSums!);
    const operands = [logits!, targets!, largest, scale!, gradient!];
    const lines = classLines(operands, attributes.axis);
    const { lanes, columns } = groupingOf(lines);
    const chunk = lanes * SEQUENCE;
    launch({
      file: FILE,
      name: `cross_entropy_gradient_${metalTypeOf(logits!.dtype)}_${metalTypeOf(targets!.dtype)}`,
      constants: [variant(attributes, inputs.length > 4), columns, lanes],
      operands: [...[logits!, targets!, factors, factorSum, logSums!, scale!].map(reads), writes(gradient!)],
      parameters: parametersOf(operands, lines, attributes, chunk),
      threadgroups: [Math.ceil(lineCount(lines) / columns), Math.ceil(lines.length / chunk)],
      threadgroup: columns * lanes,
    });
  },
};

/** The bits of `SMOOTHED` and `WEIGHTED`. */
const variant = ({ labelSmoothing }: CrossEntropyAttributes, isWeighted: boolean): number =>
  (labelSmoothing > 0 ? 1 : 0) + (isWeighted ? 2 : 0);

/** Threads that share a line: many where its classes are adjacent, few where those of adjacent lines are. */
function groupingOf({ length, along, strides }: Lines): { lanes: number; columns: number } {
  const isSideBySide = Math.abs(along[0]!) !== 1 && Math.abs(strides[0]!.at(-1)!) === 1;
  const lanes = isSideBySide ? (length <= 16 ? 1 : 8) : length < LONG ? 32 : THREADS;
  return { lanes, columns: THREADS / lanes };
}

/** `ClassLines` of `kernels/loss/class_lines.h`. */
function parametersOf(
  operands: readonly Tensor[],
  lines: Lines,
  { ignoreIndex, labelSmoothing }: CrossEntropyAttributes,
  chunk: number,
): Uint8Array {
  const words = new BigInt64Array(MAX_RANK * (1 + OPERANDS) + OPERANDS + 8);
  const put = (at: number, numbers: readonly number[]) => {
    for (const [index, value] of numbers.entries()) words[at + index] = BigInt(value);
  };
  const starts = MAX_RANK * (1 + OPERANDS);
  put(0, lines.shape);
  for (const [operand, strides] of lines.strides.entries()) put((operand + 1) * MAX_RANK, strides);
  put(
    starts,
    lines.offsets.map((offset, operand) => offset - reachOf(operands[operand]!).first),
  );
  put(starts + OPERANDS, [lines.shape.length, lineCount(lines), lines.length, lines.along[0]!, lines.along[4] ?? 0]);
  put(starts + OPERANDS + 5, [ignoreIndex, chunk]);
  new Float32Array(words.buffer)[2 * (starts + OPERANDS + 7)] = labelSmoothing;
  return new Uint8Array(words.buffer);
}
