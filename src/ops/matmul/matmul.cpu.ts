import type { Implementation } from "../../backend/backend.ts";
import { matmulCall, type ProductScale } from "./primitive.ts";
import { fieldsOf, matricesOf, problemOf } from "./problem.ts";

export const productCpu: Implementation<ProductScale> = {
  run(call) {
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
