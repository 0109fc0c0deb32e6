import { ArgumentError } from "../../core/errors.ts";
import { someNumber } from "../../core/kinds.ts";
import { operand, unlisted } from "../../core/parameters.ts";

/** @internal A property of an object, or an element of an array or map in such a property. */
export interface Slot<Value = unknown> {
  /** The path from the object, separated by dots: `blocks.0`. */
  readonly name: string;
  readonly value: Value;
  /** Sets the value of this slot. */
  replace(value: Value): void;
}

/**
 * @internal Yields the values of an object's own properties, in the order of declaration. Arrays and maps are traversed
 * at any depth: their elements are slots, but they themselves are not.
 */
export function* slotsOf(owner: object): Generator<Slot> {
  for (const [name, value] of Object.entries(owner))
    yield* slotsIn(name, value, (next) => void Reflect.set(owner, name, next));
}

function* slotsIn(name: string, value: unknown, replace: (next: unknown) => void): Generator<Slot> {
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries())
      yield* slotsIn(`${name}.${index}`, item, (next) => void value.splice(index, 1, next));
  } else if (value instanceof Map) {
    for (const [key, item] of value)
      yield* slotsIn(`${name}.${String(key)}`, item, (next) => void value.set(key, next));
  } else yield { name, value, replace };
}

/** Deeper than any model. It keeps recursion over cyclic or mistaken nesting from overflowing the stack. */
const MOST_DEPTH = 1000;

/** @internal Checks the depth of nested modules. @throws {ArgumentError} `tooDeep` for modules nested too deeply. */
export function checkDepth(depth: number): void {
  if (depth > MOST_DEPTH)
    throw new ArgumentError("Module", "tooDeep", `expected modules nested at most ${MOST_DEPTH} deep`);
}

/** @internal Reads an index in a list of modules or parameters. @throws {ArgumentError} `invalidOperand` */
export const readIndex = (operation: string, index: unknown): number =>
  unlisted(operation, { index: operand(someNumber) })([index]).index;

/** @internal Joins the path of a slot to a prefix. */
export const joinPath = (prefix: string, name: string): string => (prefix ? `${prefix}.${name}` : name);
