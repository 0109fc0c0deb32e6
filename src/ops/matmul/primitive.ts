/**
 * The parameters of kernels for the matrix product, out = alpha · a · b + beta · input for each matrix of a batch.
 * `problem.ts` computes them.
 */
import { cpuCall, nest } from "../../backend/cpu/call.ts";
import { array, dtype, flag, real, whole } from "../../backend/fields.ts";
import { loopNest } from "../../backend/metal/loop.ts";
import { struct } from "../../backend/metal/struct.ts";

/** out = alpha · a · b + beta · input */
export interface ProductScale {
  readonly alpha: number;
  /** Factor of the input; used only with an input. */
  readonly beta: number;
}

/** The operands, in the order of kernel arguments and of their strides and offsets. */
export const operandNames = ["a", "b", "input", "out"] as const;

const perOperand = array(whole, operandNames.length);

const fields = {
  m: whole,
  n: whole,
  k: whole,
  hasInput: flag,
  alpha: real,
  beta: real,
  rowStrides: perOperand,
  columnStrides: perOperand,
};

export const matmulCall = cpuCall(
  "matmul",
  { dtype, ...fields, offsets: perOperand, batch: nest(operandNames.length) },
  operandNames,
);

export const productParameters = struct("Product", {
  ...fields,
  batch: loopNest,
  splits: whole,
  splitLength: whole,
  splitStride: whole,
  wholeAlpha: whole,
  wholeBeta: whole,
});
