import type { Implementation } from "../../backend/backend.ts";
import { cpuLibrary } from "../../backend/cpu/loader.ts";
import { cpuMatmul, type MatmulOperand } from "../../backend/cpu/matmul.ts";
import { type Matrix, type ProductScale, problemOf } from "./problem.ts";

export const productCpu: Implementation<ProductScale> = {
  run(call) {
    const { a, b, out, input, ...problem } = problemOf(call);
    cpuMatmul(
      cpuLibrary().native,
      {
        ...problem,
        dtype: out.tensor.dtype,
        a: operandOf(a),
        b: operandOf(b),
        out: operandOf(out),
        input: input && operandOf(input),
      },
      call.operation,
    );
  },
};

const operandOf = ({ tensor, row, column, batch }: Matrix): MatmulOperand => ({
  storage: tensor.storage.hostBytes(),
  offset: tensor.offset,
  rowStride: row,
  columnStride: column,
  batchStrides: batch,
});
