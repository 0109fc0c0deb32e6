/** The negative log likelihood as one call of the cpu backend, without a gradient. */
import { needsGradient } from "../../autograd/record.ts";
import type { Implementation } from "../../backend/backend.ts";
import { capturing } from "../../backend/capture.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { slices } from "../../backend/cpu/slices.ts";
import { execute } from "../../backend/dispatch.ts";
import { dtype, flag, whole } from "../../backend/fields.ts";
import { liftingOf } from "../../backend/lifted.ts";
import { onlyCpuFuses } from "../../backend/missing.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { firstBackend } from "../../backend/registry.ts";
import { accumulationDType } from "../../tensor/dtype.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { contiguous } from "../copy/copy.ts";
import type { IndexDType } from "../indexing/indices.ts";
import { errorWithRange } from "../indexing/range.cpu.ts";
import { classSlices } from "./class_slices.ts";
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

/** Whether {@link fusedNll} applies: on cpu, if nothing is recorded. */
export function fusesNll(...operands: readonly Tensor[]): boolean {
  if (firstBackend() !== "cpu" || capturing() !== undefined) return false;
  return !needsGradient(...operands) && !liftingOf(operands, undefined);
}

/** Computes the loss of log probabilities; see `nllLoss`. */
export function fusedNll(x: Tensor, targets: Tensor<IndexDType>, call: CrossEntropyCall): Tensor {
  const { axis, ignoreIndex, weight, reduction } = call;
  const wide = accumulationDType(x.dtype);
  const factors = weight ? [contiguous(toDType(weight, wide))] : [];
  const shape = reduction === "none" ? targets.shape : [];
  const attributes = { axis, ignoreIndex, reduction };
  return toDType(execute(nllPrimitive, [x, targets, ...factors], shape, wide, attributes, "nllLoss"), x.dtype);
}
