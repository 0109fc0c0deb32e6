import type { Implementation } from "../../backend/backend.ts";
import { toNumbers } from "../../backend/reference/elements.ts";
import { lastElement } from "../../core/collections.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { matricesIn, storeMatrices } from "../reference.ts";
import type { OrmqrAttributes } from "./primitive.ts";
import { applyReflections } from "./reflections.reference.ts";

export const ormqrReference: Implementation<OrmqrAttributes, [Tensor, Tensor, Tensor], [Tensor]> = {
  run({ inputs: [a, tau, c], outputs: [product], attributes: { transpose } }) {
    const stride = lastElement(a.shape);
    const width = lastElement(c.shape);
    const count = lastElement(tau.shape);
    const scales = toNumbers(tau);
    const others = matricesIn(c);
    for (const [at, matrix] of matricesIn(a).entries()) {
      const reflections = { a: matrix, stride, tau: scales.subarray(at * count, (at + 1) * count) };
      applyReflections(reflections, others[at], width, transpose);
    }
    storeMatrices(product, others);
  },
};
