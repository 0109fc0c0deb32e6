/**
 * The primitives `ctc` and `ctcGradient`, on cpu only. On other backends, and for higher-order gradients, the loss is
 * composed of other operations (`ctc_loss.ts`).
 */
import type { Implementation } from "../../backend/backend.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { execute, executeMany } from "../../backend/dispatch.ts";
import { array, dtype, flag, real, whole } from "../../backend/fields.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { tupleOf } from "../../core/tuples.ts";
import type { Tensor } from "../../tensor/tensor.ts";

const fields = { dtype, times: whole, batch: whole, classes: whole, width: whole };
const ctcCall = cpuCall(
  "ctc",
  { ...fields, isMean: flag, infinite: real, offsets: array(whole, 6), strides: array(whole, 3) },
  ["logProbs", "states", "lengths", "alphas", "totals", "losses"],
);
const ctcGradientCall = cpuCall(
  "ctcGradient",
  { ...fields, isMean: flag, offsets: array(whole, 7), strides: array(whole, 3) },
  ["logProbs", "states", "lengths", "alphas", "totals", "gradient", "output"],
);

/** How losses are finished. */
export interface CtcFinish {
  /** Whether each loss is divided by its number of labels. */
  readonly isMean: boolean;
  /** The loss of impossible labels, which has no gradient: ∞ or 0. */
  readonly infinite: number;
}

function blockOf(operands: readonly Tensor[]) {
  const [logProbs, states] = tupleOf(operands, 2);
  const [times, batch, classes] = tupleOf(logProbs.shape, 3);
  return {
    dtype: logProbs.dtype,
    times,
    batch,
    classes,
    width: states.shape[1],
    offsets: operands.map(({ offset }) => offset),
    strides: logProbs.strides,
  };
}

const ctcCpu: Implementation<CtcFinish> = {
  run({ operation, inputs, outputs, attributes }) {
    const operands = [...inputs, ...outputs];
    ctcCall(operation, { ...blockOf(operands), ...attributes }, operands);
  },
};
const ctcGradientCpu: Implementation<CtcFinish> = {
  run({ operation, inputs, outputs, attributes: { isMean } }) {
    const operands = [...inputs, ...outputs];
    ctcGradientCall(operation, { ...blockOf(operands), isMean }, operands);
  },
};

const elsewhere = { missing: "ctcLoss is composed of other operations on this backend" } as const;
const ctcPrimitive = definePrimitive<CtcFinish>({
  name: "ctc",
  family: "loss",
  implementations: { metal: elsewhere, cpu: ctcCpu, reference: elsewhere },
});
const ctcGradientPrimitive = definePrimitive<CtcFinish>({
  name: "ctcGradient",
  family: "loss",
  implementations: { metal: elsewhere, cpu: ctcGradientCpu, reference: elsewhere },
});

/** Results of the forward pass; the gradient uses `alphas` and `totals`. */
export interface CtcForward {
  readonly alphas: Tensor;
  readonly totals: Tensor;
  /** [batch] */
  readonly losses: Tensor;
}

/**
 * Computes the losses, without recording.
 *
 * @param logProbs [times, batch, classes], float32 or float64
 * @param states int64 [batch, width]: the class of each label, interleaved with blanks
 * @param lengths int64 [2, batch]: the time steps and the number of labels of each batch element
 */
export function ctcForward(logProbs: Tensor, states: Tensor, lengths: Tensor, finish: CtcFinish): CtcForward {
  const [times, batch] = tupleOf(logProbs.shape, 2);
  const specs = [
    { shape: [batch, times, states.shape[1]], dtype: logProbs.dtype },
    { shape: [batch, times + 1], dtype: "float64" },
    { shape: [batch], dtype: logProbs.dtype },
  ] as const;
  const [alphas, totals, losses] = executeMany(ctcPrimitive, [logProbs, states, lengths], specs, finish, "ctcLoss");
  return { alphas, totals, losses };
}

/**
 * Computes the gradient of logProbs, without recording it.
 *
 * @param operands the inputs of {@link ctcForward}, alphas and totals, and the gradient of the losses, contiguous
 */
export function ctcBackward(operands: readonly Tensor[], finish: CtcFinish): Tensor {
  const [{ shape, dtype: type }] = tupleOf(operands, 1);
  return execute(ctcGradientPrimitive, operands, shape, type, finish, "ctcLoss");
}
