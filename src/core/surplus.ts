/**
 * Makes methods reject surplus arguments, as functions do: {@link refuseSurplus} adds a check of the argument count to
 * each method of a class. The maximum count is parsed from the method's source when a call first passes more arguments
 * than the method has parameters before the first default; other calls only compare two numbers.
 */
import { describeValue } from "./describe.ts";
import { ArgumentError } from "./errors.ts";
import { counted } from "./plural.ts";

type Class = abstract new (...values: never) => object;
type Method = (...values: readonly unknown[]) => unknown;

/**
 * Methods that JavaScript calls with additional arguments, and methods that base classes call with arguments that not
 * every subclass uses: embeddings of language models, rules and state of optimizers, and derivatives of transforms.
 */
const calledByOthers: ReadonlySet<string> = new Set([
  ...["constructor", "toJSON", "next", "return", "throw", "embed", "ruleOf", "coefficientsOf"],
  ...["stateNames", "stateShape", "logDerivative"],
]);
const isCalledByOthers = (name: string): boolean => calledByOthers.has(name);
/** Static predicates: `tensors.filter(Tensor.isTensor)` also passes an index. */
const isPredicate = (name: string): boolean => name.startsWith("is") && name[2] >= "A" && name[2] <= "Z";
/** Classes whose methods already have the check. */
const checked = new WeakSet<object>();

/**
 * Makes the methods of classes and their base classes reject surplus arguments with `tooManyArguments`. Values that are
 * not classes are skipped.
 */
export function refuseSurplus(values: Iterable<unknown>): void {
  for (const given of values)
    for (let Each = given; isClass(Each); Each = Object.getPrototypeOf(Each)) {
      if (checked.has(Each)) break;
      checked.add(Each);
      checkMethods(Each.name, Each.prototype, isCalledByOthers);
      checkMethods(Each.name, Each, isPredicate);
    }
}

/**
 * Whether a value is a class; false for JavaScript's built-in classes. Few other functions have a read-only prototype.
 */
const isClass = (value: unknown): value is Class =>
  typeof value === "function" &&
  Object.getOwnPropertyDescriptor(value, "prototype")?.writable === false &&
  textOf(value).startsWith("class");

function checkMethods(className: string, holder: object, isUnchecked: (name: string) => boolean): void {
  for (const name of Object.getOwnPropertyNames(holder)) {
    const { value, writable } = Object.getOwnPropertyDescriptor(holder, name)!;
    if (typeof value === "function" && writable && !isUnchecked(name) && !("prototype" in value && isClass(value)))
      Reflect.set(holder, name, checkedMethod(className, name, value));
  }
}

function checkedMethod(className: string, name: string, method: Method): Method {
  let most = method.length;
  let isRead = false;
  const value = function (this: unknown, ...values: readonly unknown[]): unknown {
    if (values.length > most && !isRead) {
      most = parametersOf(method).reduce((count, parameter) => (parameter.startsWith("...") ? Infinity : count + 1), 0);
      isRead = true;
    }
    const surplus = values.length > most ? surplusOf(`${className}.${name}`, parametersOf(method), values) : undefined;
    if (surplus === undefined) return Reflect.apply(method, this, values);
    if (isAsynchronous(method)) return Promise.reject(surplus);
    throw surplus;
  };
  Object.defineProperty(value, "name", { value: name });
  if (method.length > 0) Object.defineProperty(value, "length", { value: method.length });
  return value;
}

/**
 * Returns the error of a call; undefined if there are no surplus arguments, or if all of them are undefined, as
 * forwarded optional ones are.
 *
 * @param parameters such as `["x", "mode = true"]`
 */
export function surplusOf(
  operation: string,
  parameters: readonly string[],
  values: readonly unknown[],
): ArgumentError | undefined {
  const most = parameters.length;
  if (values.length <= most) return undefined;
  const at = values.findIndex((value, index) => index >= most && value !== undefined);
  if (at < 0) return undefined;
  const expected = most === 0 ? "no arguments" : `at most ${counted(most, "argument")}`;
  const got = `got ${values.length}, with ${describeValue(values[at])} as argument ${at + 1}`;
  const names = parameters.map((parameter) => parameter.replace(/^(\w+)\s*=.*$/s, "$1?"));
  const form = `${operation}(${names.join(", ")})`;
  return new ArgumentError(operation, "tooManyArguments", `expected ${expected}, ${got}. Usage: ${form}`);
}

const isAsynchronous = (method: Method): boolean => textOf(method).startsWith("async");

const textOf = (method: object): string => Function.prototype.toString.call(method);

/** Parses the parameters in the source of a method: `["x", "mode = true"]`. */
function parametersOf(method: Method): string[] {
  const text = textOf(method);
  const found: string[] = [];
  let depth = 0;
  let start = text.indexOf("(") + 1;
  for (let at = start; at < text.length; at++) {
    const letter = text[at];
    if ("([{".includes(letter)) depth++;
    else if (letter === '"') at = text.indexOf('"', at + 1);
    else if ((letter === "," || letter === ")") && depth === 0) {
      found.push(text.slice(start, at).trim());
      if (letter === ")") break;
      start = at + 1;
    } else if (")]}".includes(letter)) depth--;
  }
  return found.filter(Boolean);
}
