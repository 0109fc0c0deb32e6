import type { Implementation, OperationCall } from "../../backend/backend.ts";
import { tupleOf } from "../../core/tuples.ts";
import { plainList } from "../../tensor/frozen.ts";
import { matmulCall, type ProductScale } from "./primitive.ts";
import { fieldsOf, matricesOf, problemOf } from "./problem.ts";

export const productCpu: Implementation<ProductScale> = {
  run(call) {
    if (call.outputs[0].rank === 2) {
      single(call);
      return;
    }
    const problem = problemOf(call);
    const matrices = matricesOf(problem);
    const tensors = matrices.map(({ tensor }) => tensor);
    const values = {
      ...fieldsOf(problem),
      dtype: problem.out.tensor.dtype,
      offsets: tensors.map(({ offset }) => offset),
      batch: { shape: problem.batchShape, strides: matrices.map(({ batch }) => batch) },
    };
    matmulCall(call.operation, values, tensors);
  },
};

const noBatch = { shape: [], strides: [[], [], [], []] };

/** Multiplies two matrices. Computing a batch layout would cost as much time as the product of a matrix of 32 rows. */
function single({ operation, inputs: [a, b, input], outputs: [out], attributes }: OperationCall<ProductScale>): void {
  const operands = [a, b, input ?? out, out];
  const [first, second, addend, result] = operands.map(({ strides }) => plainList(strides));
  const [m, n] = tupleOf(plainList(out.shape), 2);
  const values = {
    m,
    n,
    k: plainList(a.shape)[1],
    hasInput: input !== undefined,
    dtype: out.dtype,
    alpha: attributes.alpha,
    beta: attributes.beta,
    rowStrides: [first[0], second[0], addend[0], result[0]],
    columnStrides: [first[1], second[1], addend[1], result[1]],
    offsets: [a.offset, b.offset, operands[2].offset, out.offset],
    batch: noBatch,
  };
  matmulCall(operation, values, operands);
}
