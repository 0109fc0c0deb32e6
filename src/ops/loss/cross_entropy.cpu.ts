import type { Implementation } from "../../backend/backend.ts";
import { cpuLibrary } from "../../backend/cpu/loader.ts";
import { check } from "../../backend/cpu/status.ts";
import { dtypeFacts } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkRangeOnCpu } from "../indexing/range.cpu.ts";
import type { Lines } from "../scan/lines.ts";
import { classLines, firstPlane } from "./class_lines.ts";
import type { CrossEntropyAttributes } from "./cross_entropy_primitives.ts";

const block = new Float64Array(80);

/** `orchard_cpu_cross_entropy`. */
export const crossEntropyCpu: Implementation<CrossEntropyAttributes> = {
  run({ operation, inputs, outputs: [losses, used, logSums], attributes }) {
    const [logits, targets, factors, factorSum] = inputs;
    const size = logits!.shape[attributes.axis]!;
    checkRangeOnCpu({ operation, index: targets!, size, except: attributes.ignoreIndex });
    const lines = classLines([logits!, targets!, losses!], attributes.axis);
    writeBlock(attributes, [logits!, targets!], lines, [factors, factorSum], []);
    const { native } = cpuLibrary();
    const [x, y, a, b, c] = [logits, targets, losses, used, logSums].map((tensor) => tensor!.storage.hostBytes());
    const w = factors?.storage.hostBytes() ?? block;
    check(native, native.orchard_cpu_cross_entropy(block, x!, y!, w, a!, b!, c!), operation);
  },
};

/** `orchard_cpu_cross_entropy_gradient`. */
export const crossEntropyGradientCpu: Implementation<CrossEntropyAttributes> = {
  run({ operation, inputs, outputs: [gradient], attributes }) {
    const [logits, targets, logSums, scale, factors, factorSum] = inputs;
    using largest = firstPlane(logSums!);
    const lines = classLines([logits!, targets!, largest, scale!, gradient!], attributes.axis);
    const tail = [logSums!.offset, scale!.offset, gradient!.offset, lines.along[4]!];
    writeBlock(attributes, [logits!, targets!], lines, [factors, factorSum], tail);
    const { native } = cpuLibrary();
    const [x, y, a, b, out] = [logits, targets, logSums, scale, gradient].map((tensor) => tensor!.storage.hostBytes());
    const w = factors?.storage.hostBytes() ?? block;
    check(native, native.orchard_cpu_cross_entropy_gradient(block, x!, y!, w, a!, b!, out!), operation);
  },
};

function writeBlock(
  { ignoreIndex, labelSmoothing }: CrossEntropyAttributes,
  [logits, targets]: readonly [Tensor, Tensor],
  { length, along, shape, strides }: Lines,
  [factors, factorSum]: readonly [Tensor | undefined, Tensor | undefined],
  tail: readonly number[],
): void {
  block.set([
    ...[dtypeFacts[logits.dtype].code, dtypeFacts[targets.dtype].code, length, ignoreIndex, labelSmoothing],
    ...[logits.offset, along[0]!, targets.offset],
    ...[factors ? 1 : 0, factors?.offset ?? 0, factorSum ? numberIn(factorSum) : length],
    ...[...tail, shape.length, ...shape, ...strides.flat()],
  ]);
}

const numberIn = ({ storage, dtype, offset }: Tensor): number => Number(storage.array(dtype)[offset]);
