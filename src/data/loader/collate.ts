/** Combines items into a batch. */
import { describeValue } from "../../core/describe.ts";
import { DataError } from "../../core/errors.ts";
import { listOf } from "../../core/kinds.ts";
import { expectNothing, reading } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import { type DTypeOfArray, type DTypeOfValue, type TensorArray, tensor } from "../../ops/creation/tensor.ts";
import { stack } from "../../ops/join/cat.ts";
import { Tensor } from "../../tensor/tensor.ts";

/** The type of a batch of items. */
export type Collated<Item> =
  Item extends Tensor<infer D>
    ? Tensor<D>
    : Item extends number | bigint | boolean
      ? Tensor<DTypeOfValue<Item>>
      : Item extends TensorArray
        ? Tensor<DTypeOfArray<Item>>
        : Item extends string
          ? string[]
          : Item extends readonly unknown[]
            ? { -readonly [At in keyof Item]: Collated<Item[At]> }
            : Item extends object
              ? { [Name in keyof Item]: Collated<Item[Name]> }
              : unknown;

/**
 * Combines items of the same structure into a batch. Tensors are stacked. Numbers (float32), bigints (int64), booleans
 * and typed arrays become tensors whose first axis is the item. Strings become a list. Lists and objects are combined
 * part by part.
 *
 * @example
 * data.collate([{ x: tensor([1, 2]), y: 0n }, { x: tensor([3, 4]), y: 1n }]); // { x: [2, 2], y: int64 [2] }
 *
 * @throws {DataError} `itemsDiffer`, `notCollatable`, naming the part; `noItems`.
 */
export function collate<Item>(items: readonly Item[]): Collated<Item>;
export function collate(items: readonly unknown[], ...others: unknown[]): unknown {
  expectNothing("collate", others);
  return reading("collate", () => {
    const list = anyItems.parse(items, "collate", "items");
    if (list !== undefined && list.length > 0) return collated(list, "item");
    throw new DataError("collate", "noItems", `expected a list of items, got ${describeValue(items)}`);
  });
}

/** An array with every element, copied. */
const anyItems = listOf<unknown>({ expected: "an item", parse: (value) => value }, "a list of items");

function collated(items: readonly unknown[], path: string): unknown {
  const kinds = new Set(items.map(kindOf));
  const [kind] = kinds;
  if (kinds.size > 1)
    throw new DataError(
      "collate",
      "itemsDiffer",
      `expected ${path} to have one type in a batch, got ${[...kinds].join(", ")}`,
    );
  if (kind === "tensor") return ofTensors(items as readonly Tensor[], path);
  if (kind === "number" || kind === "bigint" || kind === "boolean") return tensor(items as number[]);
  if (kind === "string") return [...items];
  if (kind === "list") return ofLists(items as readonly (readonly unknown[])[], path);
  if (kind === "object") return ofObjects(items as readonly object[], path);
  if (kind !== "other")
    return ofTensors(
      (items as readonly Float32Array[]).map((item) => tensor(item)),
      path,
    );
  throw new DataError(
    "collate",
    "notCollatable",
    `expected ${path} to be a tensor, a number, a string, or a list or an object of them, got ` +
      `${describeValue(items[0])}; pass a custom collate function`,
  );
}

/** The kind of an item; for a typed array, the name of its class. */
function kindOf(item: unknown): string {
  if (Tensor.isTensor(item)) return "tensor";
  if (ArrayBuffer.isView(item) && !(item instanceof DataView)) return item.constructor.name;
  if (Array.isArray(item)) return "list";
  if (typeof item !== "object")
    return ["number", "bigint", "boolean", "string"].includes(typeof item) ? typeof item : "other";
  const isPlain = item !== null && [Object.prototype, null].includes(Object.getPrototypeOf(item));
  return isPlain ? "object" : "other";
}

function ofTensors(items: readonly Tensor[], path: string): Tensor {
  const [first] = tupleOf(items, 1);
  const other = items.find(({ shape, dtype }) => shape.join() !== first.shape.join() || dtype !== first.dtype);
  if (other === undefined) return stack(items);
  const got = `${first.describe()} and ${other.describe()}`;
  throw new DataError("collate", "itemsDiffer", `expected ${path} to have one shape and dtype in a batch, got ${got}`);
}

function ofLists(items: readonly (readonly unknown[])[], path: string): unknown[] {
  const [{ length }] = tupleOf(items, 1);
  const other = items.find((item) => item.length !== length);
  if (other === undefined)
    return Array.from({ length }, (_, at) =>
      collated(
        items.map((item) => item[at]),
        `${path}[${at}]`,
      ),
    );
  const got = `${length} and ${other.length}`;
  throw new DataError("collate", "itemsDiffer", `expected ${path} to have one length in a batch, got ${got}`);
}

function ofObjects(items: readonly object[], path: string): Record<string, unknown> {
  const names = Object.keys(items[0]);
  const other = items.find((item) => Object.keys(item).toSorted().join("\0") !== names.toSorted().join("\0"));
  if (other !== undefined)
    throw new DataError(
      "collate",
      "itemsDiffer",
      `expected ${path} to have the same names in a batch, got ${names.join(", ")} and ` +
        Object.keys(other).join(", "),
    );
  return Object.fromEntries(
    names.map((name) => [
      name,
      collated(
        items.map((item) => Reflect.get(item, name)),
        `${path}.${name}`,
      ),
    ]),
  );
}
