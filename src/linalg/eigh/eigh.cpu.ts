import type { Implementation } from "../../backend/backend.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { matricesOf } from "../matrices.ts";
import { type EighAttributes, eighCall } from "./primitive.ts";

export const eighCpu: Implementation<EighAttributes, [Tensor], [Tensor, Tensor, Tensor]> = {
  run({ operation, inputs: [a], outputs: [eigenvalues, info, eigenvectors], attributes }) {
    const { batch, rows: size } = matricesOf(a);
    eighCall(operation, { dtype: a.dtype, batch, size, ...attributes }, [a, eigenvalues, info, eigenvectors]);
  },
};
