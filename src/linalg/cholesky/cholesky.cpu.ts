import type { Implementation } from "../../backend/backend.ts";
import { isTransposed, matricesOf } from "../matrices.ts";
import { choleskyCall } from "./primitive.ts";

export const choleskyCpu: Implementation<undefined> = {
  run({ operation, inputs: [a], outputs: [factor, info] }) {
    const { batch, rows: size } = matricesOf(a!);
    choleskyCall(operation, { dtype: a!.dtype, batch, size, upper: isTransposed(a!) }, [a, factor, info]);
  },
};
