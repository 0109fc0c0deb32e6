/** Losses of rows of scores with margins, as one call of the cpu backend for each pass (native/cpu/loss/margin.h). */
import { isGradEnabled } from "../../autograd/modes.ts";
import { needsGradient, record } from "../../autograd/record.ts";
import type { Implementation } from "../../backend/backend.ts";
import { capturing } from "../../backend/capture.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { execute } from "../../backend/dispatch.ts";
import { enumeration, type NameOf } from "../../backend/enumeration.ts";
import { array, dtype, flag, oneOf, real, whole } from "../../backend/fields.ts";
import { liftingOf } from "../../backend/lifted.ts";
import { onlyCpuFuses } from "../../backend/missing.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { firstBackend } from "../../backend/registry.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { contiguous } from "../copy/copy.ts";
import { composedGradients } from "../gradient/composed_gradients.ts";
import type { IndexDType } from "../indexing/indices.ts";
import { errorWithRange } from "../indexing/range.cpu.ts";

export const marginLosses = enumeration("MarginLoss", ["multiMargin", "multilabelMargin"]);

interface MarginAttributes {
  readonly loss: NameOf<typeof marginLosses>;
  readonly power: number;
  readonly margin: number;
  /** Whether the inputs are scores, targets, scales and any factors, instead of scores, targets and any factors. */
  readonly isGradient: boolean;
}

const fields = {
  dtype,
  indexDType: dtype,
  loss: oneOf(marginLosses),
  rows: whole,
  classes: whole,
  power: real,
  margin: real,
  hasFactors: flag,
  offsets: array(whole, 5),
};
const operands = ["scores", "targets", "factors", "scales", "result"];
const lossCall = cpuCall("marginLoss", fields, operands);
const gradientCall = cpuCall("marginLossGradient", fields, operands);

const marginCpu: Implementation<MarginAttributes, readonly [Tensor, Tensor, ...Tensor[]], [Tensor]> = {
  run({ operation, inputs: [scores, targets, ...others], outputs: [result], attributes }) {
    const { isGradient, ...values } = attributes;
    const [scales, factors] = isGradient ? others : [undefined, others[0]];
    const given = [scores, targets, factors, scales, result];
    const classes = scores.shape.at(-1)!;
    const call = isGradient ? gradientCall : lossCall;
    const block = {
      ...values,
      dtype: scores.dtype,
      indexDType: targets.dtype,
      rows: scores.size / classes,
      classes,
      hasFactors: factors !== undefined,
      offsets: given.map((each) => each?.offset ?? 0),
    };
    const status = call.status(block, given);
    if (status !== 0) throw errorWithRange(call.error(operation, status), { operation, index: targets, size: classes });
  },
};

const marginPrimitive = definePrimitive<MarginAttributes>({
  name: "marginLoss",
  family: "loss",
  implementations: { metal: onlyCpuFuses, cpu: marginCpu, reference: onlyCpuFuses },
});

/** A call of scores [classes] or [batch, classes] with their targets, and a factor for each class. */
export interface MarginCall {
  readonly operation: string;
  readonly loss: MarginAttributes["loss"];
  readonly targets: Tensor<IndexDType>;
  readonly power: number;
  readonly margin: number;
  readonly factors: Tensor | undefined;
  /** The loss of each row, composed of other operations. */
  readonly composed: (scores: Tensor) => Tensor;
}

/** Whether {@link marginLoss} applies. */
export function fusesMargin(x: Tensor, { targets, factors }: Pick<MarginCall, "targets" | "factors">): boolean {
  if (firstBackend() !== "cpu" || capturing() !== undefined || x.size === 0) return false;
  const given = factors ? [x, targets, factors] : [x, targets];
  return !(factors && needsGradient(factors)) && liftingOf(given, undefined) === undefined;
}

/** Returns the loss of each row of float32 or float64 scores. */
export function marginLoss(x: Tensor, { operation, loss, power, margin, composed, ...given }: MarginCall): Tensor {
  const scores = contiguous(x);
  const targets = contiguous(given.targets);
  const factors = given.factors ? [contiguous(given.factors)] : [];
  const attributes: MarginAttributes = { loss, power, margin, isGradient: false };
  const shape = x.shape.slice(0, -1);
  const result = execute(marginPrimitive, [scores, targets, ...factors], shape, x.dtype, attributes, operation);
  record(operation, [scores], [result], [scores, targets, ...factors], ([gradient], [saved, classes, ...weight]) => {
    if (isGradEnabled()) return composedGradients(([scored]) => composed(scored), [saved], [true], gradient);
    const inputs = [saved, classes, contiguous(gradient), ...weight];
    const passed = { ...attributes, isGradient: true };
    return [execute(marginPrimitive, inputs, saved.shape, saved.dtype, passed, operation)];
  });
  return result;
}
