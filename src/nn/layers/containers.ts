/** Modules that hold other modules, and modules that reshape their input. */

import { describeValue } from "../../core/describe.ts";
import { ArgumentError } from "../../core/errors.ts";
import { isArray, someNumber } from "../../core/kinds.ts";
import {
  type Given,
  operand,
  optional,
  optionalOperand,
  parameters,
  reading,
  unlisted,
} from "../../core/parameters.ts";
import { flatten, unflatten } from "../../ops/view/flatten.ts";
import type { FloatDType } from "../../tensor/dtype.ts";
import { shapeList } from "../../tensor/kinds.ts";
import type { Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { Module } from "./module.ts";
import { propertiesOf, taking } from "./module_of.ts";
import { readIndex } from "./slots.ts";

/** @internal Checks that a value is a module. @throws {ArgumentError} `notAModule` */
export function checkModule(operation: string, module: unknown, where: string): void {
  if (reading(operation, () => module instanceof Module)) return;
  throw new ArgumentError(operation, "notAModule", `expected modules, got ${describeValue(module)} ${where}`);
}

/**
 * @internal Checks the name of a module. @throws {ArgumentError} `badName` for a name that is invalid or taken by a
 * property of the module.
 */
export function checkName(operation: string, name: unknown, isTaken: (name: string) => boolean): void {
  if (typeof name === "string" && name !== "" && !name.includes(".") && !isTaken(name)) return;
  throw new ArgumentError(
    operation,
    "badName",
    `expected a nonempty name without dots that is not a property of the module, got ${describeValue(name)}`,
  );
}

/**
 * Returns its input. Use it as a placeholder for an omitted layer.
 *
 * @example
 * new Identity().forward(x); // x
 */
export class Identity extends Module<[x: Tensor], Tensor> {
  constructor();
  constructor(...values: unknown[]) {
    super();
    unlisted("Identity", {})(values);
  }

  /** @param x any shape @returns x */
  override forward<D extends FloatDType>(x: Tensor<D>): Tensor<D>;
  override forward(x: Tensor): Tensor;
  override forward(x: Tensor): Tensor {
    return x;
  }
}

/** Options of {@link Flatten}. */
export interface FlattenOptions {
  /** The first axis. Default 1, which keeps the batch axis. */
  startDim?: number | undefined;
  /** The last axis. Default −1. */
  endDim?: number | undefined;
}

const axesToFlatten = taking<Given<FlattenOptions, ["startDim", "endDim"]>>({
  startDim: optional(someNumber, 1),
  endDim: optional(someNumber, -1),
});

/**
 * Applies `flatten`: merges several axes into one.
 *
 * @example
 * new Flatten().forward(zeros([32, 3, 4])); // [32, 12]
 */
export class Flatten extends propertiesOf("Flatten", { flatten }, axesToFlatten) {}

/**
 * Applies `unflatten`: splits one axis into several.
 *
 * @param dim the axis
 * @param sizes the sizes of the new axes; one of them may be −1
 *
 * @example
 * new Unflatten(1, [3, 4]).forward(zeros([32, 12])); // [32, 3, 4]
 */
export class Unflatten extends Module<[x: Tensor], Tensor> {
  readonly dim: number;
  readonly sizes: Shape;

  constructor(dim: number, sizes: Shape);
  constructor(...values: unknown[]) {
    super();
    const { dim, sizes } = unflattenParameters(values);
    this.dim = dim;
    this.sizes = Object.freeze([...sizes]);
  }

  /** @param x any shape; the product of `sizes` is the size of the axis `dim` @returns a view if possible */
  override forward<D extends FloatDType>(x: Tensor<D>): Tensor<D>;
  override forward(x: Tensor): Tensor;
  override forward(x: Tensor): Tensor {
    return unflatten(x, this.dim, this.sizes);
  }

  /** @internal */
  override details(): string {
    return `dim: ${this.dim}, sizes: [${this.sizes.join(", ")}]`;
  }
}
const unflattenParameters = parameters("Unflatten", { dim: operand(someNumber), sizes: operand(shapeList) });

/**
 * A list of modules, named by index: `0.weight`. It has no `forward`: the module that holds the list calls its members.
 * A property that is a plain array of modules works in the same way.
 *
 * @example
 * const layers = new ModuleList([new Linear(4, 4), new Linear(4, 4)]);
 * layers.items.reduce((x, layer) => layer.forward(x), randn([2, 4]));
 */
export class ModuleList<M extends Module = Module<[x: Tensor], Tensor>> extends Module<never[], never> {
  /** A copy of the list of modules. */
  get items(): M[] {
    return Object.values(this).filter((value) => value instanceof Module) as M[];
  }

  constructor(modules?: readonly M[]);
  constructor(...values: unknown[]) {
    super();
    const { modules } = moduleListParameters(values);
    for (const module of modules ?? []) this.append(module as M);
  }

  /** The number of modules. */
  get length(): number {
    return this.items.length;
  }

  /** Returns the module at an index; negative counts from the end. Undefined if the index is out of range. */
  at(index: number): M | undefined {
    return this.items.at(readIndex("ModuleList.at", index));
  }

  /** Appends a module. Returns the list. */
  append(module: M): this {
    checkModule("ModuleList.append", module, "to append");
    Reflect.set(this, this.length, module);
    return this;
  }

  [Symbol.iterator](): IterableIterator<M> {
    return this.items.values();
  }

  /** @throws {ArgumentError} always: a list has no forward. */
  override forward(): never {
    throw new ArgumentError("ModuleList", "noForward", "ModuleList has no forward; call its members");
  }
}
const moduleListParameters = parameters("ModuleList", {
  modules: optionalOperand({
    expected: "an array of modules",
    parse(value) {
      if (!isArray(value)) return undefined;
      for (const [at, module] of value.entries()) checkModule("ModuleList", module, `at ${at}`);
      return [...value];
    },
  }),
});

/**
 * A dictionary of modules: `encoder.weight`. It has no `forward`: the module that holds the dictionary calls its
 * members.
 *
 * @example
 * const heads = new ModuleDict({ price: new Linear(8, 1), kind: new Linear(8, 3) });
 * heads.get("kind").forward(randn([2, 8])); // [2, 3]
 */
export class ModuleDict<M extends Module = Module<[x: Tensor], Tensor>> extends Module<never[], never> {
  constructor(modules?: Readonly<Record<string, M>>);
  constructor(...values: unknown[]) {
    super();
    const { modules } = moduleDictParameters(values);
    for (const [name, module] of Object.entries(modules ?? {})) this.set(name, module as M);
  }

  /** The names, in the order in which they were first set. */
  keys(): string[] {
    return Object.entries(this).flatMap(([name, value]) => (value instanceof Module ? [name] : []));
  }

  /** Whether there is a module with this name. */
  has(name: string): boolean {
    return this.keys().includes(name);
  }

  /** Returns the module with a name. @throws {ArgumentError} `noSuchModule`, listing the names. */
  get(name: string): M {
    if (this.has(name)) return Reflect.get(this, name) as M;
    throw new ArgumentError(
      "ModuleDict.get",
      "noSuchModule",
      `expected one of ${this.keys().join(", ") || "no modules"}, got ${describeValue(name)}`,
    );
  }

  /** Sets the module with a name. Returns the dictionary. */
  set(name: string, module: M): this {
    checkModule("ModuleDict.set", module, `as ${describeValue(name)}`);
    checkName("ModuleDict.set", name, (taken) => taken in this && !this.has(taken));
    Reflect.set(this, name, module);
    return this;
  }

  /** @throws {ArgumentError} always: a dictionary has no forward. */
  override forward(): never {
    throw new ArgumentError("ModuleDict", "noForward", "ModuleDict has no forward; call a member");
  }
}
const moduleDictParameters = parameters("ModuleDict", {
  modules: optionalOperand({
    expected: "an object of modules by name",
    parse(value) {
      if (typeof value !== "object" || value === null || isArray(value)) return undefined;
      for (const [name, module] of Object.entries(value)) checkModule("ModuleDict", module, `as ${name}`);
      return { ...value };
    },
  }),
});
