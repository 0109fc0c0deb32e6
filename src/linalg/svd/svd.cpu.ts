import type { Implementation } from "../../backend/backend.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { matricesOf } from "../matrices.ts";
import { type SvdAttributes, svdCall, svdOutputs } from "./primitive.ts";

export const svdCpu: Implementation<SvdAttributes, [Tensor]> = {
  run({ operation, inputs: [a], outputs, attributes }) {
    const { u, s, vh, info } = svdOutputs(outputs, attributes);
    svdCall(operation, { dtype: a.dtype, ...matricesOf(a), ...attributes }, [a, u, s, vh, info]);
  },
};
