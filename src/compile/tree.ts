/** Arguments and results: tensors in arrays and plain objects at any depth, and other values, which must stay equal. */
import { plainList } from "../tensor/frozen.ts";
import { reachOf } from "../tensor/reach.ts";
import { Tensor } from "../tensor/tensor.ts";

/** The layout of a tensor. */
export interface Layout {
  readonly dtype: Tensor["dtype"];
  readonly shape: readonly number[];
  readonly strides: readonly number[];
  /** The offset in the storage, which may differ in other calls. */
  readonly offset: number;
  /** Elements from the first one in memory to the element at index 0. */
  readonly start: number;
  /** Elements from the first one in memory to the last. */
  readonly count: number;
}

/** The structure of a value, with a leaf for each tensor. */
export type Tree<Leaf> =
  | { readonly kind: "leaf"; readonly leaf: Leaf }
  | { readonly kind: "array"; readonly items: readonly Tree<Leaf>[] }
  | { readonly kind: "object"; readonly keys: readonly string[]; readonly items: readonly Tree<Leaf>[] }
  | { readonly kind: "value"; readonly value: unknown };

export const isPlain = (value: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
};

/** Returns the structure of a value. @param leafOf is called for each tensor, in order */
export function treeOf<Leaf>(value: unknown, leafOf: (tensor: Tensor) => Leaf): Tree<Leaf> {
  if (Tensor.isTensor(value)) return { kind: "leaf", leaf: leafOf(value) };
  if (Array.isArray(value)) return { kind: "array", items: value.map((item) => treeOf(item, leafOf)) };
  if (typeof value !== "object" || value === null || !isPlain(value)) return { kind: "value", value };
  const keys = Object.keys(value);
  const items = keys.map((key) => treeOf((value as Record<string, unknown>)[key], leafOf));
  return { kind: "object", keys, items };
}

/** Returns the objects in a tree that are neither arrays nor plain: their tensors are not found. */
export function objectsIn<Leaf>(tree: Tree<Leaf>): object[] {
  if (tree.kind === "leaf") return [];
  if (tree.kind === "value") return typeof tree.value === "object" && tree.value !== null ? [tree.value] : [];
  return tree.items.flatMap(objectsIn);
}

/** Returns the value that a tree describes. */
export function valueIn<Leaf>(tree: Tree<Leaf>, make: (leaf: Leaf) => unknown): unknown {
  if (tree.kind === "leaf") return make(tree.leaf);
  if (tree.kind === "value") return tree.value;
  if (tree.kind === "array") return tree.items.map((item) => valueIn(item, make));
  return Object.fromEntries(tree.keys.map((key, at) => [key, valueIn(tree.items[at], make)]));
}

/** Returns the leaves in order. */
export function leavesOf<Leaf>(tree: Tree<Leaf>): Leaf[] {
  if (tree.kind === "leaf") return [tree.leaf];
  return tree.kind === "value" ? [] : tree.items.flatMap(leavesOf);
}

export function layoutOf(tensor: Tensor): Layout {
  const { first, count } = reachOf(tensor);
  const { dtype, shape, strides, offset } = tensor;
  return { dtype, shape, strides, offset, start: offset - first, count };
}

const sameList = (a: readonly number[], b: readonly number[]): boolean => {
  if (a === b) return true;
  const [first, second] = [plainList(a), plainList(b)];
  if (first.length !== second.length) return false;
  for (let at = 0; at < first.length; at++) if (first[at] !== second[at]) return false;
  return true;
};

/** Whether a tensor has a layout. Its offset may differ. */
export const hasLayout = (tensor: Tensor, { dtype, shape, strides }: Omit<Layout, "start" | "count">): boolean =>
  tensor.dtype === dtype && sameList(tensor.shape, shape) && sameList(tensor.strides, strides);

/**
 * Compares a value with a structure, without allocations. Returns why they differ; undefined if they match. The tensors
 * are stored in `found`, in order.
 */
export function mismatch(tree: Tree<Layout>, value: unknown, found: Tensor[], path = "argument"): string | undefined {
  if (tree.kind === "leaf") {
    if (!Tensor.isTensor(value)) return `${path} is not a tensor`;
    if (value.isDisposed) return `${path} was disposed of`;
    if (!hasLayout(value, tree.leaf)) return `${path} is ${describe(value)}, expected ${describe(tree.leaf)}`;
    found.push(value);
    return undefined;
  }
  if (tree.kind === "value") return Object.is(tree.value, value) ? undefined : `${path} has another value`;
  if (typeof value !== "object" || value === null || Tensor.isTensor(value)) return `${path} has another structure`;
  if (tree.kind === "array") {
    if (!Array.isArray(value) || value.length !== tree.items.length) return `${path} has another length`;
    for (let at = 0; at < tree.items.length; at++) {
      const why = mismatch(tree.items[at], value[at], found, path);
      if (why !== undefined) return why;
    }
    return undefined;
  }
  if (Array.isArray(value) || !isPlain(value)) return `${path} has another structure`;
  let count = 0;
  for (const _ in value) count++;
  if (count !== tree.keys.length) return `${path} has other keys`;
  for (let at = 0; at < tree.items.length; at++) {
    const key = tree.keys[at];
    if (!Object.hasOwn(value, key)) return `${path} has no ${key}`;
    const why = mismatch(tree.items[at], (value as Record<string, unknown>)[key], found, path);
    if (why !== undefined) return why;
  }
  return undefined;
}

const describe = ({ dtype, shape, strides }: Pick<Layout, "dtype" | "shape" | "strides">): string =>
  `${dtype}[${shape.join(", ")}] with strides [${strides.join(", ")}]`;
