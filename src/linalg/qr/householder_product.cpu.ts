import type { Implementation } from "../../backend/backend.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { matricesOf } from "../matrices.ts";
import { productCall } from "./primitive.ts";

export const productCpu: Implementation<undefined, [Tensor, Tensor], [Tensor]> = {
  run({ operation, inputs: [a, tau], outputs: [q] }) {
    const sizes = { ...matricesOf(a), reflectors: tau.shape.at(-1)!, width: q.shape.at(-1)! };
    productCall(operation, { dtype: a.dtype, ...sizes }, [a, tau, q]);
  },
};
