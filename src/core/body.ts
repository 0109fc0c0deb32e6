/** Functions that run a body: how they are called. */
import { aFunction } from "./kinds.ts";
import { operand, parameters } from "./parameters.ts";

type Body = (...values: never) => unknown;

/**
 * Declares a function whose only operand is a body to run, and gives what checks it: cheaply, since such functions
 * stand around every step of a training run.
 *
 * @throws {ArgumentError} (what is returned) where it is no function.
 */
export function checkBody(operation: string): <B extends Body>(body: B, others?: readonly unknown[]) => B {
  const read = parameters(operation, { body: operand(aFunction<Body>()) });
  return (body, others = []) => {
    if (others.length > 0 || typeof body !== "function") read([body, ...others]);
    return body;
  };
}
