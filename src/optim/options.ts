/** Checks of hyperparameters that several optimizers have. */
import { ArgumentError } from "../core/errors.ts";
import { belowOne, checkNumber } from "../core/options.ts";

/** Two decay rates of averages. @throws {ArgumentError} `invalidOption` */
export function checkBetas(operation: string, betas: unknown): void {
  if (!Array.isArray(betas) || betas.length !== 2)
    throw new ArgumentError(
      operation,
      "invalidOption",
      `expected betas to be two numbers, such as [0.9, 0.999], got ${String(betas)}`,
    );
  for (const [index, beta] of betas.entries()) checkNumber(operation, `betas[${index}]`, beta, belowOne);
}
