/** Parameters that are computed from other tensors, as in PyTorch's `torch.nn.utils.parametrize`. */
import { noGrad } from "../../autograd/modes.ts";
import { describeValue } from "../../core/describe.ts";
import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { flag, instanceOf, isArray, text } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import { clone, copyInto } from "../../ops/copy/copy.ts";
import { sameShape } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { keep, tidy } from "../../tensor/tidy.ts";
import { ModuleDict } from "./containers.ts";
import { Module } from "./module.ts";

/**
 * Computes a parameter from one or several trained tensors by `forward`. `rightInverse` computes the trained tensors
 * from a value of the parameter, so that `forward` returns this value. Without it, the trained tensor starts as the
 * parameter itself.
 */
export interface Parametrization extends Module<never[], Tensor> {
  /** Returns the arguments of `forward` for a value of the parameter. */
  rightInverse?(value: Tensor): Tensor | readonly Tensor[];
}

/**
 * The trained tensors (`original`, or `original0`, `original1` …) and the parametrizations (`0`, `1` …) of one
 * parameter.
 */
class ParametrizationList extends Module<[], Tensor> {
  /** @param isTrained whether the parameter required a gradient */
  constructor(first: Parametrization, value: Tensor, isTrained: boolean) {
    super();
    const found = first.rightInverse?.(value) ?? value;
    const originals = isArray(found) ? found : [found];
    for (const [at, tensor] of originals.entries()) {
      const original = keep(clone(tensor));
      original.requiresGrad = isTrained;
      Reflect.set(this, isArray(found) ? `original${at}` : "original", original);
    }
    Reflect.set(this, 0, first);
  }

  get originals(): Tensor[] {
    return Object.entries(this).flatMap(([name, value]) => (/^original\d*$/.test(name) ? [value] : []));
  }

  get steps(): Parametrization[] {
    return Object.entries(this).flatMap(([name, value]) => (/^\d+$/.test(name) ? [value] : []));
  }

  override forward(): Tensor {
    const [first, ...others] = this.steps as Module<Tensor[], Tensor>[];
    return tidy(() => others.reduce((value, step) => step.forward(value), first.forward(...this.originals)));
  }

  /** Sets the trained tensors so that the parameter has this value. */
  assign(operation: string, value: Tensor): void {
    noGrad(() =>
      tidy(() => {
        let given: Tensor | readonly Tensor[] = value;
        for (const step of this.steps.toReversed()) given = step.rightInverse?.(given as Tensor) ?? given;
        const found = isArray(given) ? given : [given];
        for (const [at, original] of this.originals.entries()) {
          checkShape(operation, found[at], original);
          copyInto(original, found[at]);
        }
      }),
    );
  }
}

function checkShape(operation: string, value: Tensor, { shape }: Tensor): void {
  if (sameShape(value.shape, shape)) return;
  throw new ShapeError(
    operation,
    "wrongShape",
    `expected the parameter to have shape [${shape.join(", ")}], got ${value.describe()}`,
  );
}

/**
 * Replaces a parameter of a module by a computed value, as in PyTorch. Each read of `module.<name>` computes
 * `parametrization.forward(original)`. The state has `parametrizations.<name>.original` instead of `<name>`. Several
 * parametrizations of one parameter are applied one after the other. Create the optimizer afterwards, because the
 * trained tensors are new.
 *
 * @param module changed in place, and returned
 * @param name a parameter or buffer of the module itself, not of a submodule
 *
 * @example
 * class Symmetric extends Module<[x: Tensor], Tensor> {
 *   forward(x: Tensor) {
 *     return x.triu().add(x.triu(1).mT) as Tensor;
 *   }
 * }
 * registerParametrization(new Linear(3, 3), "weight", new Symmetric()).weight; // a symmetric matrix
 *
 * @throws {ArgumentError} `noSuchTensor` if the module has no such tensor; `severalOriginals` if a second
 * parametrization has several trained tensors. @throws {ShapeError} if a parametrization changes the shape.
 */
export function registerParametrization<M extends Module>(module: M, name: string, parametrization: Parametrization): M;
export function registerParametrization(...values: unknown[]): Module {
  const { module, name, parametrization } = registerParameters(values);
  return parametrize("registerParametrization", module, name, parametrization as Parametrization);
}
const aModule = instanceOf<Module>(Module, "a module");
const registerParameters = parameters("registerParametrization", {
  module: operand(aModule),
  name: operand(text),
  parametrization: operand(aModule),
});

