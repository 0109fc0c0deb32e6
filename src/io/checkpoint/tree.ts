import { ArgumentError } from "../../core/errors.ts";
import { listed } from "../../core/kinds.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { isJsonObject, type Json } from "../json.ts";

/** The contents of a checkpoint: plain values and tensors in nested arrays and plain objects. */
export type StateTree =
  | null
  | boolean
  | number
  | bigint
  | string
  | Tensor
  | readonly StateTree[]
  | { readonly [key: string]: StateTree };

/** @internal A tree in two parts: tensors by name, and everything else as JSON that refers to them. */
export interface FlatTree {
  readonly json: Json;
  readonly tensors: Record<string, Tensor>;
}

/** Deeper trees are rejected on saving and loading, because walking them would exhaust the stack. */
const MAX_TREE_DEPTH = 1000;
/**
 * The nesting limit in a file: one more level for the name of the tree, and one for a tensor or bigint, which is an
 * object.
 */
export const MAX_STATE_DEPTH: number = MAX_TREE_DEPTH + 2;

const SAVEABLE = "a number, string, boolean, bigint, null, tensor, array or plain object";

/**
 * @internal Flattens a tree. Values that JSON can't represent become an object with one key: `{ "$tensor": name }`,
 * `{ "$bigint": digits }`, `{ "$number": "NaN" }`. A user's key that starts with $ is escaped by another $.
 */
export function flattenTree(operation: string, name: string, value: unknown): FlatTree {
  const tensors = new Map<Tensor, string>();
  const visit = (item: unknown, path: string, depth: number): Json => {
    if (item === null || typeof item === "boolean" || typeof item === "string") return item;
    if (typeof item === "number") return encodeNumber(item);
    if (typeof item === "bigint") return { $bigint: String(item) };
    if (item instanceof Tensor) return { $tensor: nameOf(tensors, item, path) };
    if (depth >= MAX_TREE_DEPTH) throw tooDeep(operation, name);
    const below = depth + 1;
    if (Array.isArray(item)) {
      const list = listed(item);
      if (list === undefined)
        throw new ArgumentError(
          operation,
          "notSaveable",
          `${path} has ${item.length} elements, too many to save as JSON; save a tensor instead`,
        );
      return list.map((each, index) => visit(each, `${path}.${index}`, below));
    }
    if (isPlainObject(item)) return mapValues(item, escaped, (each, key) => visit(each, `${path}.${key}`, below));
    throw new ArgumentError(operation, "notSaveable", `expected ${path} to be ${SAVEABLE}, got ${describe(item)}`);
  };
  const json = visit(value, name, 0);
  return { json, tensors: Object.fromEntries([...tensors].map(([tensor, key]) => [key, tensor])) };
}

function tooDeep(operation: string, name: string): ArgumentError {
  const message = `expected ${name} to be nested at most ${MAX_TREE_DEPTH} deep, got more; does it contain itself?`;
  return new ArgumentError(operation, "notSaveable", message);
}

/** A tensor that occurs twice is saved once. */
function nameOf(tensors: Map<Tensor, string>, tensor: Tensor, path: string): string {
  const name = tensors.get(tensor) ?? path;
  tensors.set(tensor, name);
  return name;
}

const encodeNumber = (value: number): Json =>
  Number.isFinite(value) && !Object.is(value, -0) ? value : { $number: Object.is(value, -0) ? "-0" : String(value) };

const escaped = (key: string): string => (key.startsWith("$") ? `$${key}` : key);

function mapValues<Value, Result>(
  object: { readonly [key: string]: Value },
  rename: (key: string) => string,
  change: (value: Value, key: string) => Result,
): Record<string, Result> {
  const present = Object.entries(object).filter(([, value]) => value !== undefined);
  return Object.fromEntries(present.map(([key, value]) => [rename(key), change(value, key)]));
}

function isPlainObject(value: unknown): value is { readonly [key: string]: unknown } {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

const describe = (value: unknown): string =>
  typeof value === "object"
    ? `a ${value?.constructor.name ?? "null"}`
    : value === undefined
      ? "undefined"
      : `a ${typeof value}`;

/**
 * @internal Undoes {@link flattenTree}.
 *
 * @param tensor returns the tensor of a name @param invalid creates the error for digits that are not a bigint
 */
export function unflattenTree(
  json: Json,
  tensor: (name: string) => Tensor,
  invalid: (digits: string) => Error,
): StateTree {
  if (Array.isArray(json)) return json.map((item: Json) => unflattenTree(item, tensor, invalid));
  if (!isJsonObject(json)) return json;
  const { $tensor: name, $bigint: digits, $number: number } = json;
  if (typeof name === "string") return tensor(name);
  if (typeof digits === "string" && !/^-?\d+$/.test(digits)) throw invalid(digits);
  if (typeof digits === "string") return BigInt(digits);
  if (typeof number === "string") return Number(number);
  return mapValues(
    json,
    (key) => (key.startsWith("$$") ? key.slice(1) : key),
    (item) => unflattenTree(item, tensor, invalid),
  );
}
