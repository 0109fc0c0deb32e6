import type { Implementation } from "../../backend/backend.ts";
import { type ProjectionsAttributes, projectionsInputs } from "./attributes.ts";
import { storeProduct } from "./matmul.reference.ts";

/** Computes one product after the other. */
export const quantizedProjectionsReference: Implementation<ProjectionsAttributes> = {
  run({ inputs, outputs, attributes }) {
    const { count, isFast } = attributes;
    const { x, weights, biases } = projectionsInputs(inputs, attributes);
    for (const [at, each] of attributes.weights.entries()) {
      const kind = { ...each, count, isFast, isTransposed: false };
      storeProduct(outputs[at], { x, weights: weights[at], bias: biases[at] }, kind);
    }
  },
};
