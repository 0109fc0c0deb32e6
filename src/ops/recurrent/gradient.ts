/** The primitive `recurrentGradient`, on cpu only, and the gradients of weights, which are products over all steps. */
import type { Implementation } from "../../backend/backend.ts";
import { cpuCall } from "../../backend/cpu/call.ts";
import { executeMany } from "../../backend/dispatch.ts";
import { array, whole } from "../../backend/fields.ts";
import { onlyCpuFuses } from "../../backend/missing.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { tupleOf } from "../../core/tuples.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { contiguous } from "../copy/copy.ts";
import { addmm } from "../matmul/addmm.ts";
import { plainMatmul as matmul } from "../matmul/plain_matmul.ts";
import { sum } from "../reduction/sum.ts";
import { filled } from "../view/embed.ts";
import { transpose } from "../view/permute.ts";
import { reshape } from "../view/reshape.ts";
import { narrow, select } from "../view/slice.ts";
import { directionFields, type RecurrentKind } from "./kinds.ts";

interface Attributes {
  readonly kind: RecurrentKind;
  readonly isReversed: boolean;
  readonly hasBias: boolean;
}

const operandNames = [
  ...(["products", "weight", "bias", "hidden", "cell", "out", "gradOut", "gradCell"] as const),
  ...(["gradProducts", "gradSums", "gradHidden", "gradFirstCell"] as const),
] as const;

const gradientCall = cpuCall(
  "recurrentGradient",
  {
    ...directionFields,
    offsets: array(whole, operandNames.length),
  },
  operandNames,
);

/**
 * Inputs: products, weight, hidden, out, the gradient of out, a GRU's bias if there is one, and an LSTM's cell and the
 * gradient of its last cell. Outputs: the gradients of products and of hidden; a GRU's of the sums, an LSTM's of cell.
 */
const gradientCpu: Implementation<Attributes, readonly Tensor[], readonly Tensor[]> = {
  run({ operation, inputs, outputs, attributes }) {
    const [products, weight, hidden, out, gradOut, ...others] = inputs as readonly Tensor[] &
      [Tensor, Tensor, Tensor, Tensor, Tensor];
    const [gradProducts, gradHidden, gradOther] = outputs;
    const isLstm = attributes.kind === "lstm";
    const bias = attributes.hasBias ? others[0] : undefined;
    const [cell, gradCell] = isLstm ? others : [];
    const [gradSums, gradFirst] = isLstm ? [undefined, gradOther] : [gradOther, undefined];
    const given = [products, weight, bias, hidden, cell, out, gradOut, gradCell];
    const operands = [...given, gradProducts, gradSums, gradHidden, gradFirst];
    const [steps, batch, size] = tupleOf(out.shape, 3);
    const offsets = operands.map((operand) => operand?.offset ?? 0);
    gradientCall(operation, { ...attributes, dtype: products.dtype, steps, batch, size, offsets }, operands);
  },
};

const gradientPrimitive = definePrimitive<Attributes>({
  name: "recurrentGradient",
  family: "recurrent",
  implementations: { metal: onlyCpuFuses, cpu: gradientCpu, reference: onlyCpuFuses },
});

/** The operands of a run, contiguous. */
interface Operands {
  readonly products: Tensor;
  readonly weight: Tensor;
  readonly bias: Tensor | undefined;
  readonly hidden: Tensor;
  readonly cell: Tensor | undefined;
}

/**
 * Returns the gradients of products, weight, hidden, and any bias and cell, in this order.
 *
 * @param output the states of all steps
 * @param gradients of the output and of an LSTM's last cell; null for 0
 */
export function gradientsOfSteps(
  { products, weight, bias, hidden, cell }: Operands,
  output: Tensor,
  [ofOutput = null, ofCell = null]: readonly (Tensor | null)[],
  { kind, isReversed }: Omit<Attributes, "hasBias">,
): Tensor[] {
  const { dtype: kept } = products;
  const given = (gradient: Tensor | null, like: Tensor): Tensor =>
    gradient ? contiguous(gradient) : filled(like.shape, kept, 0);
  const inputs = [products, weight, hidden, output, given(ofOutput, output)];
  if (bias) inputs.push(bias);
  if (cell) inputs.push(cell, given(ofCell, cell));
  const others = kind === "gru" ? [products] : cell ? [cell] : [];
  const specs = [products, hidden, ...others].map(({ shape }) => ({ shape, dtype: kept }));
  const attributes = { kind, isReversed, hasBias: bias !== undefined };
  const [ofProducts, ofHidden, ofOther] = executeMany(gradientPrimitive, inputs, specs, attributes);
  const ofSums = kind === "gru" ? ofOther : ofProducts;
  return [
    ofProducts,
    weightGradient(ofSums, hidden, output, isReversed),
    ofHidden,
    ...(bias ? [sum(ofSums, { dim: [0, 1] })] : []),
    ...(cell ? [ofOther] : []),
  ];
}

/** Sums over all steps the products of the gradients of the sums with the states before the step. */
function weightGradient(ofSums: Tensor, hidden: Tensor, output: Tensor, isReversed: boolean): Tensor {
  const steps = output.shape[0];
  const first = matmul(transpose(select(ofSums, 0, isReversed ? steps - 1 : 0), 0, 1), hidden);
  if (steps === 1) return first;
  const rows = (x: Tensor, from: number): Tensor => {
    const part = narrow(x, 0, from, steps - 1);
    return reshape(part, [part.shape[0] * part.shape[1], part.shape[2]]);
  };
  const [later, earlier] = isReversed ? [0, 1] : [1, 0];
  return addmm(first, transpose(rows(ofSums, later), 0, 1), rows(output, earlier));
}
