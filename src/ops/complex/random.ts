/**
 * The lowering of random numbers: draws the real and the imaginary part. For normal numbers, each part has half the
 * variance.
 */
import { defineLowering } from "../../backend/complex.ts";
import { execute } from "../../backend/dispatch.ts";
import { realDType } from "../../tensor/dtype.ts";
import { elementCount } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { distributionPrimitive } from "../random/distribution.ts";
import type { DistributionAttributes } from "../random/primitive.ts";

defineLowering("random", {
  compute({ specs: [spec], attributes, operation }) {
    const { distribution, ...start } = attributes as DistributionAttributes;
    const dtype = realDType(spec.dtype);
    const ofParts =
      distribution.kind === "normal"
        ? { ...distribution, deviation: distribution.deviation * Math.SQRT1_2 }
        : distribution;
    const drawn = { ...start, dtype, distribution: ofParts };
    using parts = execute(distributionPrimitive, [], [2 * elementCount(spec.shape)], dtype, drawn, operation);
    return [new Tensor(parts.storage, spec.dtype, spec.shape)];
  },
});
