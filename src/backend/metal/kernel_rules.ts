/** Rules of a kernel for transformations: tangents, and all examples of `vmap` in one call. */
import { describeValue } from "../../core/describe.ts";
import { ArgumentError } from "../../core/errors.ts";
import type { BatchLevel, Randomness } from "../../tensor/batched.ts";
import { formatShape, sameShape } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { applyToExamples } from "../batching/examples.ts";
import type { KernelHost } from "./kernel_apply.ts";
import { type KernelTensors, type ResultSpec, resultSpecs, splitValues } from "./kernel_options.ts";

/** The examples in a call of a kernel's vmap rule. */
export interface KernelVmapInfo<Values> {
  /** The number of examples. */
  readonly batchSize: number;
  /** For each argument by name, 0 if its first axis has the examples, else null. */
  readonly inDims: { readonly [Name in keyof Values]: 0 | null };
  /** The option `randomness` of `transforms.vmap`. */
  readonly randomness: Randomness;
}

/** Options of `metalKernel` for transformations. */
export interface KernelRules<Values, Results extends string> {
  /**
   * Returns the tangents of the results, given the tangents of the tensor arguments, the arguments, and the results:
   * all by name. Required for `transforms.jvp` if `backward` is not differentiable.
   */
  jvp?: (
    tangents: Readonly<Record<string, Tensor>>,
    values: Values,
    results: KernelTensors<Results>,
  ) => { readonly [Name in Results]?: Tensor | null };
  /**
   * The results of all examples of `transforms.vmap` by name, each with the examples along the first axis. `values` has
   * the arguments, with the examples along the first axis where `inDims` is 0. Without this rule the kernel runs once
   * for each example. Gradients are those of the operations in the rule, such as calls of this kernel.
   */
  vmap?: (info: KernelVmapInfo<Values>, values: Values) => KernelTensors<Results>;
}

/** A vmap rule for any arguments and results. */
export type VmapRule = (
  info: KernelVmapInfo<Readonly<Record<string, unknown>>>,
  values: Readonly<Record<string, unknown>>,
) => unknown;

/** Computes all examples of a level by the kernel's vmap rule. Returns one example of each result, by name. */
export function applyVmapRule(
  { operation, declared }: KernelHost,
  rule: VmapRule,
  values: Readonly<Record<string, unknown>>,
  level: BatchLevel,
): Readonly<Record<string, Tensor>> {
  const specs = resultSpecs(operation, declared, splitValues(values).tensors);
  const names = Object.keys(values);
  const byName = <Value>(all: readonly Value[]): Readonly<Record<string, Value>> =>
    Object.fromEntries(names.map((name, at) => [name, all[at]!]));
  const examples = applyToExamples(level, Object.values(values), ({ inDims, ...info }, given) => {
    const results = rule({ ...info, inDims: byName(inDims) }, byName(given));
    return specs.map((spec) => resultOf(operation, results, spec, level.size));
  });
  return Object.fromEntries(specs.map(({ name }, at) => [name, examples[at]]));
}

/** Checks that a result of the rule has the layout of one example's result with an additional first axis. */
function resultOf(operation: string, results: unknown, { name, shape, dtype }: ResultSpec, size: number): Tensor {
  const result = (results as Readonly<Record<string, unknown>> | null | undefined)?.[name];
  const whole = [size, ...shape];
  if (Tensor.isTensor(result)) {
    result.checkAlive(operation);
    if (result.dtype === dtype && sameShape(result.shape, whole)) return result;
  }
  const got = Tensor.isTensor(result) ? result.describe() : describeValue(result);
  const expected = `expected vmap to return ${dtype}${formatShape(whole)} as the result ${name}, with ${size} examples`;
  throw new ArgumentError(operation, "wrongExamples", `${expected} along the first axis, got ${got}`);
}
