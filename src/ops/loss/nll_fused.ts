/** The negative log likelihood as one call of the cpu backend, and its gradient as another. */
import { isGradEnabled, noGrad } from "../../autograd/modes.ts";
import { needsGradient, record } from "../../autograd/record.ts";
import type { Implementation } from "../../backend/backend.ts";
import { capturing } from "../../backend/capture.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { slices } from "../../backend/cpu/slices.ts";
import { execute } from "../../backend/dispatch.ts";
import { array, dtype, flag, whole } from "../../backend/fields.ts";
import { liftingOf } from "../../backend/lifted.ts";
import { onlyCpuFuses } from "../../backend/missing.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { firstBackend } from "../../backend/registry.ts";
import { accumulationDType } from "../../tensor/dtype.ts";
import { elementCount } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { contiguous } from "../copy/copy.ts";
import { composedGradients } from "../gradient/composed_gradients.ts";
import type { IndexDType } from "../indexing/indices.ts";
import { errorWithRange } from "../indexing/range.cpu.ts";
import { expand } from "../view/expand.ts";
import { reshape } from "../view/reshape.ts";
import { classSlices } from "./class_slices.ts";
import { ofLogarithms } from "./cross_entropy_composed.ts";
import type { CrossEntropyCall } from "./options.ts";

type NllAttributes = Pick<CrossEntropyCall, "axis" | "ignoreIndex" | "reduction">;

const nllCall = cpuCall(
  "nllLoss",
  {
    dtype,
    indexDType: dtype,
    ignoreIndex: whole,
    hasFactors: flag,
    factorsOffset: whole,
    isSummed: flag,
    isMean: flag,
    slices: slices(3),
  },
  ["x", "targets", "factors", "result"],
);

const nllCpu: Implementation<NllAttributes, readonly [Tensor, Tensor, ...Tensor[]], [Tensor]> = {
  run({ operation, inputs, outputs: [output], attributes: { axis, ignoreIndex, reduction } }) {
    const [x, targets, factors] = inputs;
    const isSummed = reduction !== "none";
    // a sum has no axes, so it gets the targets' shape with strides of 0
    using place = isSummed
      ? new Tensor(
          output.storage,
          output.dtype,
          targets.shape,
          targets.shape.map(() => 0),
        )
      : null;
    const values = {
      dtype: x.dtype,
      indexDType: targets.dtype,
      ignoreIndex,
      isSummed,
      isMean: reduction === "mean",
      hasFactors: factors !== undefined,
      factorsOffset: factors?.offset ?? 0,
      slices: classSlices([x, targets, place ?? output], axis),
    };
    const status = nllCall.status(values, [x, targets, factors, output]);
    if (status === 0) return;
    const range = { operation, index: targets, size: x.shape[axis], except: ignoreIndex };
    throw errorWithRange(nllCall.error(operation, status), range);
  },
};

const nllPrimitive = definePrimitive<NllAttributes>({
  name: "nllLoss",
  family: "loss",
  implementations: { metal: onlyCpuFuses, cpu: nllCpu, reference: onlyCpuFuses },
});

const nllGradientCall = cpuCall(
  "nllLossGradient",
  {
    dtype,
    indexDType: dtype,
    outer: whole,
    classes: whole,
    inner: whole,
    ignoreIndex: whole,
    hasFactors: flag,
    isMean: flag,
    offsets: array(whole, 4),
    scaleSteps: array(whole, 2),
  },
  ["targets", "factors", "scales", "result"],
);

/** Inputs: targets, contiguous; the gradient of each loss, [outer, inner]; and any factors of classes, contiguous. */
const nllGradientCpu: Implementation<NllAttributes, readonly [Tensor, Tensor, ...Tensor[]], [Tensor]> = {
  run({ operation, inputs, outputs: [result], attributes: { axis, ignoreIndex, reduction } }) {
    const [targets, scales, factors] = inputs;
    const given = [targets, factors, scales, result];
    const values = {
      dtype: result.dtype,
      indexDType: targets.dtype,
      outer: scales.shape[0],
      classes: result.shape[axis],
      inner: scales.shape[1],
      ignoreIndex,
      hasFactors: factors !== undefined,
      isMean: reduction === "mean",
      offsets: given.map((each) => each?.offset ?? 0),
      scaleSteps: scales.strides,
    };
    nllGradientCall(operation, values, given);
  },
};

const nllGradientPrimitive = definePrimitive<NllAttributes>({
  name: "nllLossGradient",
  family: "loss",
  implementations: { metal: onlyCpuFuses, cpu: nllGradientCpu, reference: onlyCpuFuses },
});

/** Whether {@link fusedNll} applies: on cpu, if the weights need no gradient. */
export function fusesNll(x: Tensor, targets: Tensor, weight?: Tensor): boolean {
  if (firstBackend() !== "cpu" || capturing() !== undefined || (weight && needsGradient(weight))) return false;
  return !liftingOf(weight ? [x, targets, weight] : [x, targets], undefined);
}

/** Computes the loss of log probabilities; see `nllLoss`. */
export function fusedNll(x: Tensor, targets: Tensor<IndexDType>, call: CrossEntropyCall): Tensor {
  const { axis, ignoreIndex, weight, reduction } = call;
  const wide = accumulationDType(x.dtype);
  const factors = weight ? [contiguous(toDType(weight, wide))] : [];
  const shape = reduction === "none" ? targets.shape : [];
  const attributes = { axis, ignoreIndex, reduction };
  const losses = noGrad(() => execute(nllPrimitive, [x, targets, ...factors], shape, wide, attributes, "nllLoss"));
  const result = noGrad(() => toDType(losses, x.dtype));
  record("nllLoss", [x], [result], [x, targets, ...factors], ([gradient], [saved, classes, ...weights]) => {
    if (isGradEnabled()) {
      const savedCall = { ...call, weight: weight && weights[0] };
      const composed = (variable: Tensor): Tensor => toDType(ofLogarithms(variable, classes, savedCall), x.dtype);
      return composedGradients(([variable]) => composed(variable), [saved], [true], gradient);
    }
    const sizes = [elementCount(saved.shape.slice(0, axis)), elementCount(saved.shape.slice(axis + 1))];
    const wideGradient = toDType(gradient, wide);
    const scales = gradient.rank === 0 ? expand(wideGradient, sizes) : reshape(wideGradient, sizes);
    const inputs = [contiguous(classes), scales, ...weights];
    return [execute(nllGradientPrimitive, inputs, saved.shape, saved.dtype, attributes, "nllLoss")];
  });
  return result;
}
