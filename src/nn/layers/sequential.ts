import { aFunction } from "../../core/kinds.ts";
import type { FloatDType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkModule } from "./containers.ts";
import { Module } from "./module.ts";

/** A step of {@link Sequential}: a module, or a function of a tensor. */
export type Step = Module<[x: Tensor], Tensor> | ((x: Tensor) => Tensor);

/** A step that keeps the dtype of floats, such as `new ReLU()`. */
interface Keeping {
  forward<D extends FloatDType>(x: Tensor<D>): Tensor<D>;
}

/** The result type of such a step. Those with weights, such as convolutions, accept floats only. */
type Kept<S, X extends Tensor> =
  X extends Tensor<FloatDType> ? X : S extends { readonly weight: Tensor | null } ? Tensor<FloatDType> : Tensor;

/**
 * The result type of a module with input X. Layers have two overloads, of which only the first knows the dtype: it
 * accepts any tensor (`Linear`), or keeps the dtype of floats. Nothing is inferred for it if there is one signature.
 */
type AfterModule<S extends Module<[x: Tensor], Tensor>, X extends Tensor> = S["forward"] extends {
  (x: infer Taken): infer First;
  (x: Tensor): unknown;
}
  ? unknown extends First
    ? S extends Keeping
      ? Kept<S, X>
      : ReturnType<S["forward"]>
    : Tensor extends Taken
      ? Extract<First, Tensor>
      : Kept<S, X>
  : Tensor;

/** The result type of a step with input X. Operations such as `relu` keep its dtype. */
type After<S, X extends Tensor> = S extends { readonly method: "same" }
  ? X
  : S extends Module<[x: Tensor], Tensor>
    ? AfterModule<S, X>
    : S extends (x: Tensor) => Tensor
      ? ReturnType<S>
      : Tensor;

/** The result type of all steps, applied in order. If the number of steps is unknown, the dtype is unknown too. */
type ResultOf<Steps extends readonly Step[], X extends Tensor = Tensor> = Steps extends readonly [
  infer First,
  ...infer Others extends readonly Step[],
]
  ? ResultOf<Others, After<First, X>>
  : Steps extends readonly []
    ? X
    : Tensor;

/**
 * Chains modules and functions: each gets the output of the one before. Modules are named by index: `0.weight`.
 *
 * Modules that are not a chain need no class: a property can be an array of modules.
 *
 * @example
 * new Sequential(new Linear(784, 128), relu, new Dropout(0.1), new Linear(128, 10)).forward(x);
 */
export class Sequential<Steps extends readonly Step[] = readonly Step[]> extends Module<[x: Tensor], ResultOf<Steps>> {
  readonly #count: number;

  constructor(...modules: Steps) {
    super();
    for (const [at, module] of modules.entries())
      if (!isFunction(module)) checkModule("Sequential", module, `as argument ${at + 1}`);
    this.#count = modules.length;
    Object.assign(this, modules);
  }

  /** Applies the steps one after the other. */
  override forward(x: Tensor): ResultOf<Steps> {
    let result = x;
    // read by index in each call, because quantizeModel and others replace modules
    for (let at = 0; at < this.#count; at++) {
      const step = Reflect.get(this, at) as Step;
      result = isFunction(step) ? step(result) : step.forward(result);
    }
    return result as ResultOf<Steps>;
  }
}

const isFunction = (step: Step): step is (x: Tensor) => Tensor =>
  aFunction().parse(step, "Sequential", "step") !== undefined;
