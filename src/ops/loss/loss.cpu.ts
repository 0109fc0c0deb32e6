import type { Implementation } from "../../backend/backend.ts";
import { cpuLibrary } from "../../backend/cpu/loader.ts";
import { check } from "../../backend/cpu/status.ts";
import { dtypeFacts } from "../../tensor/dtype.ts";
import { collapse } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { LossAttributes, LossGradientAttributes } from "./loss_primitives.ts";
import { lossNames } from "./names.ts";

const block = new Float64Array(96);

/** `orchard_cpu_loss`. */
export const lossCpu: Implementation<LossAttributes> = {
  run({ operation, inputs, outputs: [output], attributes: { name, isSummed, factor } }) {
    const [x, target, weight = x, positive = x] = inputs;
    const head = [lossNames.indexOf(name), dtypeFacts[x!.dtype].code, isSummed ? 1 : 0, factor];
    writeBlock(head, [x!, target!, weight!, positive!, output!]);
    const { native } = cpuLibrary();
    const [a, t, w, v, out] = [x, target, weight, positive, output].map((tensor) => tensor!.storage.hostBytes());
    check(native, native.orchard_cpu_loss(block, a!, t!, w!, v!, out!), operation);
  },
};

/** `orchard_cpu_loss_gradient`. */
export const lossGradientCpu: Implementation<LossGradientAttributes> = {
  run({ operation, inputs, outputs, attributes: { name, factor, needs } }) {
    const [scale, x, target, weight = x, positive = x] = inputs;
    const ofX = needs[0] ? outputs[0]! : x!;
    const ofTarget = needs[1] ? outputs.at(-1)! : x!;
    const head = [lossNames.indexOf(name), dtypeFacts[x!.dtype].code, ...needs.map(Number), factor];
    const operands = [x!, target!, weight!, positive!, scale!, ofX, ofTarget];
    writeBlock(head, operands);
    const { native } = cpuLibrary();
    const [a, t, w, v, s, out, targetOut] = operands.map(({ storage }) => storage.hostBytes());
    check(native, native.orchard_cpu_loss_gradient(block, a!, t!, w!, v!, s!, out!, targetOut!), operation);
  },
};

/** The head, the operands' offsets, and a nest of them over x's shape; an operand without axes is one number. */
function writeBlock(head: readonly number[], operands: readonly Tensor[]): void {
  const { shape } = operands[0]!;
  const strides = operands.map((operand) => (operand.rank === 0 ? shape.map(() => 0) : operand.strides));
  const nest = collapse(shape, strides);
  block.set([
    ...head,
    ...operands.map(({ offset }) => offset),
    nest.shape.length,
    ...nest.shape,
    ...nest.strides.flat(),
  ]);
}
