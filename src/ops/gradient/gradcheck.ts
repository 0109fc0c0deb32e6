import { noGrad } from "../../autograd/modes.ts";
import { describeValue } from "../../core/describe.ts";
import { ArgumentError, OrchardError } from "../../core/errors.ts";
import { aFunction, aNumber } from "../../core/kinds.ts";
import { finite, notNegative, positive } from "../../core/options.ts";
import { type Given, named, operand, optional, parameters } from "../../core/parameters.ts";
import { severalTensors } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tensor } from "../creation/tensor.ts";
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
 * float64 input that requires a gradient. Results are weighted with random cotangents, so that errors can't cancel each
 * other, as they could in a plain sum.
 *
 * @example
 * gradcheck((x) => exp(x), [tensor([0.1, 0.2], { dtype: "float64", requiresGrad: true })]);
 *
 * @throws {GradcheckError} naming the input, the element and both values. @throws {ArgumentError} if no input requires
 * a gradient, or one that does is not float64 or not contiguous.
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
  if (checked.length === 0 || checked.some(({ dtype }) => dtype !== "float64"))
    throw new ArgumentError(
      "gradcheck",
      "notFloat64",
      "expected inputs that require a gradient, all of them float64, got " +
        `${inputs.map((input) => input.describe()).join(", ")}`,
    );
  const random = generator(seed);
  const all = compute(...inputs);
  const indices = [...all.keys()].filter((index) => all[index]!.requiresGrad);
  const outputs = indices.map((index) => all[index]!);
  const cotangents = outputs.map(({ size }) => Float64Array.from({ length: size }, () => random() * 2 - 1));
  const weighted = (): number =>
    noGrad(() => {
      const results = compute(...inputs);
      return indices.reduce((total, index, at) => total + dot(results[index]!.dataSync(), cotangents[at]!), 0);
    });
  const gradOutputs = outputs.map((output, index) =>
    tensor(cotangents[index]!, { dtype: output.dtype, shape: output.shape }),
  );
  const analytical = grad(outputs, checked, { gradOutputs, allowUnused: true }) as (Tensor | null)[];
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

const dot = (a: ArrayLike<number | bigint>, b: Float64Array): number =>
  b.reduce((total, weight, index) => total + Number(a[index]!) * weight, 0);

function compare(
  input: Tensor,
  which: number,
  analytical: Tensor | null,
  weighted: () => number,
  { epsilon, absolute, relative }: Required<Omit<GradcheckOptions, "seed">>,
): void {
  if (!input.isContiguous) throw new ArgumentError("gradcheck", "notContiguous", `input ${which} must be contiguous`);
  const stored = input.storage.array("float64");
  const found = analytical?.dataSync() as Float64Array | undefined;
  for (let index = 0; index < input.size; index++) {
    const element = input.offset + index;
    const value = stored[element]!;
    stored[element] = value + epsilon;
    const above = weighted();
    stored[element] = value - epsilon;
    const below = weighted();
    stored[element] = value;
    const numerical = (above - below) / (2 * epsilon);
    const analytic = found?.[index] ?? 0;
    if (Math.abs(analytic - numerical) <= absolute + relative * Math.abs(numerical)) continue;
    throw new GradcheckError(
      "gradcheck",
      "differs",
      `input ${which}, element ${index} (${value}): backward gives ${analytic}, finite differences ${numerical}`,
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
