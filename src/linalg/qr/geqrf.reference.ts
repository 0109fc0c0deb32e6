import type { Implementation } from "../../backend/backend.ts";
import { store } from "../../backend/reference/elements.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { matricesOf } from "../matrices.ts";
import { matricesIn, storeMatrices } from "../reference.ts";
import { reflect } from "./reflections.reference.ts";

export const geqrfReference: Implementation<undefined, [Tensor], [Tensor, Tensor]> = {
  run({ inputs: [a], outputs: [factors, tau] }) {
    const { rows, columns } = matricesOf(a);
    const matrices = matricesIn(a);
    store(
      tau,
      matrices.flatMap((matrix) => [...reflect(matrix, rows, columns)]),
    );
    storeMatrices(factors, matrices);
  },
};
