import { aFunction } from "../../core/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkModule } from "./containers.ts";
import { Module } from "./module.ts";

/** A step of {@link Sequential}: a module, or a function of a tensor. */
export type Step = Module<[x: Tensor], Tensor> | ((x: Tensor) => Tensor);

/**
 * Chains modules and functions: each gets the output of the one before. Modules are named by index: `0.weight`.
 *
 * Modules that are not a chain need no class: a property can be an array of modules.
 *
 * @example
 * new Sequential(new Linear(784, 128), relu, new Dropout(0.1), new Linear(128, 10)).forward(x);
 */
export class Sequential extends Module<[x: Tensor], Tensor> {
  readonly #count: number;

  constructor(...modules: readonly Step[]) {
    super();
    for (const [at, module] of modules.entries())
      if (!isFunction(module)) checkModule("Sequential", module, `as argument ${at + 1}`);
    this.#count = modules.length;
    Object.assign(this, modules);
  }

  /** Applies the steps one after the other. */
  override forward(x: Tensor): Tensor {
    let result = x;
    // read by index in each call, because quantizeModel and others replace modules
    for (let at = 0; at < this.#count; at++) {
      const step = Reflect.get(this, at) as Step;
      result = isFunction(step) ? step(result) : step.forward(result);
    }
    return result;
  }
}

const isFunction = (step: Step): step is (x: Tensor) => Tensor =>
  aFunction().parse(step, "Sequential", "step") !== undefined;
