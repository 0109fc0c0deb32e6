import type { Implementation } from "../../backend/backend.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { isTransposed, matricesOf } from "../matrices.ts";
import { choleskyCall } from "./primitive.ts";

export const choleskyCpu: Implementation<undefined, [Tensor], [Tensor, Tensor]> = {
  run({ operation, inputs: [a], outputs: [factor, info] }) {
    const { batch, rows: size } = matricesOf(a);
    choleskyCall(operation, { dtype: a.dtype, batch, size, upper: isTransposed(a) }, [a, factor, info]);
  },
};
