/** The constructor arguments of optimizers, and checks of hyperparameters that several optimizers share. */

import { describeValue } from "../core/describe.ts";
import { ArgumentError } from "../core/errors.ts";
import { listed } from "../core/kinds.ts";
import { belowOne, checkNumber, type NumberRule } from "../core/options.ts";
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

/** Returns an option that is a list like `example`. @throws {ArgumentError} `invalidOption` for another length */
export function listOf(operation: string, name: string, value: unknown, example: string): readonly unknown[] {
  const count = example.split(",").length;
  const list = reading(operation, () => (Array.isArray(value) ? listed(value) : null));
  if (list?.length === count) return list;
  throw new ArgumentError(
    operation,
    "invalidOption",
    `expected ${name} to be ${count === 2 ? "two" : "three"} numbers, such as ${example}, got ${describeValue(value)}`,
  );
}

/** Checks an option that is a list like `example`, each number by its rule. @throws {ArgumentError} `invalidOption` */
export function checkList(
  operation: string,
  name: string,
  value: unknown,
  example: string,
  rules: readonly NumberRule[],
): void {
  for (const [index, each] of listOf(operation, name, value, example).entries())
    checkNumber(operation, `${name}[${index}]`, each, rules[index]);
}

/** Checks the two decay rates of averages. @throws {ArgumentError} `invalidOption` */
export const checkBetas = (operation: string, betas: unknown): void =>
  checkList(operation, "betas", betas, "[0.9, 0.999]", [belowOne, belowOne]);
