/** Gradients of first and second order, compared with finite differences. */
import { enableGrad } from "../../src/autograd/modes.ts";
import { detach, grad } from "../../src/ops/gradient/backward.ts";
import { gradcheck } from "../../src/ops/gradient/gradcheck.ts";
import { reshape } from "../../src/ops/view/reshape.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import type { Matrix } from "./matrices.ts";
import { families } from "./matrices.ts";
import { toTensor } from "./run.ts";

/** A float64 leaf that requires a gradient. */
export function leaf(x: Matrix): Tensor {
  const own = toTensor(x, "float64");
  own.requiresGrad = true;
  return own;
}

/**
 * Checks the gradients of a function of matrices, and the gradients of those, with a random cotangent.
 *
 * @param compute returns a matrix, given matrices
 */
export function checkGradients(compute: (...x: Tensor[]) => Tensor, inputs: readonly Tensor[]): void {
  gradcheck(compute, [...inputs]);
  const { shape } = compute(...inputs);
  const [rows, columns] = [shape.slice(0, -1).reduce((all, size) => all * size, 1), shape.at(-1) ?? 1];
  const cotangent = detach(reshape(toTensor(families.random(rows, columns, 77), "float64"), shape));
  cotangent.requiresGrad = true;
  const gradient = (given: Tensor, ...operands: Tensor[]): Tensor[] =>
    enableGrad(() => grad([compute(...operands)], operands, { gradOutputs: [given], createGraph: true }) as Tensor[]);
  for (const index of inputs.keys())
    gradcheck((given: Tensor, ...operands: Tensor[]) => gradient(given, ...operands)[index], [cotangent, ...inputs]);
}
