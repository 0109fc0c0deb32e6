import { underName } from "../../backend/dispatch.ts";
import { ShapeError } from "../../core/errors.ts";
import { operand, optionalOperand, parameters } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { sameShape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { inOperandDType } from "../autocast/autocast.ts";
import { add } from "../elementwise/arithmetic.ts";
import { transpose } from "../view/permute.ts";
import { reshape } from "../view/reshape.ts";
import { squeeze, unsqueeze } from "../view/squeeze.ts";
import { checkSameDType } from "./checks.ts";
import { linear } from "./linear.ts";
import { matmul } from "./matmul.ts";

/**
 * Computes the bilinear form `yₒ = x1ᵀ · weightₒ · x2 + biasₒ` over the last axes.
 *
 * @param x1 […, inputs1]
 * @param x2 […, inputs2], with the same leading axes
 * @param weight [outputs, inputs1, inputs2]
 * @param bias [outputs]
 * @returns […, outputs]
 *
 * @example
 * bilinear(tensor([1, 2]), tensor([3, 4]), tensor([[[1, 0], [0, 1]]])); // float32 [11]
 *
 * @throws {ShapeError} if shapes do not match.
 * @throws {DTypeError} if dtypes differ, and for bool.
 */
export function bilinear<D extends DType>(x1: Tensor<D>, x2: Tensor<D>, weight: Tensor<D>, bias?: Tensor<D>): Tensor<D>;
export function bilinear(...values: unknown[]): Tensor {
  const { x1, x2, weight, bias } = bilinearParameters(values);
  checkSameDType("bilinear", bias ? [x1, x2, weight, bias] : [x1, x2, weight]);
  checkShapes(x1, x2, weight, bias);
  const [outputs, inputs1, inputs2] = tupleOf(weight.shape, 3);
  const compute = (): Tensor => {
    // multiply by x1 for every output and element of x2, then by x2
    const rows = reshape(transpose(weight, 1, 2), [outputs * inputs2, inputs1]);
    const half = reshape(linear(x1, rows), [...x1.shape.slice(0, -1), outputs, inputs2]);
    const products = squeeze(matmul(half, unsqueeze(x2, -1)), -1);
    return bias ? add(products, bias) : products;
  };
  return underName("bilinear", () => inOperandDType(() => tidy(compute)));
}
const bilinearParameters = parameters("bilinear", {
  x1: operand(aTensor),
  x2: operand(aTensor),
  weight: operand(aTensor),
  bias: optionalOperand(aTensor),
});

function checkShapes(x1: Tensor, x2: Tensor, weight: Tensor, bias: Tensor | undefined): void {
  const refuse = (message: string): never => {
    throw new ShapeError("bilinear", "shapesDiffer", message);
  };
  const [outputs, inputs1, inputs2] = weight.shape;
  if (weight.rank !== 3) refuse(`expected a weight [outputs, inputs1, inputs2], got ${weight.describe()}`);
  const isRight = x1.shape.at(-1) === inputs1 && x2.shape.at(-1) === inputs2;
  if (!isRight || !sameShape(x1.shape.slice(0, -1), x2.shape.slice(0, -1)))
    refuse(
      `expected x1 [..., ${inputs1}] and x2 [..., ${inputs2}] with the same leading axes, ` +
        `got ${x1.describe()} and ${x2.describe()}`,
    );
  if (bias && (bias.rank !== 1 || bias.size !== outputs))
    refuse(`expected a bias of ${outputs} elements, one for each output, got ${bias.describe()}`);
}
