/** Entry points of backward passes: `backward`, `grad`, `valueAndGrad`. */

import { enableGrad, noGrad } from "../../autograd/modes.ts";
import { AutogradError, edgeOf, type GradientTarget } from "../../autograd/node.ts";
import { type BackwardOptions, passBackward } from "../../autograd/pass.ts";
import { describeValue } from "../../core/describe.ts";
import { ArgumentError, DTypeError, ShapeError } from "../../core/errors.ts";
import { aFunction, aNumber, flag, isListed, listOf } from "../../core/kinds.ts";
import { count as wholeCount } from "../../core/options.ts";
import { type Given, type Kind, named, operand, optional, optionalOperand, parameters } from "../../core/parameters.ts";
import { capture } from "../../observe/capture.ts";
import { isComplex, isGradientDType } from "../../tensor/dtype.ts";
import { aTensor, severalTensors } from "../../tensor/kinds.ts";
import { formatShape, sameShape } from "../../tensor/shape.ts";
import { type DeferredCheck, Storage } from "../../tensor/storage.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { keep } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { clone } from "../copy/copy.ts";
import { tensor } from "../creation/tensor.ts";
import { add } from "../elementwise/arithmetic.ts";
import { expand } from "../view/expand.ts";
import { addExamples } from "./examples.ts";

const addGradients = (a: Tensor, b: Tensor): Tensor => add(a, b);

/**
 * Computes the gradient of `root` and adds it to the `grad` of every leaf that requires one.
 *
 * @param gradient `root`'s gradient, of the same shape; default 1 if `root` has one element, otherwise required
 *
 * @example
 * const w = tensor([1, 2], { requiresGrad: true });
 * backward(sum(mul(w, w)));
 * w.grad; // float32 [2, 4]
 *
 * @throws {AutogradError} `noGraph` if nothing requires a gradient; `notAScalar` if `gradient` is missing; `graphFreed`
 * on a second pass; `savedTensorChanged` if a saved tensor was changed in place.
 */
export function backward(root: Tensor, ...options: BackwardArguments): void;
export function backward(...values: unknown[]): void {
  const { root, gradient, ...options } = backwardParameters(values);
  const seed = checkRoot("backward", root, gradient);
  const handedOut = new Set<Storage>();
  const firstSerial = Storage.nextSerial;
  // Copy a gradient that shares memory with another gradient, the caller's tensor or a result of the forward pass.
  // Otherwise, changing one in place would change the other.
  const isUnshared = ({ isContiguous, storage }: Tensor) =>
    isContiguous && storage.serial >= firstSerial && !handedOut.has(storage);
  const accumulate = (target: Tensor, incoming: Tensor): boolean => {
    const sum = target.grad === null ? incoming : addGradients(target.grad, incoming);
    const kept = isUnshared(sum) ? sum : clone(sum);
    handedOut.add(kept.storage);
    capture?.accumulated(target);
    target.grad = keep(kept);
    return kept === incoming;
  };
  passBackward([{ root, seed }], options, { add: addGradients, addExamples, accumulate });
}

/** Arguments of {@link backward} after the root: a gradient, then options, named or positional. */
export type BackwardArguments =
  | [gradient?: Tensor | undefined, options?: BackwardOptions]
  | [gradient: Tensor | undefined, retainGraph: boolean | undefined, createGraph?: boolean];

const passOptions = { retainGraph: optional(flag), createGraph: optional(flag, false) } as const;
const backwardParameters = parameters("backward", {
  root: operand(aTensor),
  gradient: optionalOperand(aTensor),
  ...passOptions,
});

/** Options of {@link grad}. */
export interface GradOptions extends BackwardOptions {
  /** Gradients of the outputs; default 1 for an output of one element. */
  gradOutputs?: readonly (Tensor | undefined)[] | undefined;
  /** Return null for an input that the outputs do not depend on, instead of throwing an error. */
  allowUnused?: boolean | undefined;
}

/**
 * Computes the gradients of the sum of `outputs` with respect to each of `inputs`, which need not be leaves. Does not
 * change the `grad` of leaves.
 *
 * @throws {AutogradError} as {@link backward}, and `unused` if the outputs do not depend on an input.
 */
export function grad(
  outputs: Tensor | readonly Tensor[],
  inputs: Tensor | readonly Tensor[],
  ...more: Given<GradOptions, ["gradOutputs", "retainGraph", "createGraph"]>
): Tensor[];
export function grad(...values: unknown[]): Tensor[] {
  const { outputs: roots, inputs, ...options } = gradParameters(values);
  const seeded = roots.map((root, index) => ({ root, seed: checkRoot("grad", root, options.gradOutputs?.[index]) }));
  const results = new Array<Tensor | null>(inputs.length).fill(null);
  const observe = (target: NonNullable<GradientTarget>, incoming: Tensor): boolean => {
    let isFound = false;
    for (let index = 0; index < inputs.length; index++) {
      if (!isSameTarget(edgeOf(inputs[index]) ?? inputs[index], target)) continue;
      results[index] = incoming;
      isFound = true;
    }
    return isFound;
  };
  passBackward(seeded, options, { add: addGradients, addExamples, observe });
  const unused = results.indexOf(null);
  if (unused >= 0 && !options.allowUnused)
    throw new AutogradError(
      "grad",
      "unused",
      `the outputs do not depend on input ${unused} (${inputs[unused].describe()}); { allowUnused: true } returns ` +
        "null for it",
    );
  return results as Tensor[];
}

