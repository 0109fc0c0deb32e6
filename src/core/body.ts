/** The argument check of functions that run a body. */
import { aFunction } from "./kinds.ts";
import { operand, parameters } from "./parameters.ts";

type Body = (...values: never) => unknown;

/**
 * Declares a function whose only operand is a body to run, and returns its argument check. The check is cheap, since
 * such functions wrap every step of a training run.
 *
 * @throws {ArgumentError} (the returned check) if the body is not a function.
 */
export function checkBody(operation: string): <B extends Body>(body: B, others?: readonly unknown[]) => B {
  const read = parameters(operation, { body: operand(aFunction<Body>()) });
  return (body, others = []) => {
    if (others.length > 0 || typeof body !== "function") read([body, ...others]);
    return body;
  };
}
