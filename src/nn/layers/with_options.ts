import type { Tensor } from "../../tensor/tensor.ts";
import { Module } from "./module.ts";

/** @internal What is printed of options: those that are given, and are no functions or objects of their own. */
export const listed = (options: object): string =>
  Object.entries(options)
    .filter(([, value]) => value !== undefined && (typeof value !== "object" || Array.isArray(value)))
    .filter(([, value]) => typeof value !== "function")
    .map(([name, value]) => `${name}: ${Array.isArray(value) ? `[${value.join(", ")}]` : value}`)
    .join(", ");

/** @internal A module without state that calls an operation with the options that it was given. */
export abstract class ModuleWithOptions<
  Arguments extends readonly unknown[],
  Options extends object,
  Result = Tensor,
> extends Module<Arguments, Result> {
  /** What the operation is called with. */
  readonly options: Readonly<Options>;

  constructor(options: Options) {
    super();
    this.options = Object.freeze(options);
  }

  /** @internal */
  override details(): string {
    return listed(this.options);
  }
}
