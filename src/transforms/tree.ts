/** Trees of tensors: a tensor, or arrays and plain objects of trees, at any depth. Other values are constants. */
import { Tensor } from "../tensor/tensor.ts";

/** A tensor, or arrays and plain objects of tensors and other values, at any depth. */
export type Tree = unknown;

/** The tensors of a tree in order, and a function that puts other values in their places. */
export interface Flattened {
  readonly leaves: readonly Tensor[];
  rebuild(values: readonly unknown[]): unknown;
}

/** Lists the tensors of a tree, the values of an object in the order of its keys. */
export function flatten(tree: Tree): Flattened {
  const leaves: Tensor[] = [];
  visit(tree, (leaf) => leaves.push(leaf));
  return {
    leaves,
    rebuild(values) {
      let next = 0;
      return visit(tree, () => values[next++]);
    },
  };
}

/** Returns the tree with `change` applied to its tensors. */
export const mapTree = (tree: Tree, change: (leaf: Tensor) => unknown): unknown => visit(tree, change);

function visit(tree: Tree, change: (leaf: Tensor) => unknown): unknown {
  if (Tensor.isTensor(tree)) return change(tree);
  if (Array.isArray(tree)) return tree.map((item) => visit(item, change));
  if (!isPlain(tree)) return tree;
  return Object.fromEntries(Object.entries(tree).map(([key, item]) => [key, visit(item, change)]));
}

/** Whether a value is an object literal. */
export const isPlain = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
