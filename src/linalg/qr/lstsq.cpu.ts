import type { Implementation } from "../../backend/backend.ts";
import { lastElement } from "../../core/collections.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { matricesOf } from "../matrices.ts";
import { type LstsqAttributes, lstsqCall } from "./primitive.ts";

export const lstsqCpu: Implementation<LstsqAttributes, [Tensor, Tensor], [Tensor, Tensor, Tensor]> = {
  run({ operation, inputs: [a, b], outputs: [x, rank, info], attributes }) {
    const sizes = { ...matricesOf(a), width: lastElement(b.shape) };
    lstsqCall(operation, { dtype: a.dtype, ...sizes, ...attributes }, [a, b, x, rank, info]);
  },
};
