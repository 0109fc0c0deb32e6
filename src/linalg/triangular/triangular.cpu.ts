import type { Implementation } from "../../backend/backend.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type TriangularAttributes, triangularCall, triangularValues } from "./primitive.ts";

export const triangularCpu: Implementation<TriangularAttributes, [Tensor, Tensor], [Tensor]> = {
  run({ operation, inputs: [a, b], outputs: [x], attributes }) {
    triangularCall(operation, { dtype: a.dtype, ...triangularValues(a, b, attributes) }, [a, b, x]);
  },
};
