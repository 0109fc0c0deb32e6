import { noGrad } from "../autograd/modes.ts";
import { getOrMake } from "../core/collections.ts";
import { toDType } from "../ops/copy/cast.ts";
import { detach } from "../ops/gradient/backward.ts";
import { type FloatDType, isFloat } from "../tensor/dtype.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { keep } from "../tensor/tidy.ts";
import { modulesIn, slotsOf, tensorSlotsIn } from "./slots.ts";
import { type LoadOptions, type LoadReport, loadInto, type StateDict } from "./state_dict.ts";
import { formatSummary } from "./summary.ts";

/**
 * A layer, or a model of layers. What its own properties hold is its state: tensors that require gradients are parameters, other tensors
 * buffers, modules its parts, and arrays and maps of these are looked into. Names are PyTorch's: `blocks.0.attention.output.weight`. A
 * `#private` field is no state.
 *
 * A tensor that is in several places (tied weights) is one parameter, under the first of its names. One whose `requiresGrad` is set to
 * false is frozen: it is a buffer, saved and loaded, and no optimiser is given it.
 *
 * @example
 * class Perceptron extends Module<[x: Tensor], Tensor> {
 *   readonly hidden = new Linear(784, 128);
 *   readonly output = new Linear(128, 10);
 *   forward(x: Tensor) {
 *     return this.output.forward(relu(this.hidden.forward(x)));
 *   }
 * }
 */
export abstract class Module<Arguments extends readonly unknown[] = never[], Result = unknown> {
  /** Whether it is being trained: where not, dropout leaves everything as it is. {@link train} and {@link eval} set it. */
  training = true;

  /** What the module computes. */
  abstract forward(...values: Arguments): Result;

  /** The tensors that require gradients, each once, in the order of their declaration: what an optimiser is given. */
  parameters(): Tensor[] {
    return [...this.namedParameters().values()];
  }

  /** The {@link parameters} by name. */
  namedParameters(): Map<string, Tensor> {
    return new Map([...this.namedState()].filter(([, tensor]) => tensor.requiresGrad));
  }

  /** The tensors that require no gradient, each once, by name: part of the state, and not trained. */
  namedBuffers(): Map<string, Tensor> {
    return new Map([...this.namedState()].filter(([, tensor]) => !tensor.requiresGrad));
  }

  /** This module and all parts of it, each once. */
  modules(): Module[] {
    return [...this.namedModules().values()];
  }

  /** The {@link modules} by name; that of this module is empty. */
  namedModules(): Map<string, Module> {
    return modulesIn(this);
  }

  /** Parameters and buffers by name, as views of their memory without history: what a file holds. */
  stateDict(): StateDict {
    return Object.fromEntries([...this.namedState()].map(([name, tensor]) => [name, detach(tensor)]));
  }

  /**
   * Copies values into parameters and buffers. All of it, or nothing: where something does not fit, nothing is changed.
   *
   * @param state tensors by name, such as those of {@link stateDict}. A tied tensor may come under any of its names
   * @param options `strict: false` leaves out what is missing here or there; shapes and dtypes must fit all the same
   * @returns the names that were missing, and those that were not expected: none unless `strict` is false
   *
   * @throws {StateDictError} that lists what is missing, what is not expected, and what has another shape or dtype.
   */
  loadStateDict(state: Readonly<StateDict>, options: LoadOptions = {}): LoadReport {
    const aliases = new Map<Tensor, string[]>();
    for (const { name, value } of tensorSlotsIn(this)) getOrMake(aliases, value, () => []).push(name);
    return loadInto(this.constructor.name, aliases, state, options);
  }

  /** Sets {@link training} here and in all parts. Returns the module. */
  train(mode = true): this {
    for (const module of this.modules()) module.training = mode;
    return this;
  }

  /** `train(false)`: dropout is off. */
  eval(): this {
    return this.train(false);
  }

  /**
   * Converts all parameters and buffers that are floats. They become new tensors, without gradients: make an optimiser afterwards.
   * Returns the module.
   *
   * @example
   * model.to("bfloat16");
   */
  to(dtype: FloatDType): this {
    const converted = new Map<Tensor, Tensor>();
    for (const { value, replace } of [...tensorSlotsIn(this)])
      if (isFloat(value.dtype)) replace(getOrMake(converted, value, () => convert(value, dtype)));
    return this;
  }

  /** Forgets all gradients. */
  zeroGrad(): void {
    for (const parameter of this.namedState().values()) parameter.grad = null;
  }

  /** A table of the layers that have parameters of their own: names, shapes, how many numbers and bytes. */
  summary(): string {
    return formatSummary(this);
  }

  /** @internal What stands between the parentheses when the module is printed. */
  details(): string {
    return "";
  }

  /** The tree of modules. */
  toString(): string {
    const parts = [...slotsOf(this)].filter(({ value }) => value instanceof Module);
    if (parts.length === 0) return `${this.constructor.name}(${this.details()})`;
    const lines = parts.map(({ name, value }) => `(${name}): ${value}`.replaceAll("\n", "\n  "));
    const details = this.details();
    return [`${this.constructor.name}(`, ...(details ? [details] : []), ...lines].join("\n  ").concat("\n)");
  }

  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return this.toString();
  }

  private namedState(): Map<string, Tensor> {
    const named = new Map<string, Tensor>();
    const seen = new Set<Tensor>();
    for (const { name, value } of tensorSlotsIn(this)) {
      if (!seen.has(value)) named.set(name, value);
      seen.add(value);
    }
    return named;
  }
}

function convert(tensor: Tensor, dtype: FloatDType): Tensor {
  if (tensor.dtype === dtype) return tensor;
  const converted: Tensor = keep(noGrad(() => toDType(tensor, dtype)));
  converted.requiresGrad = tensor.requiresGrad;
  return converted;
}

/** @internal Runs `body` with a module as {@link Module.eval} sets it, and puts every part back as it was. */
export function inEvaluation<Result>(module: Module, body: () => Result): Result {
  const training = module.modules().filter((part) => part.training);
  for (const part of training) part.training = false;
  try {
    return body();
  } finally {
    for (const part of training) part.training = true;
  }
}
