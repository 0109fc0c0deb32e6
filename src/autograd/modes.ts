import { checkBody } from "../core/body.ts";
import { ContextVariable } from "../core/context.ts";
import { expectNothing } from "../core/parameters.ts";

const checkNoGrad = checkBody("noGrad");
const checkEnableGrad = checkBody("enableGrad");

/** @internal Whether operations are recorded. */
export const gradEnabled = new ContextVariable(true);

/**
 * Runs `body` without recording operations: tensors created in it do not require gradients. It stays in effect across
 * the awaits of an asynchronous body.
 *
 * @example
 * const accuracy = noGrad(() => evaluate(model));
 */
export function noGrad<Result>(body: () => Result): Result;
export function noGrad<Result>(body: () => Result, ...others: unknown[]): Result {
  return gradEnabled.run(false, checkNoGrad(body, others));
}

/**
 * Runs `body` with recording of operations, also inside {@link noGrad}.
 *
 * @example
 * noGrad(() => enableGrad(() => w.mul(2)).requiresGrad); // true if w requires a gradient
 */
export function enableGrad<Result>(body: () => Result): Result;
export function enableGrad<Result>(body: () => Result, ...others: unknown[]): Result {
  return gradEnabled.run(true, checkEnableGrad(body, others));
}

/**
 * Returns whether operations are currently recorded.
 *
 * @example
 * noGrad(() => isGradEnabled()); // false
 */
export function isGradEnabled(): boolean;
export function isGradEnabled(...values: unknown[]): boolean {
  expectNothing("isGradEnabled", values);
  return gradEnabled.get();
}

/** @internal The dtype to which `autocast` lowers products; null outside of it. Backward passes ignore it. */
export const autocastDType = new ContextVariable<"float16" | "bfloat16" | null>(null);
