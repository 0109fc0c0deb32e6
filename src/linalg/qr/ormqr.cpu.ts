import type { Implementation } from "../../backend/backend.ts";
import { lastElement } from "../../core/collections.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { matricesOf } from "../matrices.ts";
import { type OrmqrAttributes, ormqrCall } from "./primitive.ts";

export const ormqrCpu: Implementation<OrmqrAttributes, [Tensor, Tensor, Tensor], [Tensor]> = {
  run({ operation, inputs: [a, tau, c], outputs: [product], attributes }) {
    const sizes = { ...matricesOf(a), reflectors: lastElement(tau.shape), width: lastElement(c.shape) };
    ormqrCall(operation, { dtype: a.dtype, ...sizes, ...attributes }, [a, tau, c, product]);
  },
};
