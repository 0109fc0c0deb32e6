import type { Implementation } from "../../backend/backend.ts";
import { matricesOf } from "../matrices.ts";
import { type EighAttributes, eighCall } from "./primitive.ts";

export const eighCpu: Implementation<EighAttributes> = {
  run({ operation, inputs: [a], outputs: [eigenvalues, info, eigenvectors], attributes }) {
    const { batch, rows: size } = matricesOf(a!);
    eighCall(operation, { dtype: a!.dtype, batch, size, ...attributes }, [a, eigenvalues, info, eigenvectors]);
  },
};
