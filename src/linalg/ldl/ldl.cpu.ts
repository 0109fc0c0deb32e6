import type { Implementation } from "../../backend/backend.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { matricesOf } from "../matrices.ts";
import { ldlFactorCall, ldlSolveCall } from "./primitive.ts";

export const ldlFactorCpu: Implementation<undefined, [Tensor], [Tensor, Tensor, Tensor]> = {
  run({ operation, inputs: [a], outputs: [ld, pivots, info] }) {
    const { batch, rows: size } = matricesOf(a);
    ldlFactorCall(operation, { dtype: a.dtype, batch, size }, [a, ld, pivots, info]);
  },
};

export const ldlSolveCpu: Implementation<undefined, [Tensor, Tensor, Tensor], [Tensor]> = {
  run({ operation, inputs: [ld, pivots, b], outputs: [x] }) {
    const { batch, rows: size, columns } = matricesOf(b);
    ldlSolveCall(operation, { dtype: b.dtype, batch, size, columns }, [ld, pivots, b, x]);
  },
};
