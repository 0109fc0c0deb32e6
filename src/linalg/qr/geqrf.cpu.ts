import type { Implementation } from "../../backend/backend.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { matricesOf } from "../matrices.ts";
import { geqrfCall } from "./primitive.ts";

export const geqrfCpu: Implementation<undefined, [Tensor], [Tensor, Tensor]> = {
  run({ operation, inputs: [a], outputs: [factors, tau] }) {
    geqrfCall(operation, { dtype: a.dtype, ...matricesOf(a) }, [a, factors, tau]);
  },
};
