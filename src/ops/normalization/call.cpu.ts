/** What both calls of the cpu backend have in common: the fields of rows, weight and bias. */
import type { Tensor } from "../../tensor/tensor.ts";
import { ROW_OPERANDS } from "./primitive.ts";
import { type NormalizationProblem, rowsOf } from "./problem.ts";

type Optional = Tensor | undefined;

/** @param operands of the shape of x, as the native function takes them */
export function rowValues(
  { inputs: { x }, isCentred, eps, vectorDType }: NormalizationProblem,
  operands: readonly Optional[],
) {
  const given = Array.from({ length: ROW_OPERANDS }, (_, at) => operands[at]);
  return {
    ...{ dtype: x.dtype, vectorDType, isCentred, eps },
    rows: rowsOf(given.map((operand) => operand ?? x)),
    isPresent: given.map((operand) => operand !== undefined),
  };
}

export const weightValues = (weight: Optional) => ({
  hasWeight: weight !== undefined,
  weightOffset: weight?.offset ?? 0,
  weightStride: weight?.strides[0] ?? 0,
});

export const biasValues = (bias: Optional) => ({
  hasBias: bias !== undefined,
  biasOffset: bias?.offset ?? 0,
  biasStride: bias?.strides[0] ?? 0,
});
