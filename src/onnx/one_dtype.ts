/** Runs a model in one floating-point dtype, regardless of the dtypes in its file. */
import * as ops from "../ops/index.ts";
import type { DType } from "../tensor/dtype.ts";
import { Tensor } from "../tensor/tensor.ts";
import { tidy } from "../tensor/tidy.ts";
import type { Value } from "./call.ts";

/** The dtypes in which a model can be loaded. */
export type OnnxFloat = "float64" | "float32" | "float16" | "bfloat16";

export const floats: ReadonlySet<DType> = new Set(["float64", "float32", "float16", "bfloat16"]);

/**
 * The indices of inputs that keep their dtype: sizes, positions, limits and scales of integers. Half precision would
 * round them.
 */
const exactInputs: Readonly<Record<string, readonly number[]>> = {
  BatchNormalization: [1, 2, 3, 4],
  DequantizeLinear: [1],
  DynamicQuantizeMatMul: [2],
  MatMulIntegerToFloat: [2, 3],
  MatMulNBits: [2],
  MelWeightMatrix: [0, 1, 2, 3, 4],
  NonMaxSuppression: [3, 4],
  QAttention: [3, 4],
  QLinearConv: [1, 4, 6],
  QLinearMatMul: [1, 4, 6],
  QuantizeLinear: [1],
  Range: [0, 1, 2],
  Resize: [1, 2],
  Upsample: [1],
};

/** Returns the inputs that keep their dtype: none for float64, because it represents all values exactly. */
export const exactInputsOf = (operator: string, dtype: OnnxFloat): readonly number[] =>
  dtype === "float64" ? [] : (exactInputs[operator] ?? []);

const LARGEST_FLOAT16 = 65504;

/** Converts to a dtype, and keeps finite numbers finite. Exporters write masks with the lowest float32. */
export function finite(x: Tensor, dtype: OnnxFloat): Tensor {
  if (dtype !== "float16" || x.dtype === "float16") return x.to(dtype);
  return tidy(() => {
    const limited = ops.clamp(x, { min: -LARGEST_FLOAT16, max: LARGEST_FLOAT16 });
    return ops.where(ops.isinf(x), x, limited).to(dtype);
  });
}

/**
 * Operators that compute and return float32 in a model with half precision, because sums of squares overflow float16
 * and positions need more digits. A result is converted when an operator combines it with a tensor of the model's
 * dtype.
 */
const WIDE: ReadonlySet<string> = new Set([
  "BitCast",
  "DeformConv",
  "NonMaxSuppression",
  "Pow",
  "ReduceL1",
  "ReduceL2",
  "ReduceLogSum",
  "ReduceLogSumExp",
  "ReduceMean",
  "ReduceProd",
  "ReduceSum",
  "ReduceSumSquare",
]);

const toFloat32 = (value: Value): Value =>
  value instanceof Tensor && (value.dtype === "float16" || value.dtype === "bfloat16") ? value.to("float32") : value;

/**
 * If any input of a step has the model's dtype, converts the other floating-point inputs to it. Values computed only
 * from sizes and constants meet no such tensor, so they keep their precision.
 */
export function ofOneDType(operator: string, inputs: readonly Value[], dtype: OnnxFloat): readonly Value[] {
  const isHalf = dtype === "float16" || dtype === "bfloat16";
  if (isHalf && WIDE.has(operator)) return inputs.map(toFloat32);
  if (!inputs.some((value) => value instanceof Tensor && value.dtype === dtype)) return inputs;
  const exact = exactInputsOf(operator, dtype);
  return inputs.map((value, at) => {
    const isOther = value instanceof Tensor && value.dtype !== dtype && floats.has(value.dtype);
    return isOther && !exact.includes(at) ? finite(value, dtype) : value;
  });
}
