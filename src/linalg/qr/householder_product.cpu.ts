import type { Implementation } from "../../backend/backend.ts";
import { matricesOf } from "../matrices.ts";
import { productCall } from "./primitive.ts";

export const productCpu: Implementation<undefined> = {
  run({ operation, inputs: [a, tau], outputs: [q] }) {
    const sizes = { ...matricesOf(a!), reflectors: tau!.shape.at(-1)!, width: q!.shape.at(-1)! };
    productCall(operation, { dtype: a!.dtype, ...sizes }, [a, tau, q]);
  },
};
