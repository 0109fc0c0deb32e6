/** Fields of rows, weight and bias, which both calls of the cpu backend share. */
import type { Tensor } from "../../tensor/tensor.ts";
import { ROW_OPERANDS } from "./primitive.ts";
import { type NormalizationProblem, rowsOf } from "./problem.ts";

type Optional = Tensor | undefined;

/** @param operands of x's shape, in the native function's order */
export function rowValues(
  { inputs: { x }, isCentered, eps, vectorDType }: NormalizationProblem,
  operands: readonly Optional[],
) {
  const given = new Array<Tensor>(ROW_OPERANDS);
  const isPresent = new Array<boolean>(ROW_OPERANDS);
  for (let at = 0; at < ROW_OPERANDS; at++) {
    given[at] = operands[at] ?? x;
    isPresent[at] = operands[at] !== undefined;
  }
  return { dtype: x.dtype, vectorDType, isCentered, eps, rows: rowsOf(given), isPresent };
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
