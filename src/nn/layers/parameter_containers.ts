/** Modules that hold parameters by index and by name. */
import { noGrad } from "../../autograd/modes.ts";
import { describeValue } from "../../core/describe.ts";
import { ArgumentError, DTypeError } from "../../core/errors.ts";
import { isArray } from "../../core/kinds.ts";
import { operand, optionalOperand, parameters, unlisted } from "../../core/parameters.ts";
import { detach } from "../../ops/gradient/backward.ts";
import { isFloat } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { keep } from "../../tensor/tidy.ts";
import { checkName } from "./containers.ts";
import { Module } from "./module.ts";
import { readIndex } from "./slots.ts";

/** A parameter: a leaf that requires gradients as it is, and of any other tensor a new one of the same memory. */
function parameterOf(operation: string, value: unknown): Tensor {
  const { x } = unlisted(operation, { x: operand(aTensor) })([value]);
  if (!isFloat(x.dtype))
    throw new DTypeError(operation, "notAFloat", `expected tensors of floats, got ${x.describe()}`);
  if (x.requiresGrad && x.isLeaf) return x;
  const own: Tensor = keep(noGrad(() => detach(x)));
  own.requiresGrad = true;
  return own;
}

const isParameter = (value: unknown): value is Tensor => value instanceof Tensor;

/**
 * Parameters in a list, named by index: `0`, `1`. Tensors become parameters that share their memory. What is done with
 * them, the module that has the list says. A property that is a plain array of parameters does the same.
 *
 * @example
 * const scales = new ParameterList([ones([4]), ones([4])]);
 * scales.items.reduce((x, scale) => mul(x, scale), randn([2, 4]));
 *
 * @throws {ArgumentError} for anything but tensors. @throws {DTypeError} for tensors of anything but floats.
 */
export class ParameterList extends Module<never[], never> {
  /** The parameters: a copy of the list. */
  get items(): Tensor[] {
    return Object.values(this).filter(isParameter);
  }

  constructor(tensors?: readonly Tensor[]);
  constructor(...values: unknown[]) {
    super();
    for (const tensor of parameterListParameters(values).tensors ?? []) this.append(tensor as Tensor);
  }

  /** How many there are. */
  get length(): number {
    return this.items.length;
  }

  /** The parameter at an index, a negative one counted from the end; undefined where there is none. */
  at(index: number): Tensor | undefined {
    return this.items.at(readIndex("ParameterList.at", index));
  }

  /** Adds a parameter at the end. Returns the list. */
  append(tensor: Tensor): this {
    Reflect.set(this, this.length, parameterOf("ParameterList", tensor));
    return this;
  }

  [Symbol.iterator](): IterableIterator<Tensor> {
    return this.items.values();
  }

  /** @throws {ArgumentError} always: a list computes nothing. */
  override forward(): never {
    throw new ArgumentError("ParameterList", "noForward", "expected no call: a list of parameters computes nothing");
  }
}
const parameterListParameters = parameters("ParameterList", {
  tensors: optionalOperand({
    expected: "an array of tensors",
    parse: (value) => (isArray(value) ? [...value] : undefined),
  }),
});

/**
 * Parameters by name. Tensors become parameters that share their memory. What is done with them, the module that has
 * them says.
 *
 * @example
 * const own = new ParameterDict({ scale: ones([4]), shift: zeros([4]) });
 * add(mul(randn([2, 4]), own.get("scale")), own.get("shift"));
 *
 * @throws {ArgumentError} for anything but tensors, and names that are empty, have a dot or are a module's own. @throws
 * {DTypeError} for tensors of anything but floats.
 */
export class ParameterDict extends Module<never[], never> {
  constructor(tensors?: Readonly<Record<string, Tensor>>);
  constructor(...values: unknown[]) {
    super();
    const { tensors } = parameterDictParameters(values);
    for (const [name, tensor] of Object.entries(tensors ?? {})) this.set(name, tensor as Tensor);
  }

  /** The names, in the order in which they were set. */
  keys(): string[] {
    return Object.entries(this).flatMap(([name, value]) => (isParameter(value) ? [name] : []));
  }

  /** Whether there is a parameter of this name. */
  has(name: string): boolean {
    return this.keys().includes(name);
  }

  /** @throws {ArgumentError} `noSuchParameter`, with the names that there are. */
  get(name: string): Tensor {
    if (this.has(name)) return Reflect.get(this, name) as Tensor;
    throw new ArgumentError(
      "ParameterDict.get",
      "noSuchParameter",
      `expected one of ${this.keys().join(", ") || "no parameters"}, got ${describeValue(name)}`,
    );
  }

  /** Adds a parameter, or replaces the one of this name. Returns the dictionary. */
  set(name: string, tensor: Tensor): this {
    const own = parameterOf("ParameterDict", tensor);
    checkName("ParameterDict.set", name, (taken) => taken in this && !this.has(taken));
    Reflect.set(this, name, own);
    return this;
  }

  /** @throws {ArgumentError} always: a dictionary computes nothing. */
  override forward(): never {
    throw new ArgumentError("ParameterDict", "noForward", "expected no call: parameters compute nothing");
  }
}
const parameterDictParameters = parameters("ParameterDict", {
  tensors: optionalOperand({
    expected: "an object of tensors by name",
    parse: (value) => (typeof value === "object" && value !== null && !isArray(value) ? { ...value } : undefined),
  }),
});
