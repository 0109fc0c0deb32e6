/** Operations on the parts of complex numbers, with the result dtype of real operands. */
import type { Tensor } from "../../tensor/tensor.ts";
import { add, mul, sub } from "../elementwise/arithmetic.ts";
import { trueDivide } from "../elementwise/division.ts";
import { scalarTensor } from "../elementwise/operands.ts";
import { where } from "../elementwise/where.ts";
import { expand } from "../view/expand.ts";

/** The real and the imaginary parts of complex numbers, as real tensors that broadcast. */
export interface Parts {
  readonly re: Tensor;
  readonly im: Tensor;
}

export const plus = (a: Tensor, b: Tensor | number): Tensor => add(a, b);
export const minus = (a: Tensor | number, b: Tensor | number): Tensor => sub(a, b);
export const times = (a: Tensor, b: Tensor | number): Tensor => mul(a, b);
export const over = (a: Tensor | number, b: Tensor | number): Tensor => trueDivide(a, b);
export const choose = (condition: Tensor, a: Tensor | number, b: Tensor | number): Tensor => where(condition, a, b);
export const filledLike = (x: Tensor, value: number): Tensor => expand(scalarTensor(value, x.dtype), x.shape);
