/** Convolutions of complex numbers: four convolutions of their parts. */
import { underName } from "../../backend/dispatch.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { partOf } from "../complex/part.ts";
import { complexOf } from "../complex/parts.ts";
import { add, sub } from "../elementwise/arithmetic.ts";
import { checkSameDType } from "../matmul/checks.ts";

interface Operands {
  readonly x: Tensor;
  readonly weight: Tensor;
  readonly bias: Tensor | undefined;
}

/**
 * Computes (a + bi) ∗ (c + di) = (a ∗ c − b ∗ d) + (a ∗ d + b ∗ c)i, with the bias's parts in the first terms.
 *
 * @param convolve computes a convolution of real numbers
 */
export function ofParts(operation: string, { x, weight, bias }: Operands, convolve: (own: Operands) => Tensor): Tensor {
  checkSameDType(operation, bias ? [x, weight, bias] : [x, weight]);
  return underName(operation, () => {
    const [re, im] = ([0, 1] as const).map((part) => partOf("real", x, part)) as [Tensor, Tensor];
    const [left, right] = ([0, 1] as const).map((part) => partOf("real", weight, part)) as [Tensor, Tensor];
    const biasOf = (part: 0 | 1): Tensor | undefined => bias && partOf("real", bias, part);
    const term = (part: Tensor, kernel: Tensor, own?: Tensor): Tensor =>
      convolve({ x: part, weight: kernel, bias: own });
    return complexOf(
      operation,
      sub(term(re, left, biasOf(0)), term(im, right)),
      add(term(re, right, biasOf(1)), term(im, left)),
    );
  });
}
