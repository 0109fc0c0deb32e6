import type { Tensor } from "../tensor/tensor.ts";
import { Module } from "./module.ts";

/**
 * Modules one after the other, each given the result of the one before. Their names are their numbers: `0.weight`.
 *
 * (A list of modules that are called otherwise needs no class: an array in a property is looked into.)
 *
 * @example
 * new Sequential(new Linear(784, 128), new Dropout(0.1), new Linear(128, 10)).forward(x);
 */
export class Sequential extends Module<[x: Tensor], Tensor> {
  readonly #modules: readonly Module<[x: Tensor], Tensor>[];

  constructor(...modules: readonly Module<[x: Tensor], Tensor>[]) {
    super();
    this.#modules = modules;
    Object.assign(this, modules);
  }

  override forward(x: Tensor): Tensor {
    return this.#modules.reduce((result, module) => module.forward(result), x);
  }
}
