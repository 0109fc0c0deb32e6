import type { MetalImplementation } from "../../backend/backend.ts";
import { spanOf } from "../../backend/metal/launch.ts";
import { type ProjectionsAttributes, projectionsInputs } from "./attributes.ts";
import { launchProduct } from "./matmul.metal.ts";

/** Launches one kernel per product. */
export const quantizedProjectionsMetal: MetalImplementation<ProjectionsAttributes> = {
  run({ inputs, outputs, attributes }) {
    const { x, weights, biases } = projectionsInputs(inputs, attributes);
    const launches = attributes.weights.map((each, at) => {
      const kind = { ...each, count: attributes.count, isFast: attributes.isFast };
      if (outputs[at].size === 0) return null;
      const one = { matrices: [weights[at]], biases: [biases[at]], activation: 0 };
      return launchProduct({ attributes: kind, x, ...one, output: outputs[at] });
    });
    return spanOf(launches);
  },
};
