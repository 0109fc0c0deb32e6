import { gradEnabled } from "../autograd/modes.ts";
import { ArgumentError } from "../core/errors.ts";
import { aFunction, aNumber, choice } from "../core/kinds.ts";
import { count } from "../core/options.ts";
import { type Given, named, operand, optional, parameters } from "../core/parameters.ts";
import { eye } from "../ops/creation/eye.ts";
import { tangentMap } from "../ops/gradient/toward.ts";
import { movedim } from "../ops/view/permute.ts";
import { reshape } from "../ops/view/reshape.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { type AnyFunction, type Traced, trace, zerosFor } from "./graph.ts";
import { anyArguments, jvp } from "./jvp.ts";
import { flatten } from "./tree.ts";
import { type ArgumentNumbers, argumentNumbers, choose, grad, pull } from "./vjp.ts";
import { vmap } from "./vmap.ts";

/** Options of {@link jacobian}. */
export interface JacobianOptions {
  /** The position of the argument to differentiate by, or a list of positions. Default 0. */
  argnums?: ArgumentNumbers | undefined;
  /**
   * `"reverse"` computes a backward pass for each element of the result, `"forward"` a pass of tangents for each
   * element of the arguments. Default `"reverse"`.
   */
  mode?: "reverse" | "forward" | undefined;
  /** The number of passes to compute at once, which bounds memory. Default: all. */
  chunkSize?: number | undefined;
}

/**
 * Returns a function that computes all derivatives of `f`: PyTorch's `torch.func.jacrev` and `jacfwd`. The derivative
 * of a tensor of shape S by one of shape T has the shape [...S, ...T]. Trees of results hold trees of arguments;
 * several `argnums` give a list.
 *
 * @param f a function from trees of tensors to a tree of tensors
 *
 * @example
 * transforms.jacobian((x) => x.square())(tensor([1, 2])); // float32 [[2, 0], [0, 4]]
 *
 * @throws {ArgumentError} (the returned function) if an argument has no tensor.
 */
export function jacobian<Arguments extends readonly unknown[]>(
  f: (...values: Arguments) => Tensor,
  ...options: Given<JacobianOptions & { argnums?: number }, ["argnums"]>
): (...values: Arguments) => Arguments[0];
export function jacobian<Arguments extends readonly unknown[]>(
  f: (...values: Arguments) => unknown,
  ...options: Given<JacobianOptions, ["argnums"]>
): (...values: Arguments) => unknown;
export function jacobian(...given: unknown[]): (...values: unknown[]) => unknown {
  const { f, argnums, mode, chunkSize } = jacobianParameters(given);
  return (...values) => {
    const { chosen, of } = choose("jacobian", f, argnums, values);
    const traced = trace("jacobian", of, chosen);
    const blocks = mode === "reverse" ? reverse(traced, chunkSize) : forward(traced, chunkSize);
    const { rebuild } = flatten(chosen);
    return traced.outputs.rebuild(
      blocks.map((ofOutput) => {
        const all = rebuild(ofOutput) as unknown[];
        return typeof argnums === "number" ? all[0] : all;
      }),
    );
  };
}
const jacobianParameters = parameters("jacobian", {
  f: operand(aFunction<AnyFunction>()),
  argnums: optional(argumentNumbers, 0),
  mode: named(choice("reverse", "forward"), "reverse"),
  chunkSize: named(aNumber(count)),
});

/** Returns the rows of a unit matrix, each with the shape of a tensor. */
const units = (x: Tensor): Tensor => reshape(eye(x.size, { dtype: x.dtype }), [x.size, ...x.shape]);

/** Runs `body` for the unit vectors of a tensor. An empty tensor has none. */
function forEachUnit(x: Tensor, chunkSize: number | undefined, body: (unit: Tensor) => Tensor[]): Tensor[] | null {
  if (x.size === 0) return null;
  return vmap(body, { chunkSize, randomness: "same" })(units(x));
}

