/** The activation of Apertus. */
import { softplus } from "../../../ops/activation/softplus.ts";
import { toDType } from "../../../ops/copy/cast.ts";
import { add, mul, sub } from "../../../ops/elementwise/arithmetic.ts";
import { gt } from "../../../ops/elementwise/comparison.ts";
import { expm1 } from "../../../ops/elementwise/exponential.ts";
import { minimum } from "../../../ops/elementwise/extrema.ts";
import { where } from "../../../ops/elementwise/where.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import type { LayerOptions } from "../../layers/initialization.ts";
import { Module } from "../../layers/module.ts";
import { Parameter } from "./recurrent/mixer.ts";

/** The parts of {@link Xielu}, with the names that checkpoints give them. */
export const xieluParts = { positive: "alpha_p", negative: "alpha_n", beta: "beta", least: "eps" } as const;

/**
 * Computes αp · x² + β · x for x > 0, else αn · (exp(min(x, least)) − 1 − x) + β · x, where αp = softplus(positive) and
 * αn = β + softplus(negative). Each of the four parts is a number.
 *
 * Source: A. H. Huang and I. Schlag, "Deriving activation functions using integration", 2024; Hugging Face's
 * `XIELUActivation`.
 */
export class Xielu extends Module<[x: Tensor], Tensor> {
  readonly positive: Parameter;
  readonly negative: Parameter;
  readonly beta: Parameter;
  readonly least: Parameter;

  constructor(options: LayerOptions) {
    super();
    this.positive = new Parameter(1, options);
    this.negative = new Parameter(1, options);
    this.beta = new Parameter(1, options);
    this.least = new Parameter(1, options);
  }

  /** @returns a tensor of the same shape */
  override forward(x: Tensor): Tensor {
    const number = (part: Parameter) => toDType(part.forward(), x.dtype);
    const beta = number(this.beta);
    const above = mul(mul(x, x), softplus(number(this.positive)));
    const scale = add(softplus(number(this.negative)), beta);
    const below = mul(sub(expm1(minimum(x, number(this.least))), x), scale);
    return add(where(gt(x, 0), above, below), mul(x, beta));
  }
}
