import type { MetalImplementation } from "../../backend/backend.ts";
import { spanOf } from "../../backend/metal/launch.ts";
import { type ProjectionsAttributes, projectionsInputs } from "./attributes.ts";
import { roundRows, whyExact } from "./bytes.metal.ts";
import { launchProduct } from "./matmul.metal.ts";

/** Launches one kernel per product. If several products multiply bytes, x is rounded once. */
export const quantizedProjectionsMetal: MetalImplementation<ProjectionsAttributes> = {
  run({ inputs, outputs, attributes: { weights, count, isFast, ...attributes } }) {
    const { x, weights: matrices, biases } = projectionsInputs(inputs, { weights, count, isFast, ...attributes });
    const products = weights
      .map((each, at) => ({
        attributes: { ...each, count, isFast },
        x,
        matrices: [matrices[at]],
        biases: [biases[at]],
        activation: 0,
        output: outputs[at],
      }))
      .filter(({ output }) => output.size > 0);
    const ofBytes = products.filter(({ attributes }) => isFast && whyExact(attributes, x.dtype) === undefined);
    using rounded = ofBytes.length > 1 ? roundRows(ofBytes[0]) : undefined;
    return spanOf(products.map((product) => launchProduct(product, rounded)));
  },
};
