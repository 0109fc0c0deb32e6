/**
 * The primitive `recurrent`, on cpu only and without gradients: all steps of one direction of a recurrent layer. On
 * other backends, and where a gradient is needed, steps are composed of other operations
 * (`nn/layers/recurrent/steps.ts`).
 */
import { needsGradient } from "../../autograd/record.ts";
import { searchedFor } from "../../backend/anomaly.ts";
import type { Implementation } from "../../backend/backend.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { executeMany } from "../../backend/dispatch.ts";
import { enumeration, type NameOf } from "../../backend/enumeration.ts";
import { array, dtype, flag, oneOf, whole } from "../../backend/fields.ts";
import { isAnyInUse } from "../../backend/overrides.ts";
import { getBackend } from "../../backend/policy.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { tupleOf } from "../../core/tuples.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { contiguous } from "../copy/copy.ts";

const recurrentKinds = enumeration("RecurrentKind", ["lstm", "gru", "tanh", "relu"]);
/** LSTM, GRU, and Elman's network with either activation. */
export type RecurrentKind = NameOf<typeof recurrentKinds>;

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
    dtype,
    kind: oneOf(recurrentKinds),
    isReversed: flag,
    hasBias: flag,
    steps: whole,
    batch: whole,
    size: whole,
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

/** Tests whether the kernel can run: on cpu only, if nothing observes single operations and no gradient is needed. */
export function hasRecurrentKernel({ products, weight, bias, hidden, cell }: RecurrentOperands): boolean {
  if (getBackend() !== "cpu" || isAnyInUse() || searchedFor.get()) return false;
  if (products.dtype !== "float32" && products.dtype !== "float64") return false;
  return !needsGradient(products, weight, hidden, ...(bias ? [bias] : []), ...(cell ? [cell] : []));
}

/**
 * Runs all steps in one call. {@link hasRecurrentKernel} must hold.
 *
 * @returns the states of all steps [steps, batch, size], and an LSTM's last cell state [batch, size]
 */
export function recurrent(
  { products, weight, bias, hidden, cell }: RecurrentOperands,
  { kind, isReversed }: { readonly kind: RecurrentKind; readonly isReversed: boolean },
): { readonly output: Tensor; readonly cell: Tensor | undefined } {
  const given = [products, weight, hidden, bias, cell].filter((operand) => operand !== undefined);
  const [steps, batch] = tupleOf(products.shape, 2);
  const [size, { dtype: kept }] = [weight.shape[1], products];
  const specs = [
    { shape: [steps, batch, size], dtype: kept },
    ...(cell ? [{ shape: [batch, size], dtype: kept }] : []),
  ] as const;
  const attributes = { kind, isReversed, hasBias: bias !== undefined };
  const [output, lastCell] = executeMany(
    recurrentPrimitive,
    given.map((operand) => contiguous(operand)),
    specs,
    attributes,
  );
  return { output, cell: lastCell };
}
