import type { MetalImplementation, TicketRange } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, spanOf, writes } from "../../backend/metal/launch.ts";
import { mergedLoop } from "../../backend/metal/loop.ts";
import { scratchTensor } from "../../backend/metal/scratch.ts";
import { tupleOf } from "../../core/tuples.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { gradientsOf } from "./loss.cpu.ts";
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
  run({ inputs, outputs: [output], attributes }) {
    const [x, target, third = x, fourth = x] = inputs;
    const operands = [x, target, third, fourth];
    if (attributes.isSummed) return launchSums(operands, output, attributes);
    return launch({
      file: FILE,
      name: `loss_values_${metalTypeOf(x.dtype)}`,
      constants: constantsOf(attributes.loss),
      operands: [...operands.map(reads), writes(output)],
      ...loopOver([...operands, output], { ...attributes, factor: 1 }),
    });
  },
};

export const lossGradientMetal: MetalImplementation<LossGradientAttributes, [Tensor, Tensor, Tensor, ...Tensor[]]> = {
  unsupported: noFloat64,
  run({ inputs, outputs, attributes }) {
    const [scale, x, target, third = x, fourth = x] = inputs;
    const { loss, needs } = attributes;
    const operands = [x, target, third, fourth, scale];
    const gradients = gradientsOf(attributes, outputs, outputs[0]);
    return launch({
      file: FILE,
      name: `loss_gradients_${metalTypeOf(x.dtype)}`,
      constants: constantsOf(
        loss,
        needs.reduce((bits, isNeeded, at) => bits + (isNeeded ? 1 << at : 0), 0),
      ),
      operands: [...operands.map(reads), ...gradients.map(writes)],
      ...loopOver([...operands, ...gradients], attributes),
    });
  },
};

/** Computes the sum of each threadgroup, then the sum over threadgroups. */
function launchSums(operands: readonly Tensor[], output: Tensor, attributes: LossAttributes): TicketRange {
  const [x] = operands;
  const { loss, factor } = attributes;
  const groups = Math.max(1, Math.ceil(x.size / (THREADS * SEQUENCE)));
  const sums = groups === 1 ? output : scratchTensor([groups], "float32");
  const shared = { file: FILE, constants: constantsOf(loss), threadgroup: THREADS, threadgroupMemory: [THREADS * 4] };
  const partial = launch({
    ...shared,
    name: `loss_sums_${metalTypeOf(x.dtype)}`,
    operands: [...operands.map(reads), writes(sums)],
    parameters: loopOver(operands, { ...attributes, factor: groups === 1 ? factor : 1 }).parameters,
    threadgroups: groups,
  });
  if (groups === 1) return partial;
  const { parameters } = loopOver([sums], attributes);
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
function loopOver(operands: readonly Tensor[], { factor, parameters }: Pick<LossAttributes, "factor" | "parameters">) {
  const [{ shape }] = tupleOf(operands, 1);
  const { loop, grid, threadgroup } = mergedLoop(
    shape,
    operands.map((tensor) => ({ tensor, strides: tensor.strides })),
  );
  return { parameters: lossParameters.bytes({ loop, sequence: SEQUENCE, factor, parameters }), grid, threadgroup };
}
