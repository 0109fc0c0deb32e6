import { gradEnabled } from "../autograd/modes.ts";
import type { Root } from "../autograd/pass.ts";
import { ArgumentError } from "../core/errors.ts";
import { aFunction, aNumber, either, listOf } from "../core/kinds.ts";
import { operand, optional, parameters } from "../core/parameters.ts";
import { tupleOf } from "../core/tuples.ts";
import { ones } from "../ops/creation/full.ts";
import { gradientsToward } from "../ops/gradient/toward.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { type AnyFunction, matching, type Traced, trace, zerosFor } from "./graph.ts";
import { flatten } from "./tree.ts";

/** The result of {@link vjp}. */
export interface ValueAndPullback<Arguments extends readonly unknown[], Result> {
  readonly value: Result;
  /**
   * Computes the gradients of the arguments from the gradient of the value. Returns a list of trees like the arguments.
   * It can be called any number of times.
   */
  readonly pullback: (cotangent: Result) => [...Arguments];
}

/**
 * Computes a function, and returns a function that computes its vector-Jacobian products, Jᵀ g: PyTorch's
 * `torch.func.vjp`.
 *
 * @param f a function from trees of tensors to a tree of tensors
 * @param primals its arguments
 *
 * @example
 * const { pullback } = transforms.vjp((x) => x.square(), tensor([1, 2]));
 * pullback(tensor([1, 10])); // [float32 [2, 40]]
 *
 * @throws {ArgumentError} if `f` returns no tensor.
 */
export function vjp<Arguments extends readonly unknown[], Result>(
  f: (...values: Arguments) => Result,
  ...primals: Arguments
): ValueAndPullback<Arguments, Result>;
export function vjp(...values: unknown[]): ValueAndPullback<unknown[], unknown> {
  const { f } = vjpParameters(values.slice(0, 1));
  const primals = values.slice(1);
  const traced = trace("vjp", f, primals);
  const { outputs, release } = traced;
  const pullback = (cotangent: unknown): unknown[] => {
    const seeds = matching("vjp", "cotangent", cotangent, outputs.leaves);
    return flatten(primals).rebuild(pull(traced, seeds, false)) as unknown[];
  };
  return { value: outputs.rebuild(outputs.leaves.map(release)), pullback };
}
const vjpParameters = parameters("vjp", { f: operand(aFunction<AnyFunction>()) });

/** Returns the gradients of the inputs of a traced call, zeros where the result does not depend on one. */
export function pull(traced: Traced, seeds: readonly (Tensor | null)[], isLast: boolean): Tensor[] {
  const { inputs, outputs, isNested } = traced;
  const roots = outputs.leaves.flatMap((root, at): Root[] => {
    const seed = seeds[at];
    return seed && root.requiresGrad ? [{ root, seed }] : [];
  });
  const createGraph = gradEnabled.get() && (isNested || seeds.some((seed) => seed?.requiresGrad));
  return gradEnabled.run(createGraph, () =>
    gradientsToward(roots, inputs, { createGraph, retainGraph: createGraph || !isLast }).map(
      (gradient, at) => gradient ?? zerosFor(inputs[at]),
    ),
  );
}

/** An argument's position, or several. */
export type ArgumentNumbers = number | readonly number[];

const position = aNumber({
  holds: (value) => Number.isSafeInteger(value) && value >= 0,
  expected: "a position of at least 0",
});
export const argumentNumbers = either(position, listOf(position, "a list of positions"));

/**
 * Returns a function that computes the gradient of `f` with respect to arguments: PyTorch's `torch.func.grad`. Apply it
 * again for higher derivatives, and {@link vmap} for gradients per sample.
 *
 * @param f returns a tensor of one element
 * @param argnums the position of the argument, or positions for a list of gradients. Default 0.
 *
 * @example
 * const derivative = transforms.grad((x) => x.sin());
 * derivative(tensor(0)); // float32 1
 * transforms.grad(derivative)(tensor(0)); // float32 0
 *
 * @throws {ArgumentError} if `f` does not return one element.
 */
export function grad<Arguments extends readonly unknown[]>(
  f: (...values: Arguments) => Tensor,
): (...values: Arguments) => Arguments[0];
export function grad<Arguments extends readonly unknown[], const N extends ArgumentNumbers>(
  f: (...values: Arguments) => Tensor,
  argnums: N,
): (...values: Arguments) => N extends number ? Arguments[N] : { -readonly [At in keyof N]: unknown };
export function grad(...values: unknown[]): (...values: unknown[]) => unknown {
  const { f, argnums } = gradParameters(values);
  return (...primals) => gradients("transforms.grad", f, argnums, primals);
}
const gradParameters = parameters("transforms.grad", {
  f: operand(aFunction<AnyFunction>()),
  argnums: optional(argumentNumbers, 0),
});

function gradients(operation: string, f: AnyFunction, argnums: ArgumentNumbers, primals: readonly unknown[]): unknown {
  const { chosen, of } = choose(operation, f, argnums, primals);
  const traced = trace(operation, of, chosen);
  const [loss] = tupleOf(traced.outputs.leaves, 1);
  if (traced.outputs.leaves.length !== 1 || loss.size !== 1)
    throw new ArgumentError(
      operation,
      "notAScalar",
      `expected the function to return a tensor of one element, got ${loss.describe()}; reduce it (sum, mean)`,
    );
  const seed = ones(loss.shape, { dtype: loss.dtype });
  const found = flatten(chosen).rebuild(pull(traced, [seed], true)) as unknown[];
  return typeof argnums === "number" ? found[0] : found;
}

/** Returns the arguments to differentiate, and `f` as a function of only these. */
export function choose(operation: string, f: AnyFunction, argnums: ArgumentNumbers, primals: readonly unknown[]) {
  const places = [argnums].flat();
  const missing = places.find((at) => at >= primals.length || flatten(primals[at], operation).leaves.length === 0);
  if (missing !== undefined)
    throw new ArgumentError(
      operation,
      "notATensor",
      `expected argument ${missing} to be a tensor or a tree of tensors`,
    );
  const of: AnyFunction = (...values: unknown[]) => {
    const all = [...primals];
    for (const [index, at] of places.entries()) all[at] = values[index];
    return f(...(all as never[]));
  };
  return { chosen: places.map((at) => primals[at]), of };
}