const MOST_OUTPUTS = 2 ** 16;
const listOfSeeds = listOf<Tensor | null>(
  {
    expected: "a tensor or nothing",
    parse: (value, operation, name) => ((value ?? null) === null ? null : aTensor.parse(value, operation, name)),
  },
  "a list of tensors",
);
/** A gradient for each output; undefined or null for the default. */
const seeds: Kind<readonly (Tensor | undefined)[]> = {
  expected: "a tensor for each output, or undefined",
  parse(value, operation, name) {
    const one = aTensor.parse(value, operation, name);
    if (one) return [one];
    if (isListed(value) && value.length > MOST_OUTPUTS) return undefined; // a sparse array may have billions of holes
    return listOfSeeds.parse(value, operation, name)?.map((item) => item ?? undefined);
  },
};
const gradParameters = parameters("grad", {
  outputs: operand(severalTensors),
  inputs: operand(severalTensors),
  gradOutputs: optional(seeds),
  ...passOptions,
  allowUnused: named(flag, false),
});

function isSameTarget(a: NonNullable<GradientTarget>, b: NonNullable<GradientTarget>): boolean {
  if (a instanceof Tensor || b instanceof Tensor) return a === b;
  return a.node === b.node && a.output === b.output;
}

function checkRoot(operation: string, root: Tensor, gradient: Tensor | undefined): Tensor {
  if (!root.requiresGrad)
    throw new AutogradError(
      operation,
      "noGraph",
      `${root.describe()} does not depend on anything that requires a gradient (or was made in noGrad)`,
    );
  if (gradient === undefined) {
    if (root.size !== 1)
      throw new AutogradError(
        operation,
        "notAScalar",
        `expected a result of one element, got ${root.describe()}; reduce it (sum, mean) or pass its gradient`,
      );
    if (isComplex(root.dtype))
      throw new AutogradError(
        operation,
        "notReal",
        `expected a real result, got ${root.describe()}; take real(x) or abs(x), or pass its gradient`,
      );
    const seed = tensor(1, { dtype: root.dtype });
    seed.storage.dependOn(checksOf(root));
    return expand(seed, root.shape);
  }
  if (!sameShape(gradient.shape, root.shape))
    throw new ShapeError(
      operation,
      "shapesDiffer",
      `expected the gradient to have the shape of its tensor, ${formatShape(root.shape)}, got ` +
        `${formatShape(gradient.shape)}`,
    );
  if (!isGradientDType(gradient.dtype, root.dtype)) {
    const kind = isComplex(root.dtype) ? "complex" : "a float";
    throw new DTypeError(operation, "notAFloat", `expected the gradient to be ${kind}, got ${gradient.dtype}`);
  }
  const seed = toDType(gradient, root.dtype);
  const checks = checksOf(root);
  if (checks.length === 0) return seed;
  const copy = noGrad(() => clone(seed)); // a copy, so that the caller's tensor does not depend on these checks
  copy.storage.dependOn(checks);
  return copy;
}

/**
 * Returns the pending device checks of the root's operands: its gradients are valid once they pass. @throws the error
 * of a check that failed.
 */
function checksOf({ storage }: Tensor): readonly DeferredCheck[] {
  if (storage.failure !== undefined) throw storage.failure;
  return storage.checks;
}

/**
 * Returns a function that computes the value of `compute` and the gradients of its first arguments.
 *
 * @param compute returns a tensor of one element; the tensors passed to it are disposed once the gradients are computed
 * @param count number of leading arguments that get a gradient; default 1
 *
 * @example
 * const step = valueAndGrad((w, x) => sum(mul(w, x)));
 * const { value, gradients: [dw] } = step(w, x);
 */
export function valueAndGrad<Arguments extends readonly unknown[]>(
  compute: (...values: Arguments) => Tensor,
  count?: number,
): (...values: Arguments) => { value: Tensor; gradients: Tensor[] };
export function valueAndGrad(...given: unknown[]): (...values: unknown[]) => { value: Tensor; gradients: Tensor[] } {
  const { compute, count } = valueAndGradParameters(given);
  return (...values) => {
    const inputs = Array.from({ length: count }, (_, index) => {
      const value = values[index];
      if (!Tensor.isTensor(value))
        throw new ArgumentError(
          "valueAndGrad",
          "notATensor",
          `expected argument ${index}, which gets a gradient, to be a tensor, got ${describeValue(value)}`,
        );
      value.checkAlive("valueAndGrad");
      const leaf = new Tensor(value.storage, value.dtype, value.shape, value.strides, value.offset);
      leaf.requiresGrad = true;
      return leaf;
    });
    try {
      const value = enableGrad(() => compute(...inputs, ...values.slice(count)));
      if (!Tensor.isTensor(value))
        throw new ArgumentError(
          "valueAndGrad",
          "notATensor",
          `expected the function to return a tensor, got ${describeValue(value)}`,
        );
      return { value: detach(value), gradients: grad(value, inputs) };
    } finally {
      for (const input of inputs) input.dispose();
    }
  };
}

const valueAndGradParameters = parameters("valueAndGrad", {
  compute: operand(aFunction<(...values: unknown[]) => unknown>()),
  count: optional(aNumber(wholeCount), 1),
});

/**
 * Returns a view of the same elements without autograd history; it requires no gradient.
 *
 * @example
 * const w = tensor([1, 2], { requiresGrad: true });
 * detach(w.mul(2)).requiresGrad; // false
 */
export function detach(x: Tensor): Tensor;
export function detach(...values: unknown[]): Tensor {
  const { x } = detachParameters(values);
  return new Tensor(x.storage, x.dtype, x.shape, x.strides, x.offset);
}
const detachParameters = parameters("detach", { x: operand(aTensor) });
