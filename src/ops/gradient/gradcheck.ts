import { noGrad } from "../../autograd/modes.ts";
import { describeValue } from "../../core/describe.ts";
import { ArgumentError, OrchardError } from "../../core/errors.ts";
import { aFunction, aNumber } from "../../core/kinds.ts";
import { finite, notNegative, positive } from "../../core/options.ts";
import { type Given, named, operand, optional, parameters } from "../../core/parameters.ts";
import { isComplex, realDType } from "../../tensor/dtype.ts";
import { severalTensors } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { fromPairs, tensor } from "../creation/tensor.ts";
import { grad } from "./backward.ts";

/** Options of {@link gradcheck}. */
export interface GradcheckOptions {
  /** Step of the central difference. Default 1e-6. */
  epsilon?: number;
  /** Largest absolute difference. Default 1e-5. */
  absolute?: number;
  /** Largest difference relative to the numerical gradient. Default 1e-3. */
  relative?: number;
  /** Seed of the random cotangents. Default 1. */
  seed?: number;
}

/** An error: a gradient differs from finite differences. */
export class GradcheckError extends OrchardError {
  override readonly name = "GradcheckError";
}

/**
 * Compares the gradients of `compute` with central differences, (f(x + ε) − f(x − ε)) / 2ε, for every element of every
 * float64 input that requires a gradient, and for both parts of every complex128 one. Results are weighted with random
 * cotangents, so that errors can't cancel each other, as they could in a plain sum.
 *
 * @example
 * gradcheck((x) => exp(x), [tensor([0.1, 0.2], { dtype: "float64", requiresGrad: true })]);
 *
 * @throws {GradcheckError} naming the input, the element and both values. @throws {ArgumentError} if no input requires
 * a gradient, or one that does is not float64 or complex128, or not contiguous.
 */
export function gradcheck(
  compute: (...inputs: Tensor[]) => Tensor | readonly Tensor[],
  inputs: Tensor | readonly Tensor[],
  ...options: Given<GradcheckOptions, ["epsilon", "absolute", "relative"]>
): true;
export function gradcheck(...values: unknown[]): true {
  const { compute: given, inputs, epsilon, absolute, relative, seed } = gradcheckParameters(values);
  const compute = (...operands: Tensor[]) => tensorsOf(given(...operands));
  const checked = inputs.filter(({ requiresGrad }) => requiresGrad);
  if (checked.length === 0 || checked.some(({ dtype }) => realDType(dtype) !== "float64"))
    throw new ArgumentError(
      "gradcheck",
      "notFloat64",
      "expected inputs that require a gradient, all of them float64 or complex128, got " +
        `${inputs.map((input) => input.describe()).join(", ")}`,
    );
  const random = generator(seed);
  const all = compute(...inputs);
  const indices = [...all.keys()].filter((index) => all[index].requiresGrad);
  const outputs = indices.map((index) => all[index]);
  const cotangents = outputs.map((output) => Float64Array.from({ length: numbersOf(output) }, () => random() * 2 - 1));
  const weighted = (): number =>
    noGrad(() => {
      const results = compute(...inputs);
      return indices.reduce((total, index, at) => total + dot(results[index].dataSync(), cotangents[at]), 0);
    });
  const gradOutputs = outputs.map((output, index) =>
    isComplex(output.dtype)
      ? toDType(fromPairs(cotangents[index], output.shape), output.dtype)
      : tensor(cotangents[index], { dtype: output.dtype, shape: output.shape }),
  );
  const analytical = grad(outputs, checked, { gradOutputs, allowUnused: true });
  for (const [at, input] of checked.entries())
    compare(input, inputs.indexOf(input), analytical[at] ?? null, weighted, { epsilon, absolute, relative });
  return true;
}

const gradcheckParameters = parameters("gradcheck", {
  compute: operand(aFunction<(...inputs: Tensor[]) => unknown>()),
  inputs: operand(severalTensors),
  epsilon: optional(aNumber(positive), 1e-6),
  absolute: optional(aNumber(notNegative), 1e-5),
  relative: optional(aNumber(notNegative), 1e-3),
  seed: named(aNumber(finite), 1),
});

/** Returns the function's results. @throws {ArgumentError} if they are not tensors. */
function tensorsOf(result: unknown): readonly Tensor[] {
  const found = severalTensors.parse(result, "gradcheck", "the result");
  if (found) return found;
  throw new ArgumentError(
    "gradcheck",
    "notATensor",
    `expected the function to return a tensor or an array of tensors, got ${describeValue(result)}`,
  );
}

/** The number of real numbers in a tensor: a complex element has two. */
const numbersOf = ({ size, dtype }: Tensor): number => size * (isComplex(dtype) ? 2 : 1);

const dot = (a: ArrayLike<number | bigint>, b: Float64Array): number =>
  b.reduce((total, weight, index) => total + Number(a[index]) * weight, 0);

function compare(
  input: Tensor,
  which: number,
  analytical: Tensor | null,
  weighted: () => number,
  { epsilon, absolute, relative }: Required<Omit<GradcheckOptions, "seed">>,
): void {
  if (!input.isContiguous) throw new ArgumentError("gradcheck", "notContiguous", `input ${which} must be contiguous`);
  const parts = isComplex(input.dtype) ? 2 : 1;
  const stored = input.storage.array("float64");
  const found = analytical?.dataSync() as Float64Array | undefined;
  for (let index = 0; index < numbersOf(input); index++) {
    const element = input.offset * parts + index;
    const value = stored[element];
    stored[element] = value + epsilon;
    const above = weighted();
    stored[element] = value - epsilon;
    const below = weighted();
    stored[element] = value;
    const numerical = (above - below) / (2 * epsilon);
    const analytic = found?.[index] ?? 0;
    if (Math.abs(analytic - numerical) <= absolute + relative * Math.abs(numerical)) continue;
    const place =
      parts === 1 ? `element ${index}` : `${index % 2 === 0 ? "real" : "imaginary"} part of element ${index >> 1}`;
    throw new GradcheckError(
      "gradcheck",
      "differs",
      `input ${which}, ${place} (${value}): backward gives ${analytic}, finite differences ${numerical}`,
    );
  }
}

/** A small random generator, mulberry32, which suffices for cotangents. */
function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
