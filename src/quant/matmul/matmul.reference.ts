import type { Implementation } from "../../backend/backend.ts";
import { store, toNumbers } from "../../backend/reference/elements.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { rowsOf } from "../rows.ts";
import { type ProductAttributes, productInputs } from "./attributes.ts";
import { roundParts } from "./bytes.ts";

/** Unpacks each row of weights once and multiplies it with all rows of x; sums are in float64. */
export const quantizedMatmulReference: Implementation<ProductAttributes, readonly Tensor[], [Tensor]> = {
  run({ inputs, outputs: [output], attributes }) {
    const { x, weights, bias } = productInputs(inputs, attributes);
    storeProduct(output, { x, weights, bias }, attributes);
  },
};

interface ProductInputs {
  readonly x: Tensor;
  readonly weights: readonly Tensor[];
  readonly bias: Tensor | undefined;
}

/** Writes x Wᵀ, or x W, rounded to the dtype of `output` before a bias is added. */
export function storeProduct(
  output: Tensor,
  { x, weights, bias }: ProductInputs,
  attributes: Omit<ProductAttributes, "hasBias">,
): void {
  const { rows, columns, count, isTransposed, isFast } = attributes;
  const factors = toNumbers(x);
  if (isFast) roundParts(factors, columns);
  const result = new Float64Array(output.size);
  const unpack = rowsOf(attributes, weights);
  const values = new Float32Array(columns);
  for (let row = 0; row < rows; row++) {
    unpack(row, values);
    for (let at = 0; at < count; at++) {
      if (isTransposed) addMultiple(result.subarray(at * columns), values, factors[at * rows + row]);
      else result[at * rows + row] = dot(factors.subarray(at * columns), values);
    }
  }
  store(output, result);
  if (bias === undefined) return;
  const [products, biases] = [toNumbers(output), toNumbers(bias)];
  store(
    output,
    products.map((value, at) => value + biases[at % biases.length]),
  );
}

function dot(x: Float64Array, values: Float32Array): number {
  let sum = 0;
  for (let at = 0; at < values.length; at++) sum += x[at] * values[at];
  return sum;
}

function addMultiple(sums: Float64Array, values: Float32Array, factor: number): void {
  for (let at = 0; at < values.length; at++) sums[at] += factor * values[at];
}
