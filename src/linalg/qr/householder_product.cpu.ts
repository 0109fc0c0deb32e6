import type { Implementation } from "../../backend/backend.ts";
import { lastElement } from "../../core/collections.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { matricesOf } from "../matrices.ts";
import { productCall } from "./primitive.ts";

export const productCpu: Implementation<undefined, [Tensor, Tensor], [Tensor]> = {
  run({ operation, inputs: [a, tau], outputs: [q] }) {
    const sizes = { ...matricesOf(a), reflectors: lastElement(tau.shape), width: lastElement(q.shape) };
    productCall(operation, { dtype: a.dtype, ...sizes }, [a, tau, q]);
  },
};
