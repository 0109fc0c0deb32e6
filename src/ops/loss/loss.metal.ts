import type { Implementation } from "../../backend/backend.ts";
import { metalContext } from "../../backend/metal/context.ts";
import { launch, metalTypeOf, noFloat64, reads, startOf, writes } from "../../backend/metal/launch.ts";
import { MetalMemory } from "../../backend/metal/memory.ts";
import { collapse, elementCount } from "../../tensor/shape.ts";
import { Storage } from "../../tensor/storage.ts";
import { Tensor } from "../../tensor/tensor.ts";
import type { LossAttributes, LossGradientAttributes } from "./loss_primitives.ts";
import { type LossName, lossNames } from "./names.ts";

const FILE = "loss/loss.metal";
const MAX_RANK = 8;
const OPERANDS = 7;
const THREADS = 256;
/** Elements that one thread adds up at most: with the tree over threads, the error stays that of pairwise summation. */
const SEQUENCE = 64;
/** The grid is rows of so many threads: a coordinate has 32 bits, an element's number may need more. */
const ROW = 2 ** 30;

export const lossMetal: Implementation<LossAttributes> = {
  unsupported: noFloat64,
  run({ inputs, outputs: [output], attributes: { name, isSummed, factor } }) {
    const [x, target, weight = x, positive = x] = inputs;
    const operands = [x!, target!, weight!, positive!];
    if (isSummed) return launchSums(name, operands, output!, factor);
    launch({
      file: FILE,
      name: `loss_values_${metalTypeOf(x!.dtype)}`,
      constants: constantsOf(name),
      operands: [...operands.map(reads), writes(output!)],
      ...loopOf([...operands, output!], 1),
    });
  },
};

export const lossGradientMetal: Implementation<LossGradientAttributes> = {
  unsupported: noFloat64,
  run({ inputs, outputs, attributes: { name, factor, needs } }) {
    const [scale, x, target, weight = x, positive = x] = inputs;
    const [ofX, ofTarget] = [outputs[0]!, outputs.at(-1)!];
    const operands = [x!, target!, weight!, positive!, scale!];
    launch({
      file: FILE,
      name: `loss_gradients_${metalTypeOf(x!.dtype)}`,
      constants: constantsOf(name, (needs[0] ? 1 : 0) + (needs[1] ? 2 : 0)),
      operands: [...operands.map(reads), writes(ofX), writes(ofTarget)],
      ...loopOf([...operands, ofX, ofTarget], factor),
    });
  },
};

/** What one threadgroup adds up, then what these left. */
function launchSums(name: LossName, operands: readonly Tensor[], output: Tensor, factor: number): void {
  const count = elementCount(operands[0]!.shape);
  const groups = Math.max(1, Math.ceil(count / (THREADS * SEQUENCE)));
  const sums = groups === 1 ? output : scratch(groups);
  const shared = { file: FILE, constants: constantsOf(name), threadgroup: THREADS, threadgroupMemory: [THREADS * 4] };
  launch({
    ...shared,
    name: `loss_sums_${metalTypeOf(operands[0]!.dtype)}`,
    operands: [...operands.map(reads), writes(sums)],
    parameters: loopOf(operands, groups === 1 ? factor : 1).parameters,
    threadgroups: groups,
  });
  if (groups === 1) return;
  const parameters = loopOf([sums], factor).parameters;
  launch({ ...shared, name: "loss_total", operands: [reads(sums), writes(output)], parameters, threadgroups: 1 });
  sums.dispose();
}

/** Memory of the device for the time of a call. */
const scratch = (count: number): Tensor =>
  new Tensor(new Storage(new MetalMemory(metalContext(), count * 4)), "float32", [count]);

/** The operation, `COLUMNS`, `LANES` and `NEEDS`. */
const constantsOf = (name: LossName, needs = 0): number[] => [lossNames.indexOf(name), 1, THREADS, needs];

/** `LossLoop`, and one thread for each element. */
function loopOf(operands: readonly Tensor[], factor: number) {
  const { shape, strides } = collapse(
    operands[0]!.shape,
    operands.map((operand) => operand.strides),
  );
  const starts = MAX_RANK * (1 + OPERANDS);
  const words = new BigInt64Array(starts + OPERANDS + 4);
  const put = (at: number, numbers: readonly number[]) => {
    for (const [index, value] of numbers.entries()) words[at + index] = BigInt(value);
  };
  const count = elementCount(shape);
  put(0, shape);
  for (const [operand, own] of strides.entries()) put(MAX_RANK * (1 + operand), own);
  put(starts, operands.map(startOf));
  put(starts + OPERANDS, [shape.length, count, SEQUENCE]);
  new Float32Array(words.buffer)[2 * (starts + OPERANDS + 3)] = factor;
  return {
    parameters: new Uint8Array(words.buffer),
    grid: [Math.min(count, ROW), Math.ceil(count / ROW)] as const,
    threadgroup: [Math.min(count, THREADS)] as const,
  };
}
