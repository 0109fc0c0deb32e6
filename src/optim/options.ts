/** The constructor arguments of optimizers, and checks of hyperparameters that several optimizers share. */

import { describeValue } from "../core/describe.ts";
import { ArgumentError } from "../core/errors.ts";
import { listed } from "../core/kinds.ts";
import { belowOne, checkNumber } from "../core/options.ts";
import { type Kind, named, operand, optional, parameters, reading } from "../core/parameters.ts";
import type { LearningRate, Parameters } from "./groups.ts";

/** Accepts any value: each optimizer checks its options before every step, as they can be changed. */
const anything: Kind<unknown> = { expected: "a value", parse: (value) => value };

/**
 * Declares the arguments of an optimizer's constructor: the parameters, and the options in `defaults`. The learning
 * rate may also be positional.
 */
export function optimizerParameters<Options extends LearningRate>(name: string, defaults: Options) {
  const others = Object.keys(defaults).map((option) => [option, named(anything)] as const);
  const read = parameters(name, {
    parameters: operand(anything),
    ...Object.fromEntries(others),
    lr: optional(anything),
  });
  return (values: readonly unknown[]): { parameters: Parameters<Options>; options: Partial<Options> } => {
    const { parameters: given, ...options } = read(values);
    return { parameters: given as Parameters<Options>, options: options as Partial<Options> };
  };
}

/** Checks the two decay rates of averages. @throws {ArgumentError} `invalidOption` */
export function checkBetas(operation: string, betas: unknown): void {
  if (!reading(operation, () => Array.isArray(betas) && betas.length === 2))
    throw new ArgumentError(
      operation,
      "invalidOption",
      `expected betas to be two numbers, such as [0.9, 0.999], got ${describeValue(betas)}`,
    );
  for (const [index, beta] of reading(operation, () => listed(betas) ?? []).entries())
    checkNumber(operation, `betas[${index}]`, beta, belowOne);
}
