import { noGrad } from "../../autograd/modes.ts";
import { AutogradError, GraphNode } from "../../autograd/node.ts";
import { needsGradient } from "../../autograd/record.ts";
import { applyToExamples, latestLevelOf } from "../../backend/batching/examples.ts";
import { describeValue } from "../../core/describe.ts";
import { ArgumentError } from "../../core/errors.ts";
import type { BatchLevel, Randomness } from "../../tensor/batched.ts";
import { isGradientDType } from "../../tensor/dtype.ts";
import { severalTensors } from "../../tensor/kinds.ts";
import { sameShape } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";

/**
 * Passes data from a {@link Function}'s forward to its backward.
 *
 * @example
 * context.saveForBackward(x); // in forward
 * const [x] = context.savedTensors; // in backward
 */
export class FunctionContext {
  /** Any value that is not a tensor, such as sizes and options. Save tensors with {@link saveForBackward}. */
  [key: string | symbol]: unknown;
  /** @internal */ toSave: readonly Tensor[] = [];
  /** @internal */ saved: readonly Tensor[] | null = null;
  /** @internal */ readonly withoutGradient = new Set<Tensor>();
  /** For each argument of forward, whether it needs a gradient. */
  needsInputGrad: readonly boolean[] = [];

  /** Saves input or output tensors for the backward pass. They must not be changed in place before it. */
  saveForBackward(...tensors: readonly Tensor[]): void {
    this.toSave = tensors;
  }

  /** The saved tensors; available in backward only. */
  get savedTensors(): readonly Tensor[] {
    if (this.saved === null)
      throw new AutogradError("savedTensors", "notInBackward", "saved tensors can be read in backward() only");
    return this.saved;
  }

  /** Marks outputs that have no gradient, such as indices. */
  markNonDifferentiable(...outputs: readonly Tensor[]): void {
    for (const output of outputs) this.withoutGradient.add(output);
  }
}

/** Static members that a subclass of {@link Function} must have. */
export interface FunctionClass<Arguments extends readonly unknown[], Result extends Tensor | readonly Tensor[]> {
  readonly name: string;
  forward(context: FunctionContext, ...values: Arguments): Result;
  backward(
    context: FunctionContext,
    ...gradients: (Tensor | null)[]
  ): Tensor | null | undefined | readonly (Tensor | null | undefined)[];
  /**
   * Optional: computes the tangents of the outputs from the tangents of the arguments, which are null for arguments
   * that are not tensors or have no tangent. Required for `transforms.jvp` if `backward` is not differentiable.
   */
  jvp?(context: FunctionContext, ...tangents: (Tensor | null)[]): Tensor | null | readonly (Tensor | null)[];
  /**
   * Optional: computes all examples of `transforms.vmap` at once. `values` are the arguments, with the examples along
   * the first axis where `inDims` is 0. The results have the examples along the first axis.
   */
  vmap?(info: VmapInfo, ...values: unknown[]): Result;
}

/** The examples in a call of a {@link Function}'s vmap rule. */
export interface VmapInfo {
  /** The number of examples. */
  readonly batchSize: number;
  /** For each argument, 0 if its first axis has the examples, else null. */
  readonly inDims: readonly (0 | null)[];
  /** The option `randomness` of `transforms.vmap`. */
  readonly randomness: Randomness;
}

/**
 * Base class of operations with a custom gradient. `forward` runs without recording. `backward` returns one gradient
 * for each argument of forward, or null if the argument is not a tensor or needs no gradient. For higher-order
 * gradients, `backward` must use differentiable operations. The gradients passed to `backward`, and temporaries that it
 * creates, are disposed when it returns; `keep` retains one.
 *
 * @example
 * class Cube extends Function {
 *   static forward(context: FunctionContext, x: Tensor) {
 *     context.saveForBackward(x);
 *     return mul(x, mul(x, x));
 *   }
 *   static backward(context: FunctionContext, gradient: Tensor | null) {
 *     const [x] = context.savedTensors;
 *     return mul(gradient!, mul(3, mul(x!, x!)));
 *   }
 * }
 * Cube.apply(x);
 */
// biome-ignore lint/suspicious/noShadowRestrictedNames: PyTorch users know it by this name
// biome-ignore lint/complexity/noStaticOnlyClass: subclasses are definitions, never instances
export abstract class Function {
  /** Runs forward, and records backward if an argument requires a gradient. */
  static apply<Arguments extends readonly unknown[], Result extends Tensor | readonly Tensor[]>(
    this: FunctionClass<Arguments, Result>,
    ...values: Arguments
  ): Result {
    // biome-ignore lint/complexity/noThisInStatic: it is the subclass that is called
    return applyFunction(this, values);
  }
}

