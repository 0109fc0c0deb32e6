import { gradEnabled } from "../autograd/modes.ts";
import { aFunction } from "../core/kinds.ts";
import { type Kind, operand, parameters } from "../core/parameters.ts";
import { tangentMap } from "../ops/gradient/toward.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { type AnyFunction, matching, trace, zerosFor } from "./graph.ts";

/** The arguments of a function: a list of trees. */
export const anyArguments: Kind<readonly unknown[]> = {
  expected: "a list of arguments",
  parse: (value) => (Array.isArray(value) ? [...value] : undefined),
};

/** The result of {@link jvp}. */
export interface ValueAndTangent<Result> {
  readonly value: Result;
  /** The derivative of the value along the tangents, in the same tree. */
  readonly tangent: Result;
}

/**
 * Computes a function and its derivative along a direction, J t, in forward mode: PyTorch's `torch.func.jvp`. The
 * function runs once; then one pass computes the tangents of its operations.
 *
 * @param f a function from trees of tensors to a tree of tensors
 * @param primals its arguments
 * @param tangents the direction: a tensor for each tensor of `primals`, with its shape
 *
 * @example
 * const { value, tangent } = transforms.jvp((x) => x.sin(), [tensor([0, 1])], [tensor([1, 1])]);
 * tangent; // float32 [1, 0.54030]
 *
 * @throws {ShapeError} if the shape of a tangent differs from that of its tensor.
 * @throws {ArgumentError} if the trees differ, or `f` returns no tensor.
 * @throws {AutogradError} `noTangent` for a `Function` whose gradient is not differentiable and that has no jvp rule.
 */
export function jvp<Arguments extends readonly unknown[], Result>(
  f: (...values: Arguments) => Result,
  primals: readonly [...Arguments],
  tangents: readonly unknown[],
): ValueAndTangent<Result>;
export function jvp(...values: unknown[]): ValueAndTangent<unknown> {
  const { f, primals, tangents } = jvpParameters(values);
  const { value, apply } = linear("jvp", f, primals);
  return { value, tangent: apply(tangents, true) };
}
const jvpParameters = parameters("jvp", {
  f: operand(aFunction<AnyFunction>()),
  primals: operand(anyArguments),
  tangents: operand(anyArguments),
});

/** The result of {@link linearize}. */
export interface Linearized<Arguments extends readonly unknown[], Result> {
  readonly value: Result;
  /** Computes the derivative of the value along tangents of the primals. It can be called any number of times. */
  readonly jvp: (...tangents: Arguments) => Result;
}

/**
 * Computes a function and returns its linear approximation: PyTorch's `torch.func.linearize`. Use it instead of
 * {@link jvp} for several directions at one point, since the function is computed only once.
 *
 * @param f a function from trees of tensors to a tree of tensors
 *
 * @example
 * const { jvp } = transforms.linearize((x) => x.square(), tensor([1, 2]));
 * jvp(tensor([1, 0])); // float32 [2, 0]
 *
 * @throws {ArgumentError} if `f` returns no tensor.
 */
export function linearize<Arguments extends readonly unknown[], Result>(
  f: (...values: Arguments) => Result,
  ...primals: Arguments
): Linearized<Arguments, Result>;
export function linearize(...values: unknown[]): Linearized<unknown[], unknown> {
  const { f } = linearizeParameters(values.slice(0, 1));
  const { value, apply } = linear("linearize", f, values.slice(1));
  return { value, jvp: (...tangents) => apply(tangents, false) };
}
const linearizeParameters = parameters("linearize", { f: operand(aFunction<AnyFunction>()) });

function linear(operation: string, f: AnyFunction, primals: readonly unknown[]) {
  const { inputs, outputs, isNested, release } = trace(operation, f, primals);
  const map = tangentMap(outputs.leaves, inputs);
  const apply = (tree: readonly unknown[], isLast: boolean): unknown => {
    const tangents = matching(operation, "tangent", tree, inputs);
    const needsGraph = isNested || tangents.some((tangent) => tangent?.requiresGrad);
    return gradEnabled.run(gradEnabled.get() && needsGraph, () => {
      const found = map.apply(tangents, { isLast });
      return outputs.rebuild(found.map((tangent, at) => tangent ?? zerosFor(outputs.leaves[at])));
    });
  };
  return { value: outputs.rebuild(outputs.leaves.map((leaf: Tensor) => release(leaf))), apply };
}
