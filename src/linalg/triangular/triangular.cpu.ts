import type { Implementation } from "../../backend/backend.ts";
import { matricesOf } from "../matrices.ts";
import { type TriangularAttributes, triangularCall } from "./primitive.ts";

export const triangularCpu: Implementation<TriangularAttributes> = {
  run({ operation, inputs: [a, b], outputs: [x], attributes }) {
    triangularCall(operation, { dtype: a!.dtype, ...matricesOf(b!), ...attributes }, [a, b, x]);
  },
};
