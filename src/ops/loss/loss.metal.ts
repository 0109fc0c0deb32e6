import type { MetalImplementation, TicketRange } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, spanOf, writes } from "../../backend/metal/launch.ts";
import { mergedLoop } from "../../backend/metal/loop.ts";
import { scratchTensor } from "../../backend/metal/scratch.ts";
import { lastElement } from "../../core/collections.ts";
import { tupleOf } from "../../core/tuples.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import {
  type LossAttributes,
  type LossGradientAttributes,
  type LossName,
  losses,
  lossParameters,
} from "./primitive.ts";

const FILE = "loss/loss.metal";
const THREADS = 256;
/**
 * The most elements that one thread sums. Together with the tree over threads, the error is as small as in pairwise
 * summation.
 */
const SEQUENCE = 64;

export const lossMetal: MetalImplementation<LossAttributes, [Tensor, Tensor, ...Tensor[]], [Tensor]> = {
  unsupported: noFloat64,
  run({ inputs, outputs: [output], attributes: { loss, isSummed, factor } }) {
    const [x, target, weight = x, positiveWeight = x] = inputs;
    const operands = [x, target, weight, positiveWeight];
    if (isSummed) return launchSums(loss, operands, output, factor);
    return launch({
      file: FILE,
      name: `loss_values_${metalTypeOf(x.dtype)}`,
      constants: constantsOf(loss),
      operands: [...operands.map(reads), writes(output)],
      ...loopOver([...operands, output], 1),
    });
  },
};

export const lossGradientMetal: MetalImplementation<LossGradientAttributes, [Tensor, Tensor, Tensor, ...Tensor[]]> = {
  unsupported: noFloat64,
  run({ inputs, outputs, attributes: { loss, factor, needs } }) {
    const [scale, x, target, weight = x, positiveWeight = x] = inputs;
    const [gradient, targetGradient] = [outputs[0], lastElement(outputs)];
    const operands = [x, target, weight, positiveWeight, scale];
    return launch({
      file: FILE,
      name: `loss_gradients_${metalTypeOf(x.dtype)}`,
      constants: constantsOf(loss, (needs[0] ? 1 : 0) + (needs[1] ? 2 : 0)),
      operands: [...operands.map(reads), writes(gradient), writes(targetGradient)],
      ...loopOver([...operands, gradient, targetGradient], factor),
    });
  },
};

/** Computes the sum of each threadgroup, then the sum over threadgroups. */
function launchSums(loss: LossName, operands: readonly Tensor[], output: Tensor, factor: number): TicketRange {
  const [x] = operands;
  const groups = Math.max(1, Math.ceil(x.size / (THREADS * SEQUENCE)));
  const sums = groups === 1 ? output : scratchTensor([groups], "float32");
  const shared = { file: FILE, constants: constantsOf(loss), threadgroup: THREADS, threadgroupMemory: [THREADS * 4] };
  const partial = launch({
    ...shared,
    name: `loss_sums_${metalTypeOf(x.dtype)}`,
    operands: [...operands.map(reads), writes(sums)],
    parameters: loopOver(operands, groups === 1 ? factor : 1).parameters,
    threadgroups: groups,
  });
  if (groups === 1) return partial;
  const { parameters } = loopOver([sums], factor);
  const total = launch({
    ...shared,
    name: "loss_total",
    operands: [reads(sums), writes(output)],
    parameters,
    threadgroups: 1,
  });
  sums.dispose();
  return spanOf([partial, total]);
}

/** Returns the constants: the operation, `COLUMNS`, `LANES` and `NEEDS`. */
const constantsOf = (loss: LossName, needs = 0): number[] => [losses.ordinal(loss), 1, THREADS, needs];

/** Returns the parameters, and a grid with one thread for each element. */
function loopOver(operands: readonly Tensor[], factor: number) {
  const [{ shape }] = tupleOf(operands, 1);
  const { loop, grid, threadgroup } = mergedLoop(
    shape,
    operands.map((tensor) => ({ tensor, strides: tensor.strides })),
  );
  return { parameters: lossParameters.bytes({ loop, sequence: SEQUENCE, factor }), grid, threadgroup };
}
