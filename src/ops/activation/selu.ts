import { operand, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { FloatOf } from "../elementwise/types.ts";
import { scaledElu } from "./elu.ts";

const shape = { alpha: 1.6732632423543772, scale: 1.0507009873554805 };

/**
 * Computes scale·x for each element above 0, and scale·alpha·(eˣ − 1) for the others. alpha = 1.67326… and scale =
 * 1.05070… preserve a mean of 0 and a variance of 1 from layer to layer. Integers become float32.
 *
 * Source: G. Klambauer et al., "Self-normalizing neural networks", 2017.
 *
 * @returns a tensor of x's shape
 *
 * @example
 * selu(tensor([-1, 0, 2])); // float32 [-1.111331, 0, 2.101402]
 */
export function selu<D extends DType>(x: Tensor<D>): Tensor<FloatOf<D>>;
export function selu(...values: unknown[]): Tensor {
  return scaledElu("selu", seluParameters(values).x, shape);
}
selu.method = "float" as const;
const seluParameters = parameters("selu", { x: operand(aTensor) });
