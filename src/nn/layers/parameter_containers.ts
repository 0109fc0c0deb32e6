/** Modules that hold parameters by index and by name. */
import { noGrad } from "../../autograd/modes.ts";
import { describeValue } from "../../core/describe.ts";
import { ArgumentError, DTypeError } from "../../core/errors.ts";
import { isArray } from "../../core/kinds.ts";
import { operand, optionalOperand, parameters, unlisted } from "../../core/parameters.ts";
import { detach } from "../../ops/gradient/backward.ts";
import { hasGradients } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { keep } from "../../tensor/tidy.ts";
import { checkName } from "./containers.ts";
import { Module } from "./module.ts";
import { readIndex } from "./slots.ts";

/** Returns a leaf that requires gradients as it is, and for any other tensor a new parameter that shares its memory. */
function parameterOf(operation: string, value: unknown): Tensor {
  const { x } = unlisted(operation, { x: operand(aTensor) })([value]);
  if (!hasGradients(x.dtype))
    throw new DTypeError(operation, "notAFloat", `expected tensors of floats or complex numbers, got ${x.describe()}`);
  if (x.requiresGrad && x.isLeaf) return x;
  const parameter: Tensor = keep(noGrad(() => detach(x)));
  parameter.requiresGrad = true;
  return parameter;
}

const isParameter = (value: unknown): value is Tensor => value instanceof Tensor;

/**
 * A list of parameters, named by index: `0`, `1`. Tensors become parameters that share their memory. It has no
 * `forward`: the module that holds the list uses its members. A property that is a plain array of parameters works in
 * the same way.
 *
 * @example
 * const scales = new ParameterList([ones([4]), ones([4])]);
 * scales.items.reduce((x, scale) => mul(x, scale), randn([2, 4]));
 *
 * @throws {ArgumentError} for anything but tensors.
 * @throws {DTypeError} for tensors that are neither float nor complex.
 */
export class ParameterList extends Module<never[], never> {
  /** A copy of the list of parameters. */
  get items(): Tensor[] {
    return Object.values(this).filter(isParameter);
  }

  constructor(tensors?: readonly Tensor[]);
  constructor(...values: unknown[]) {
    super();
    for (const tensor of parameterListParameters(values).tensors ?? []) this.append(tensor as Tensor);
  }

  /** The number of parameters. */
  get length(): number {
    return this.items.length;
  }

  /** Returns the parameter at an index; negative counts from the end. Undefined if the index is out of range. */
  at(index: number): Tensor | undefined {
    return this.items.at(readIndex("ParameterList.at", index));
  }

  /** Appends a parameter. Returns the list. */
  append(tensor: Tensor): this {
    Reflect.set(this, this.length, parameterOf("ParameterList", tensor));
    return this;
  }

  [Symbol.iterator](): IterableIterator<Tensor> {
    return this.items.values();
  }

  /** @throws {ArgumentError} always: a list has no forward. */
  override forward(): never {
    throw new ArgumentError("ParameterList", "noForward", "ParameterList has no forward; use its members");
  }
}
const parameterListParameters = parameters("ParameterList", {
  tensors: optionalOperand({
    expected: "an array of tensors",
    parse: (value) => (isArray(value) ? [...value] : undefined),
  }),
});

/**
 * A dictionary of parameters. Tensors become parameters that share their memory. It has no `forward`: the module that
 * holds the dictionary uses its members.
 *
 * @example
 * const affine = new ParameterDict({ scale: ones([4]), shift: zeros([4]) });
 * add(mul(randn([2, 4]), affine.get("scale")), affine.get("shift"));
 *
 * @throws {ArgumentError} for anything but tensors, and for names that are empty, contain a dot or are properties of a
 * module. @throws {DTypeError} for tensors that are neither float nor complex.
 */
export class ParameterDict extends Module<never[], never> {
  constructor(tensors?: Readonly<Record<string, Tensor>>);
  constructor(...values: unknown[]) {
    super();
    const { tensors } = parameterDictParameters(values);
    for (const [name, tensor] of Object.entries(tensors ?? {})) this.set(name, tensor as Tensor);
  }

  /** The names, in the order in which they were first set. */
  keys(): string[] {
    return Object.entries(this).flatMap(([name, value]) => (isParameter(value) ? [name] : []));
  }

  /** Whether there is a parameter with this name. */
  has(name: string): boolean {
    return this.keys().includes(name);
  }

  /** Returns the parameter with a name. @throws {ArgumentError} `noSuchParameter`, listing the names. */
  get(name: string): Tensor {
    const value: unknown = this.has(name) ? Reflect.get(this, name) : undefined;
    if (isParameter(value)) return value;
    throw new ArgumentError(
      "ParameterDict.get",
      "noSuchParameter",
      `expected one of ${this.keys().join(", ") || "no parameters"}, got ${describeValue(name)}`,
    );
  }

  /** Sets the parameter with a name. Returns the dictionary. */
  set(name: string, tensor: Tensor): this {
    const parameter = parameterOf("ParameterDict", tensor);
    checkName("ParameterDict.set", name, (taken) => taken in this && !this.has(taken));
    Reflect.set(this, name, parameter);
    return this;
  }

  /** @throws {ArgumentError} always: a dictionary has no forward. */
  override forward(): never {
    throw new ArgumentError("ParameterDict", "noForward", "ParameterDict has no forward; use its members");
  }
}
const parameterDictParameters = parameters("ParameterDict", {
  tensors: optionalOperand({
    expected: "an object of tensors by name",
    parse: (value) => (typeof value === "object" && value !== null && !isArray(value) ? { ...value } : undefined),
  }),
});
