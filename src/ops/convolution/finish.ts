/**
 * The primitive `finish`, on cpu only and without gradients: it computes the epilogue of a convolution in inference, in
 * one pass over the result. On other backends it is composed of other operations.
 */
import { needsGradient } from "../../autograd/record.ts";
import { searchedFor } from "../../backend/anomaly.ts";
import type { Implementation } from "../../backend/backend.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { executeInto } from "../../backend/dispatch.ts";
import { enumeration, type NameOf } from "../../backend/enumeration.ts";
import { array, dtype, flag, oneOf, real, whole } from "../../backend/fields.ts";
import { isAnyInUse } from "../../backend/overrides.ts";
import { getBackend } from "../../backend/policy.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { tupleOf } from "../../core/tuples.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { hardswish } from "../activation/hardswish.ts";
import { leakyRelu } from "../activation/leaky_relu.ts";
import { relu } from "../activation/relu.ts";
import { sigmoid } from "../activation/sigmoid.ts";
import { silu } from "../activation/silu.ts";
import { contiguous } from "../copy/copy.ts";
import { add, mul } from "../elementwise/arithmetic.ts";
import { clamp } from "../elementwise/clamp.ts";
import { reshape } from "../view/reshape.ts";

/** The enumeration of the activations that may follow a convolution. */
export const activationNames = enumeration("FinishActivation", [
  ...(["none", "relu", "leaky", "clamp", "sigmoid", "silu", "hardsigmoid", "hardswish"] as const),
]);

/** The names of the activations that may follow a convolution. */
export const finishActivations: readonly Finish["activation"][] = activationNames.names;

/** The epilogue of a convolution: y ← f(y + bias + added) · scale + shift. */
export interface Finish {
  readonly activation: NameOf<typeof activationNames>;
  /** The slope of leaky and hardsigmoid, or the lower bound of clamp. */
  readonly alpha: number;
  /** The offset of hardsigmoid, or the upper bound of clamp. */
  readonly beta: number;
  readonly scale: number;
  readonly shift: number;
}

/** The epilogue that changes nothing. */
export const noFinish: Finish = { activation: "none", alpha: 0, beta: 0, scale: 1, shift: 0 };

interface Attributes extends Finish {
  readonly hasBias: boolean;
  readonly hasAdded: boolean;
}

const finishCall = cpuCall(
  "finish",
  {
    dtype,
    activation: oneOf(activationNames),
    hasBias: flag,
    hasAdded: flag,
    planes: whole,
    channels: whole,
    columns: whole,
    alpha: real,
    beta: real,
    scale: real,
    shift: real,
    offsets: array(whole, 3),
  },
  ["bias", "added", "y"],
);

const finishCpu: Implementation<Attributes, readonly Tensor[], [Tensor]> = {
  run({ operation, inputs, outputs: [y], attributes }) {
    const bias = attributes.hasBias ? inputs[0] : undefined;
    const added = attributes.hasAdded ? inputs.at(-1) : undefined;
    const [batch, channels] = tupleOf(y.shape, 2);
    const planes = batch * channels;
    const offsets = [bias?.offset ?? 0, added?.offset ?? 0, y.offset];
    const columns = planes === 0 ? 0 : y.size / planes;
    finishCall(operation, { ...attributes, dtype: y.dtype, planes, channels, columns, offsets }, [bias, added, y]);
  },
};

const elsewhere = { missing: "what follows a convolution is composed of other operations on this backend" } as const;
const finishPrimitive = definePrimitive<Attributes>({
  name: "finish",
  family: "convolution",
  implementations: { metal: elsewhere, cpu: finishCpu, reference: elsewhere },
});

/**
 * Applies the epilogue to the result of a convolution, y [batch, channels, …]. It may change y in place, so the caller
 * must not use y afterwards.
 *
 * @param bias [channels], of y's dtype
 * @param added of y's shape and dtype
 */
export function finished(y: Tensor, bias: Tensor | undefined, added: Tensor | undefined, finish: Finish): Tensor {
  if (!hasKernel(y, bias, added)) return composed(y, bias, added, finish);
  const inputs = [bias, added].flatMap((x) => (x ? [contiguous(x)] : []));
  executeInto(finishPrimitive, inputs, [y], { ...finish, hasBias: bias !== undefined, hasAdded: added !== undefined });
  return y;
}

function hasKernel(y: Tensor, bias: Tensor | undefined, added: Tensor | undefined): boolean {
  if (getBackend() !== "cpu" || isAnyInUse() || searchedFor.get()) return false;
  if ((y.dtype !== "float32" && y.dtype !== "float64") || !y.isContiguous) return false;
  return !needsGradient(y, ...(bias ? [bias] : []), ...(added ? [added] : []));
}

const activations: Readonly<Record<Finish["activation"], (x: Tensor, finish: Finish) => Tensor>> = {
  none: (x) => x,
  relu: (x) => relu(x),
  leaky: (x, { alpha }) => leakyRelu(x, { negativeSlope: alpha }),
  clamp: (x, { alpha, beta }) => clamp(x, { min: alpha, max: beta }),
  sigmoid: (x) => sigmoid(x),
  silu: (x) => silu(x),
  hardsigmoid: (x, { alpha, beta }) => clamp(add(mul(x, alpha), beta), { min: 0, max: 1 }),
  hardswish: (x) => hardswish(x),
};

function composed(y: Tensor, bias: Tensor | undefined, added: Tensor | undefined, finish: Finish): Tensor {
  const biased: Tensor = bias ? add(y, reshape(bias, [bias.size, ...new Array<number>(y.rank - 2).fill(1)])) : y;
  const sum: Tensor = added ? add(biased, added) : biased;
  const active = activations[finish.activation](sum, finish);
  const scaled: Tensor = finish.scale === 1 ? active : mul(active, finish.scale);
  return finish.shift === 0 ? scaled : add(scaled, finish.shift);
}