/** @internal As {@link registerParametrization}, with the operation's name for errors. */
export function parametrize<M extends Module>(operation: string, module: M, name: string, step: Parametrization): M {
  const before = listOf(module, name);
  if (before) {
    const value = noGrad(() => before.forward());
    if (isArray(step.rightInverse?.(value)))
      throw new ArgumentError(
        operation,
        "severalOriginals",
        `only the first parametrization of ${name} may have several trained tensors; register this one first`,
      );
    checkShape(
      operation,
      noGrad(() => (step as Module<[Tensor], Tensor>).forward(value)),
      value,
    );
    Reflect.set(before, before.steps.length, step.train(module.training));
    return module;
  }
  const value = tensorOf(operation, module, name);
  const list = noGrad(() => new ParametrizationList(step, value, value.requiresGrad));
  checkShape(
    operation,
    noGrad(() => list.forward()),
    value,
  );
  const dict = dictOf(module) ?? new ModuleDict<ParametrizationList>();
  if (!dictOf(module)) Reflect.set(module, "parametrizations", dict);
  dict.set(name, list.train(module.training));
  Reflect.deleteProperty(module, name);
  Object.defineProperty(module, name, {
    get: () => list.forward(),
    set: (next: Tensor) => list.assign(operation, next),
    configurable: true,
    enumerable: false,
  });
  return module;
}

/** @internal Returns a tensor that is a property of the module itself. @throws {ArgumentError} `noSuchTensor` */
export function tensorOf(operation: string, module: Module, name: string): Tensor {
  const value = Object.hasOwn(module, name) ? Reflect.get(module, name) : undefined;
  if (value instanceof Tensor) return value;
  const names = Object.entries(module).flatMap(([property, each]) => (each instanceof Tensor ? [property] : []));
  throw new ArgumentError(
    operation,
    "noSuchTensor",
    `expected the name of a tensor of ${module.constructor.name} (${names.join(", ") || "it has none"}), ` +
      `got ${describeValue(name)}`,
  );
}

const dictOf = (module: Module): ModuleDict<ParametrizationList> | undefined =>
  Object.hasOwn(module, "parametrizations")
    ? (Reflect.get(module, "parametrizations") as ModuleDict<ParametrizationList>)
    : undefined;

function listOf(module: Module, name: string): ParametrizationList | undefined {
  const dict = dictOf(module);
  return dict instanceof ModuleDict && dict.has(name) ? dict.get(name) : undefined;
}

/** Options of {@link removeParametrizations}. */
export interface RemoveParametrizationsOptions {
  /** Whether the parameter keeps its computed value; false restores the trained tensor. Default true. */
  leaveParametrized?: boolean | undefined;
}

/**
 * Turns a computed parameter back into a plain one, after {@link registerParametrization}, `weightNorm` or
 * `spectralNorm`.
 *
 * @returns the module, changed in place
 *
 * @example
 * removeParametrizations(weightNorm(new Linear(20, 40)), "weight").stateDict(); // bias, weight
 *
 * @throws {ArgumentError} `noParametrization` if the parameter has none; `severalOriginals` for
 * `leaveParametrized: false` with several trained tensors.
 */
export function removeParametrizations<M extends Module>(
  module: M,
  name: string,
  ...options: Given<RemoveParametrizationsOptions, ["leaveParametrized"]>
): M;
export function removeParametrizations(...values: unknown[]): Module {
  const { module, name, leaveParametrized } = removeParameters(values);
  const list = listOf(module, name);
  if (list === undefined)
    throw new ArgumentError(
      "removeParametrizations",
      "noParametrization",
      `expected the name of a tensor with a parametrization, got ${describeValue(name)}`,
    );
  const { originals } = list;
  if (!leaveParametrized && originals.length > 1)
    throw new ArgumentError(
      "removeParametrizations",
      "severalOriginals",
      `${name} has ${originals.length} trained tensors, which requires leaveParametrized: true, got false`,
    );
  const value = leaveParametrized ? keep(noGrad(() => clone(list.forward()))) : originals[0];
  value.requiresGrad = originals.some((tensor) => tensor.requiresGrad);
  Object.defineProperty(module, name, { value, configurable: true, enumerable: true, writable: true });
  const dict = dictOf(module)!;
  Reflect.deleteProperty(dict, name);
  if (dict.keys().length === 0) Reflect.deleteProperty(module, "parametrizations");
  return module;
}
const removeParameters = parameters("removeParametrizations", {
  module: operand(aModule),
  name: operand(text),
  leaveParametrized: optional(flag, true),
});

/** @internal The operands of functions that parametrize a weight. */
export const parametrizedOperands = { module: operand(aModule), name: optional(text, "weight") } as const;
