import type { Implementation } from "../../backend/backend.ts";
import { toNumbers } from "../../backend/reference/elements.ts";
import { lastElement } from "../../core/collections.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { matricesOf } from "../matrices.ts";
import { matricesIn, storeMatrices } from "../reference.ts";
import { applyReflections, unitMatrix } from "./reflections.reference.ts";

export const productReference: Implementation<undefined, [Tensor, Tensor], [Tensor]> = {
  run({ inputs: [a, tau], outputs: [q] }) {
    const { rows, columns: stride } = matricesOf(a);
    const { columns: width } = matricesOf(q);
    const count = lastElement(tau.shape);
    const scales = toNumbers(tau);
    const products = matricesIn(a).map((matrix, at) => {
      const result = unitMatrix(rows, width);
      const reflections = { a: matrix, stride, tau: scales.subarray(at * count, (at + 1) * count) };
      applyReflections(reflections, result, width, false);
      return result;
    });
    storeMatrices(q, products);
  },
};
