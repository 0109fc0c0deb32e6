import { describeValue } from "../core/describe.ts";
import { ArgumentError } from "../core/errors.ts";
import { reading } from "../core/parameters.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { Module } from "./module.ts";

/**
 * A chain of modules: each gets the output of the one before. They are named by index: `0.weight`.
 *
 * A list of modules that is not a chain needs no class: a property can be an array of modules.
 *
 * @example
 * new Sequential(new Linear(784, 128), new Dropout(0.1), new Linear(128, 10)).forward(x);
 */
export class Sequential extends Module<[x: Tensor], Tensor> {
  readonly #count: number;

  constructor(...modules: readonly Module<[x: Tensor], Tensor>[]) {
    super();
    for (const [at, module] of modules.entries())
      if (!reading("Sequential", () => module instanceof Module))
        throw new ArgumentError(
          "Sequential",
          "notAModule",
          `expected modules, got ${describeValue(module)} as argument ${at + 1}`,
        );
    this.#count = modules.length;
    Object.assign(this, modules);
  }

  override forward(x: Tensor): Tensor {
    let result = x;
    // read by name: a module may have been replaced, as by quantizeModel
    for (let at = 0; at < this.#count; at++)
      result = (Reflect.get(this, at) as Module<[x: Tensor], Tensor>).forward(result);
    return result;
  }
}
