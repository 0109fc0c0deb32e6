import type { Implementation } from "../../backend/backend.ts";
import { type TriangularAttributes, triangularCall, triangularValues } from "./primitive.ts";

export const triangularCpu: Implementation<TriangularAttributes> = {
  run({ operation, inputs: [a, b], outputs: [x], attributes }) {
    triangularCall(operation, { dtype: a!.dtype, ...triangularValues(a!, b!, attributes) }, [a, b, x]);
  },
};
