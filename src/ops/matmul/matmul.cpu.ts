import type { Implementation, OperationCall } from "../../backend/backend.ts";
import { plainList } from "../../tensor/frozen.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { matmulCall, type ProductScale } from "./primitive.ts";
import { fieldsOf, matricesOf, problemOf } from "./problem.ts";

export const productCpu: Implementation<ProductScale> = {
  run(call) {
    const { rank } = call.outputs[0];
    if (rank === 2 || (rank === 3 && isBatch(call.inputs))) {
      direct(call, rank - 2);
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

/** Whether both operands have an axis of matrices, and those of b differ: otherwise matrices may merge. */
function isBatch([a, b]: readonly Tensor[]): boolean {
  if (a.rank !== 3 || b.rank !== 3 || plainList(b.strides)[0] === 0) return false;
  return plainList(b.shape)[0] !== 1 || plainList(a.shape)[0] === 1;
}

const noBatch = { shape: [], strides: [[], [], [], []] };

/**
 * Multiplies two matrices, or the matrices along one axis. Computing the layout of any other batch takes as much time
 * as the product of a matrix of 32 rows.
 *
 * @param lead the number of axes before the matrices: 0 or 1
 */
function direct(
  { operation, inputs: [a, b, input], outputs: [out], attributes }: OperationCall<ProductScale>,
  lead: number,
): void {
  const operands = [a, b, input ?? out, out];
  const [first, second, addend, result] = operands.map(({ strides }) => plainList(strides));
  const shape = plainList(out.shape);
  const [row, column] = [lead, lead + 1];
  const values = {
    m: shape[row],
    n: shape[column],
    k: plainList(a.shape)[column],
    hasInput: input !== undefined,
    dtype: out.dtype,
    alpha: attributes.alpha,
    beta: attributes.beta,
    rowStrides: [first[row], second[row], addend[row], result[row]],
    columnStrides: [first[column], second[column], addend[column], result[column]],
    offsets: [a.offset, b.offset, operands[2].offset, out.offset],
    batch: lead === 0 ? noBatch : { shape: [shape[0]], strides: operands.map(firstStride) },
  };
  matmulCall(operation, values, operands);
}

/** Returns the stride between matrices; 0 if one is repeated. */
const firstStride = ({ shape, strides }: Tensor): number[] => [plainList(shape)[0] === 1 ? 0 : plainList(strides)[0]];
