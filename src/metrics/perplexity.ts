/** Perplexity of a language model. */
import { noGrad } from "../autograd/modes.ts";
import { underName } from "../backend/dispatch.ts";
import { someNumber } from "../core/kinds.ts";
import { operand, named as option, parameters } from "../core/parameters.ts";
import { crossEntropy } from "../ops/loss/cross_entropy.ts";
import { aTensor } from "../tensor/kinds.ts";
import type { Tensor } from "../tensor/tensor.ts";

const perplexityParameters = parameters("perplexity", {
  logits: operand(aTensor),
  target: operand(aTensor),
  ignoreIndex: option(someNumber, -100),
});

/**
 * Returns the exponential of the mean negative log-probability of the targets, exp(−Σ ln p / n). A model that guesses
 * uniformly among k tokens has perplexity k. For several batches of equal size, it is the exponential of the mean of
 * their losses.
 *
 * @param logits [..., classes]
 * @param target class numbers [...]
 *
 * @example
 * metrics.perplexity(model.forward(x), y); // logits [batch, context, vocabulary], targets [batch, context]
 *
 * @throws {ShapeError} @throws {DTypeError} @throws {ArgumentError}
 */
export function perplexity(logits: Tensor, target: Tensor, options?: { ignoreIndex?: number }): number;
export function perplexity(...values: unknown[]): number {
  const { logits, target, ignoreIndex } = perplexityParameters(values);
  const lossOf = () => noGrad(() => crossEntropy(logits, target, { dim: -1, ignoreIndex }));
  using loss = underName("perplexity", lossOf);
  return Math.exp(Number(loss.item()));
}
