/** The check of token tensors that decoders and encoders share. */
import { describeValue } from "../../core/describe.ts";
import { ArgumentError, DTypeError, ShapeError } from "../../core/errors.ts";
import { isInteger } from "../../tensor/dtype.ts";
import { Tensor } from "../../tensor/tensor.ts";

/**
 * Checks that tokens are a nonempty tensor of integers [batch, tokens].
 *
 * @param name the model's name, for errors
 *
 * @throws {ArgumentError} `notATensor`. @throws {DTypeError} `notIntegers`. @throws {ShapeError} `wrongShape`.
 */
export function checkTokenMatrix(name: string, tokens: Tensor): void {
  if (!Tensor.isTensor(tokens))
    throw new ArgumentError(name, "notATensor", `expected tokens to be a tensor, got ${describeValue(tokens)}`);
  tokens.checkAlive(name);
  if (!isInteger(tokens.dtype))
    throw new DTypeError(name, "notIntegers", `expected tokens to be integers, got ${tokens.describe()}`);
  if (tokens.rank !== 2 || tokens.size === 0)
    throw new ShapeError(
      name,
      "wrongShape",
      `expected tokens to have a nonempty shape [batch, tokens], got ${tokens.describe()}`,
    );
}
