/**
 * The primitives `recurrent` and `recurrentGradient`, on cpu only: all steps of one direction of a recurrent layer, and
 * back-propagation through them. On other backends, steps are composed of other operations
 * (`nn/layers/recurrent/steps.ts`).
 */
import { isGradEnabled } from "../../autograd/modes.ts";
import { needsGradient, record } from "../../autograd/record.ts";
import { searchedFor } from "../../backend/anomaly.ts";
import type { Implementation } from "../../backend/backend.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { executeMany } from "../../backend/dispatch.ts";
import { array, whole } from "../../backend/fields.ts";
import { liftingOf } from "../../backend/lifted.ts";
import { isAnyInUse } from "../../backend/overrides.ts";
import { getBackend } from "../../backend/policy.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { tupleOf } from "../../core/tuples.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { contiguous } from "../copy/copy.ts";
import { grad } from "../gradient/backward.ts";
import { gradientsOfSteps } from "./gradient.ts";
import { directionFields, type RecurrentKind } from "./kinds.ts";

interface Attributes {
  readonly kind: RecurrentKind;
  readonly isReversed: boolean;
  readonly hasBias: boolean;
}

const operandNames = ["inputs", "weight", "bias", "hidden", "cell", "out", "lastCell"] as const;
const perOperand = array(whole, operandNames.length);
const recurrentCall = cpuCall(
  "recurrent",
  {
    ...directionFields,
    offsets: perOperand,
    stepStrides: perOperand,
    rowStrides: perOperand,
  },
  operandNames,
);

const recurrentCpu: Implementation<Attributes, readonly Tensor[], [Tensor, Tensor]> = {
  run({ operation, inputs, outputs: [out, lastCell], attributes }) {
    const [products, weight, hidden, ...others] = inputs as [Tensor, Tensor, Tensor, ...Tensor[]];
    const bias = attributes.hasBias ? others[0] : undefined;
    const cell = attributes.kind === "lstm" ? others.at(-1) : undefined;
    const operands = [products, weight, bias, hidden, cell, out, lastCell];
    const [steps, batch, size] = tupleOf(out.shape, 3);
    const values = {
      ...attributes,
      dtype: products.dtype,
      steps,
      batch,
      size,
      offsets: operands.map((operand) => operand?.offset ?? 0),
      stepStrides: operands.map((operand) => operand?.strides.at(-3) ?? 0),
      rowStrides: operands.map((operand) => operand?.strides.at(-2) ?? 0),
    };
    recurrentCall(operation, values, operands);
  },
};

const elsewhere = { missing: "recurrent layers are composed of other operations on this backend" } as const;
const recurrentPrimitive = definePrimitive<Attributes>({
  name: "recurrent",
  family: "recurrent",
  implementations: { metal: elsewhere, cpu: recurrentCpu, reference: elsewhere },
});

/** The operands of {@link recurrent}. */
export interface RecurrentOperands {
  /** The products of the inputs with their weights, plus biases: [steps, batch, gates · size]. */
  readonly products: Tensor;
  /** [gates · size, size] */
  readonly weight: Tensor;
  /** [gates · size]; only for a GRU. */
  readonly bias: Tensor | undefined;
  /** [batch, size] */
  readonly hidden: Tensor;
  /** [batch, size]; only for an LSTM. */
  readonly cell: Tensor | undefined;
}

/** Tests whether the kernel can run: on cpu only, if nothing observes single operations. */
export function hasRecurrentKernel({ products, weight, bias, hidden, cell }: RecurrentOperands): boolean {
  if (getBackend() !== "cpu" || isAnyInUse() || searchedFor.get()) return false;
  if (products.dtype !== "float32" && products.dtype !== "float64") return false;
  const given = [products, weight, hidden, ...(bias ? [bias] : []), ...(cell ? [cell] : [])];
  if (!needsGradient(...given)) return true;
  return products.size > 0 && given.every((each) => each.dtype === products.dtype) && !liftingOf(given, undefined);
}

/** The results of all steps: the states [steps, batch, size], and an LSTM's last cell state [batch, size]. */
export interface RecurrentRun {
  readonly output: Tensor;
  readonly cell: Tensor | undefined;
}

/**
 * Runs all steps in one call, with gradients. {@link hasRecurrentKernel} must hold.
 *
 * @param composed computes the same of other operations, for gradients of gradients; required if a gradient is
 */
export function recurrent(
  { products, weight, bias, hidden, cell }: RecurrentOperands,
  { kind, isReversed }: { readonly kind: RecurrentKind; readonly isReversed: boolean },
  composed?: (operands: RecurrentOperands) => RecurrentRun,
): RecurrentRun {
  const given = [products, weight, hidden, bias, cell]
    .filter((operand) => operand !== undefined)
    .map((operand) => contiguous(operand));
  const [steps, batch] = tupleOf(products.shape, 2);
  const [size, { dtype: kept }] = [weight.shape[1], products];
  const specs = [
    { shape: [steps, batch, size], dtype: kept },
    ...(cell ? [{ shape: [batch, size], dtype: kept }] : []),
  ] as const;
  const attributes = { kind, isReversed, hasBias: bias !== undefined };
  const outputs = executeMany(recurrentPrimitive, given, specs, attributes);
  const named = (tensors: readonly Tensor[]): RecurrentOperands => {
    const [x, factor, state, ...others] = tensors as [Tensor, Tensor, Tensor, ...Tensor[]];
    return {
      products: x,
      weight: factor,
      hidden: state,
      bias: bias && others[0],
      cell: cell && others[bias ? 1 : 0],
    };
  };
  record("recurrent", given, outputs, [...given, outputs[0]], (incoming, saved, needs) => {
    const gradients: readonly (Tensor | null)[] = incoming;
    const operands = saved.slice(0, given.length);
    if (!isGradEnabled())
      return gradientsOfSteps(named(operands), saved[given.length], gradients, { kind, isReversed });
    const run = composed!(named(operands));
    const results = [run.output, run.cell].filter((result, at) => result !== undefined && gradients[at] !== null);
    const needed = operands.filter((_, at) => needs[at]);
    const found = grad(results as Tensor[], needed, {
      gradOutputs: gradients.filter((gradient) => gradient !== null),
      createGraph: true,
    });
    return operands.map((_, at) => (needs[at] ? found.shift()! : null));
  });
  const [output, lastCell] = outputs as [Tensor, Tensor?];
  return { output, cell: lastCell };
}