/** The derivatives of each output by each input, a backward pass for each element of an output. */
function reverse(traced: Traced, chunkSize: number | undefined): Tensor[][] {
  const { inputs, outputs } = traced;
  return outputs.leaves.map((output, at) => {
    const seeds = (unit: Tensor) => outputs.leaves.map((_, index) => (index === at ? unit : null));
    const rows = forEachUnit(output, chunkSize, (unit) => pull(traced, seeds(unit), false));
    return inputs.map((input, index) => blockOf(output, input, rows?.[index]));
  });
}

/** The derivatives of each output by each input, a pass of tangents for each element of an input. */
function forward({ inputs, outputs, isNested }: Traced, chunkSize: number | undefined): Tensor[][] {
  const map = tangentMap(outputs.leaves, inputs);
  const columns = inputs.map((input, at) =>
    gradEnabled.run(gradEnabled.get() && isNested, () =>
      forEachUnit(input, chunkSize, (unit) =>
        map
          .apply(
            inputs.map((_, index) => (index === at ? unit : null)),
            { isLast: false },
          )
          .map((tangent, index) => tangent ?? zerosFor(outputs.leaves[index])),
      ),
    ),
  );
  return outputs.leaves.map((output, at) =>
    inputs.map((input, index) => {
      const column = columns[index]?.[at];
      return blockOf(output, input, column && movedim(column, 0, -1));
    }),
  );
}

/** Reshapes derivatives to the output's shape followed by the input's shape. */
function blockOf(output: Tensor, input: Tensor, derivatives: Tensor | undefined): Tensor {
  const shape = [...output.shape, ...input.shape];
  return derivatives ? reshape(derivatives, shape) : zerosFor({ shape, dtype: input.dtype });
}

/**
 * Returns a function that computes the second derivatives of `f`, forward over reverse: PyTorch's `torch.func.hessian`.
 *
 * @param f returns a tensor
 * @param argnums the position of the argument, or positions for nested lists. Default 0.
 *
 * @example
 * transforms.hessian((x) => x.square().sum())(tensor([1, 2])); // float32 [[2, 0], [0, 2]]
 *
 * @throws {ArgumentError} (the returned function) if an argument has no tensor.
 */
export function hessian<Arguments extends readonly unknown[]>(
  f: (...values: Arguments) => Tensor,
  argnums?: number,
): (...values: Arguments) => Arguments[0];
export function hessian<Arguments extends readonly unknown[]>(
  f: (...values: Arguments) => Tensor,
  argnums: readonly number[],
): (...values: Arguments) => unknown;
export function hessian(...given: unknown[]): (...values: never[]) => unknown {
  const { f, argnums } = hessianParameters(given);
  const gradients = jacobian(f as (...values: unknown[]) => unknown, { argnums });
  return jacobian(gradients, { argnums, mode: "forward" });
}
const hessianParameters = parameters("hessian", {
  f: operand(aFunction<AnyFunction>()),
  argnums: optional(argumentNumbers, 0),
});

/**
 * Computes the product of the second derivatives of `f` with a vector, without the matrix: the tangent of the gradient.
 * It costs a few times as much as `f`.
 *
 * @param f returns a tensor of one element
 * @param primals its arguments
 * @param vectors a tensor for each tensor of `primals`
 * @returns the gradients and the products, in lists like `primals`
 *
 * @example
 * const { product } = transforms.hvp((x) => x.square().sum(), [tensor([1, 2])], [tensor([1, 0])]);
 * product; // [float32 [2, 0]]
 *
 * @throws {ArgumentError} if `f` does not return one element.
 */
export function hvp<Arguments extends readonly unknown[]>(
  f: (...values: Arguments) => Tensor,
  primals: readonly [...Arguments],
  vectors: readonly unknown[],
): { gradient: [...Arguments]; product: [...Arguments] };
export function hvp(...given: unknown[]): { gradient: unknown; product: unknown } {
  const { f, primals, vectors } = hvpParameters(given);
  if (primals.length === 0) throw new ArgumentError("hvp", "notATensor", "expected primals to have an argument");
  const gradients = grad(f as (...values: unknown[]) => Tensor, [...primals.keys()]);
  const { value, tangent } = jvp(gradients, primals, vectors);
  return { gradient: value, product: tangent };
}
const hvpParameters = parameters("hvp", {
  f: operand(aFunction<AnyFunction>()),
  primals: operand(anyArguments),
  vectors: operand(anyArguments),
});
