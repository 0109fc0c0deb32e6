/**
 * GPTQ: rounds columns one after the other. Later columns compensate the rounding error of each column, as far as the
 * inputs are correlated.
 *
 * Source: E. Frantar et al., "GPTQ", 2023, algorithm 1, without its blocks of columns, which only make it faster.
 */

import { noGrad } from "../../../autograd/modes.ts";
import { lastElement } from "../../../core/collections.ts";
import { cholesky } from "../../../linalg/cholesky/cholesky.ts";
import { choleskyInverse } from "../../../linalg/cholesky/solve.ts";
import { toDType } from "../../../ops/copy/cast.ts";
import { fromArray } from "../../../ops/creation/tensor.ts";
import { type Group, type GroupRule, leastSquares } from "../../../quant/affine/groups.ts";
import { encodeTo } from "../../../quant/affine/rounding.ts";
import type { AffineFormat, ScaleDType } from "../../../quant/formats.ts";
import { affineOfLevels, finiteFloats, resultDType } from "../../../quant/quantize.ts";
import type { QuantizedTensor } from "../../../quant/quantized_tensor.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { tidy } from "../../../tensor/tidy.ts";

/** Added to the diagonal, as a fraction of its mean; the paper's value. */
const DAMPING = 0.01;

/**
 * Quantizes W to an affine format by GPTQ, so that products with the calibration inputs stay close to the products with
 * W.
 *
 * @param w [out, in] @param products Σ xᵀ x, float64 [in, in]
 */
export function roundByErrors(w: Tensor, products: Tensor, format: AffineFormat): QuantizedTensor {
  const [rows, columns] = w.sizes(2);
  const dtype = resultDType(w);
  const factor = inverseFactor(products, columns);
  const values = Float64Array.from(finiteFloats("quantizeModel", w));
  const levels = new Uint8Array(rows * columns);
  const groups = columns / format.groupSize;
  const [scales, biases] = [new Float32Array(rows * groups), new Float32Array(rows * groups)];
  for (let row = 0; row < rows; row++) {
    const rowValues = values.subarray(row * columns, (row + 1) * columns);
    const found = roundRow(rowValues, factor, format, dtype, levels.subarray(row * columns, (row + 1) * columns));
    for (const [group, { scale, bias }] of found.entries()) {
      scales[row * groups + group] = scale;
      biases[row * groups + group] = bias;
    }
  }
  return affineOfLevels("quantizeModel", w, format, dtype, levels, scales, biases);
}

/** Returns the upper Cholesky factor U of the damped inverse, H⁻¹ = Uᵀ U. */
function inverseFactor(products: Tensor, columns: number): Float64Array {
  const damped = Float64Array.from(products.dataSync() as Float64Array);
  let trace = 0;
  for (let at = 0; at < columns; at++) trace += damped[at * (columns + 1)];
  const more = DAMPING * (trace / columns) || 1; // if all inputs are zeros, any positive diagonal will do
  for (let at = 0; at < columns; at++) damped[at * (columns + 1)] += more;
  return tidy(() =>
    noGrad(() => {
      const inverse = choleskyInverse(cholesky(fromArray(damped, [columns, columns])));
      return toDType(cholesky(inverse, { upper: true }), "float64").dataSync();
    }),
  );
}

/** Rounds a row, and returns the scale and bias of each group. Overwrites the row. */
function roundRow(
  row: Float64Array,
  factor: Float64Array,
  format: AffineFormat,
  dtype: ScaleDType,
  levels: Uint8Array,
): Group[] {
  const { bits, groupSize, symmetric } = format;
  const rule: GroupRule = { bits, symmetric, encode: encodeTo[dtype] };
  const [columns, most] = [row.length, 2 ** bits - 1];
  const groups: Group[] = [];
  const scratch = new Uint8Array(groupSize);
  for (let column = 0; column < columns; column++) {
    if (column % groupSize === 0)
      groups.push(leastSquares(Float32Array.from(row.subarray(column, column + groupSize)), rule, scratch));
    const { scale, bias } = lastElement(groups);
    const ratio = scale === 0 ? (symmetric ? 2 ** (bits - 1) : 0) : (row[column] - bias) / scale;
    const level = Math.min(Math.max(Math.round(ratio), 0), most);
    levels[column] = level;
    const first = column * columns;
    const error = (row[column] - (level * scale + bias)) / factor[first + column];
    for (let other = column + 1; other < columns; other++) row[other] -= error * factor[first + other];
  }
  return groups;
}
