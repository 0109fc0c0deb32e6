import type { Implementation } from "../../backend/backend.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { matricesOf } from "../matrices.ts";
import { type QrAttributes, qrCall } from "./primitive.ts";

export const qrCpu: Implementation<QrAttributes, [Tensor], [Tensor, Tensor]> = {
  run({ operation, inputs: [a], outputs: [q, r], attributes: { width } }) {
    // If Q is computed, R has as many rows as Q has columns.
    qrCall(operation, { dtype: a.dtype, ...matricesOf(a), width }, [a, q, r]);
  },
};
