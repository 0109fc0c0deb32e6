import { executeMany } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { tupleOf } from "../../core/tuples.ts";
import { elementCount } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { attributesOf, weightInputs } from "../primitive.ts";
import type { QuantizedTensor } from "../quantized_tensor.ts";
import type { ProjectionsAttributes } from "./attributes.ts";
import { biasFor, checkProduct, executeOnRows, hasLevels, type ProductPrecision } from "./matmul.ts";
import { quantizedProjectionsCpu } from "./projections.cpu.ts";
import { quantizedProjectionsMetal } from "./projections.metal.ts";
import { quantizedProjectionsReference } from "./projections.reference.ts";

/** There is a primitive for each precision, as for `quantizedMatmul`. */
const primitiveNamed = (name: string) =>
  definePrimitive<ProjectionsAttributes>({
    name,
    family: "quant",
    implementations: {
      metal: quantizedProjectionsMetal,
      cpu: quantizedProjectionsCpu,
      reference: quantizedProjectionsReference,
    },
  });

const exactPrimitive = primitiveNamed("quantizedProjections");
const fastPrimitive = primitiveNamed("quantizedProjectionsFast");

/** A product of {@link quantizedProjections}. */
export interface Projection {
  /** [out, in], of any format. */
  readonly weight: QuantizedTensor;
  /** [out] */
  readonly bias: Tensor | null;
}

/** @internal Returns why products can't be one operation; undefined if they can. */
export function whyNotAtOnce(all: readonly Projection[], precision: ProductPrecision): string | undefined {
  const withLevels = all.filter(({ weight }) => hasLevels(weight)).length;
  if (precision === "exact" || withLevels % all.length === 0) return undefined;
  return "some weights are quantized to integer levels, others are stored as floats";
}

/**
 * @internal Computes three products x Wᵀ + bias as one operation, each bit-identical to `quantizedMatmul`. x is
 * rounded to 8 bits once if `precision` is `"fast"`, and threads share the rows of all weights. Gradients are not
 * recorded.
 *
 * @param x […, in] @returns […, out] of each, of the dtype of x
 *
 * @throws the same errors as `quantizedMatmul`
 */
export function quantizedProjections(
  x: Tensor,
  all: readonly [Projection, Projection, Projection],
  precision: ProductPrecision,
): [Tensor, Tensor, Tensor] {
  const operation = "quantizedProjections";
  for (const { weight } of all) checkProduct(operation, x, weight, "weight");
  const isFast = precision === "fast" && all.every(({ weight }) => hasLevels(weight));
  const lead = x.shape.slice(0, -1);
  const attributes = {
    count: elementCount(lead),
    isFast,
    hasBias: all.map(({ bias }) => bias !== null),
    weights: all.map(({ weight }) => ({ ...attributesOf(weight), rows: weight.shape[0] })),
  };
  const biases = all.flatMap(({ weight, bias }) =>
    bias === null ? [] : [biasFor(operation, "bias", bias, x, weight.shape[0])],
  );
  const specs = all.map(({ weight }) => ({ shape: [...lead, weight.shape[0]], dtype: x.dtype }));
  return tupleOf(
    executeOnRows(x, biases, (rows, dense) => {
      const inputs = [rows, ...all.flatMap(({ weight }) => weightInputs(weight)), ...dense];
      return executeMany(isFast ? fastPrimitive : exactPrimitive, inputs, specs, attributes, operation);
    }),
    3,
  );
}