function applyFunction<Arguments extends readonly unknown[], Result extends Tensor | readonly Tensor[]>(
  definition: FunctionClass<Arguments, Result>,
  values: Arguments,
): Result {
  const inputs = values.filter((value) => value instanceof Tensor);
  for (const input of inputs) input.checkAlive(definition.name);
  const level = definition.vmap && latestLevelOf(inputs);
  if (level) return applyRule(definition, values, level);
  const context = new FunctionContext();
  context.needsInputGrad = values.map((value) => value instanceof Tensor && value.requiresGrad);
  const result = noGrad(() => definition.forward(context, ...values));
  const outputs = severalTensors.parse(result, definition.name, "the result");
  if (outputs === undefined)
    throw new ArgumentError(
      definition.name,
      "notATensor",
      `expected forward to return a tensor or an array of tensors, got ${describeValue(result)}`,
    );
  if (needsGradient(...inputs)) recordFunction(definition, context, values, outputs);
  return result;
}

/** Runs the vmap rule of a function. */
function applyRule<Arguments extends readonly unknown[], Result extends Tensor | readonly Tensor[]>(
  definition: FunctionClass<Arguments, Result>,
  values: Arguments,
  level: BatchLevel,
): Result {
  let isOne = false;
  const examples = applyToExamples(level, values, (info, given) => {
    const result = definition.vmap!(info, ...given);
    isOne = !Array.isArray(result);
    const outputs = severalTensors.parse(result, definition.name, "the result");
    const wrong = outputs === undefined ? result : outputs.find(({ shape }) => shape[0] !== level.size);
    if (outputs !== undefined && !wrong) return outputs;
    throw new ArgumentError(
      definition.name,
      "wrongExamples",
      `expected vmap to return tensors whose first axis has ${level.size} examples, got ${describeValue(wrong)}`,
    );
  });
  return (isOne ? examples[0] : examples) as Result;
}

function recordFunction(
  definition: FunctionClass<never, Tensor | readonly Tensor[]>,
  context: FunctionContext,
  values: readonly unknown[],
  outputs: readonly Tensor[],
): void {
  const inputs = values.filter((value) => value instanceof Tensor);
  for (const output of outputs) {
    if (inputs.includes(output) || output.edge !== null)
      throw new ArgumentError(
        definition.name,
        "returnsInput",
        "forward returned one of its arguments, or a tensor with autograd history; return a clone()",
      );
  }
  const differentiable = outputs.map((output) => !context.withoutGradient.has(output));
  const node = new GraphNode(definition.name, inputs, outputs, context.toSave, (gradients, saved) => {
    context.saved = saved;
    try {
      const given = definition.backward(
        context,
        ...gradients.map((gradient, at) => (differentiable[at] ? gradient : null)),
      );
      return gradientsOf(definition.name, values, Array.isArray(given) ? given : [given]);
    } finally {
      context.saved = null;
    }
  });
  for (const [output, tensor] of outputs.entries()) if (!differentiable[output]) tensor.edge = null;
  if (!definition.jvp) return;
  node.forward = (tangents, saved) => {
    context.saved = saved;
    try {
      let next = 0;
      const all = values.map((value) => (value instanceof Tensor ? tangents[next++]! : null));
      const given = definition.jvp!(context, ...all);
      const results = Array.isArray(given) ? given : [given];
      return outputs.map((output, at) => checkTangent(definition.name, at, output, results[at]));
    } finally {
      context.saved = null;
    }
  };
}

function checkTangent(operation: string, index: number, output: Tensor, tangent: unknown): Tensor | null {
  if (tangent === null) return null;
  if (
    Tensor.isTensor(tangent) &&
    sameShape(tangent.shape, output.shape) &&
    isGradientDType(tangent.dtype, output.dtype)
  )
    return toDType(tangent, output.dtype);
  throw new AutogradError(
    operation,
    "wrongTangent",
    `expected jvp to return a tangent for each output, ${output.describe()} for output ${index}, got ` +
      `${describeValue(tangent)}`,
  );
}

/** Selects the gradients of the arguments that are tensors. */
function gradientsOf(
  operation: string,
  values: readonly unknown[],
  given: readonly (Tensor | null | undefined)[],
): (Tensor | null)[] {
  if (given.length !== values.length && !(given.length === 1 && !given[0]))
    throw new AutogradError(
      operation,
      "wrongCount",
      `backward returned ${given.length} gradients, forward has ${values.length} arguments; return null for those ` +
        "without a gradient",
    );
  return values.flatMap((value, index) =>
    value instanceof Tensor ? [checkGradient(operation, index, value, given[index])] : [],
  );
}

function checkGradient(
  operation: string,
  index: number,
  input: Tensor,
  gradient: Tensor | null | undefined,
): Tensor | null {
  if (gradient === null || gradient === undefined) return null;
  if (!Tensor.isTensor(gradient))
    throw new AutogradError(
      operation,
      "wrongGradient",
      `expected backward to return a tensor or null for argument ${index}, got ${describeValue(gradient)}`,
    );
  gradient.checkAlive(operation);
  if (sameShape(gradient.shape, input.shape) && isGradientDType(gradient.dtype, input.dtype))
    return toDType(gradient, input.dtype);
  throw new AutogradError(
    operation,
    "wrongGradient",
    `backward returned ${gradient.describe()} for argument ${index}, which is ${input.describe()}`,
  );
}
