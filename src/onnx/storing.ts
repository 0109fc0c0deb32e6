/** Converts or quantizes a model's weights while the graph is built. */

import { QuantizedEmbedding } from "../nn/quantized/embedding.ts";
import { formatFor } from "../nn/quantized/model.ts";
import * as ops from "../ops/index.ts";
import type { QuantizedFormat } from "../quant/formats.ts";
import { type ProductPrecision, quantizedMatmul } from "../quant/matmul/matmul.ts";
import { quantize, quantizeGgml } from "../quant/quantize.ts";
import type { QuantizedTensor } from "../quant/quantized_tensor.ts";
import type { Tensor } from "../tensor/tensor.ts";
import type { Call, Operator } from "./call.ts";
import { attributesOf, capturedBy, type Step } from "./graph.ts";
import { exactInputsOf, finite, floats, type OnnxFloat } from "./one_dtype.ts";

/** The options of `loadOnnx`, and the weights that it has quantized, by name. */
export interface Storing {
  readonly dtype: OnnxFloat | undefined;
  readonly format: QuantizedFormat | undefined;
  readonly precision: ProductPrecision;
  readonly quantized: Map<string, QuantizedTensor>;
}

type NewStep = Omit<Step, "last">;

/** Operators whose inputs after the first are always weights, even scalars. */
const WEIGHTED: ReadonlySet<string> = new Set([
  "Conv",
  "ConvTranspose",
  "GRU",
  "Gemm",
  "GroupNormalization",
  "InstanceNormalization",
  "LSTM",
  "LayerNormalization",
  "MatMul",
  "PRelu",
  "RMSNormalization",
  "RNN",
]);

/** Returns the steps of a graph and of its inner graphs. */
const withInner = (steps: readonly NewStep[]): NewStep[] =>
  steps.flatMap((step) => [step, ...step.attributes.graphs().flatMap((graph) => withInner(graph.steps))]);

/**
 * Converts and quantizes the tensors of a graph in place, one at a time, and returns the steps that use them.
 *
 * Scalars are not converted unless they are weights: a scalar may be the factor of a size, which half precision would
 * round. If a step combines it with a tensor of the model's dtype, {@link ofOneDType} converts it.
 */
export function storeWeights(
  constants: Map<string, Tensor>,
  steps: readonly NewStep[],
  outputs: readonly string[],
  storing: Storing,
): NewStep[] {
  const { dtype, format } = storing;
  const stored = format === undefined ? [...steps] : quantizeWeights(constants, steps, outputs, storing);
  if (dtype === undefined) return stored;
  const [exact, weights] = [new Set<string>(), new Set<string>()];
  for (const { operator, inputs } of withInner(stored)) {
    for (const at of exactInputsOf(operator, dtype)) exact.add(inputs[at] ?? "");
    if (WEIGHTED.has(operator)) for (const name of inputs.slice(1)) weights.add(name);
  }
  for (const [name, x] of constants) {
    const isConverted = floats.has(x.dtype) && x.dtype !== dtype && !exact.has(name);
    if (!isConverted || (x.size === 1 && !weights.has(name))) continue;
    constants.set(name, finite(x, dtype));
    x.dispose();
  }
  return stored.map((step) => ({ ...step, float: dtype }));
}

/** The use of a weight: a matrix of a product, stored as it is or transposed, or a table of rows. */
type Use = "product" | "transposed" | "table";

function useOf({ operator, inputs, attributes }: NewStep, name: string): Use | undefined {
  const isLast = inputs[1] === name && inputs[0] !== name && !inputs.slice(2).includes(name);
  if (operator === "MatMul" && isLast) return "product";
  if (operator === "Gather" && inputs[0] === name && inputs[1] !== name)
    return attributes.number("axis", 0) === 0 ? "table" : undefined;
  const isPlain = ["alpha", "beta"].every((each) => attributes.number(each, 1) === 1) && !attributes.flag("transA");
  if (operator !== "Gemm" || !isLast || !isPlain) return undefined;
  return attributes.flag("transB") ? "transposed" : "product";
}

/** Quantizes the matrices of products, and tables of rows. A matrix whose size does not fit the format is unchanged. */
function quantizeWeights(
  constants: Map<string, Tensor>,
  steps: readonly NewStep[],
  outputs: readonly string[],
  storing: Storing,
): NewStep[] {
  const users = new Map<string, NewStep[]>();
  for (const step of steps)
    for (const name of new Set(step.inputs)) users.set(name, [...(users.get(name) ?? []), step]);
  const captured = new Set([...outputs, ...steps.flatMap(({ attributes }) => capturedBy(attributes))]);
  const replaced = new Map<NewStep, NewStep>();
  for (const [name, x] of constants) {
    const list = users.get(name) ?? [];
    const uses = new Set(list.map((step) => (step.isFunction ? undefined : useOf(step, name))));
    const [use] = uses;
    if (uses.size !== 1 || use === undefined || captured.has(name) || x.rank !== 2 || !floats.has(x.dtype)) continue;
    const format = formatFor(storing.format!, x.shape[use === "product" ? 0 : 1]);
    if (format === undefined) continue;
    const weight = use === "product" ? ops.transpose(x, 0, 1).contiguous() : x;
    const packed = typeof format === "string" ? quantizeGgml(weight, format) : quantize(weight, format);
    storing.quantized.set(name, packed);
    constants.delete(name);
    for (const each of new Set([x, weight])) each.dispose();
    for (const step of list) replaced.set(step, quantizedStep(step, packed, storing.precision));
  }
  return steps.map((step) => replaced.get(step) ?? step);
}

function quantizedStep(step: NewStep, weight: QuantizedTensor, precision: ProductPrecision): NewStep {
  const compute = step.operator === "Gather" ? rowsOf(weight) : productWith(weight, precision);
  const inputs = step.inputs.toSpliced(step.operator === "Gather" ? 0 : 1, 1);
  return { ...step, operator: `Quantized${step.operator}`, compute, inputs, attributes: attributesOf([]) };
}

/** Returns the operator of a product. Its inputs are x, and an optional addend. */
const productWith =
  (weight: QuantizedTensor, precision: ProductPrecision): Operator =>
  (call: Call) => {
    const added = call.optional(1);
    const isBias = added?.rank === 1 && added.size === weight.shape[0];
    const product = quantizedMatmul(call.tensor(0), weight, { precision, bias: isBias ? added : null });
    return added && !isBias ? ops.add(product, added.to(product.dtype)) : product;
  };

/** Returns the operator that looks up rows. Negative indices count from the end. */
function rowsOf(weight: QuantizedTensor): Operator {
  const table = new QuantizedEmbedding(weight);
  return (call) => {
    const index = call.tensor(0);
    return table.forward(ops.where(ops.lt(index, 0), ops.add(index, weight.shape[0]), index).to(index.dtype));
  };
}
