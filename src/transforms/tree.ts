/** Trees of tensors: a tensor, or arrays and plain objects of trees, at any depth. Other values are constants. */
import { ArgumentError } from "../core/errors.ts";
import { reading } from "../core/parameters.ts";
import { Tensor } from "../tensor/tensor.ts";

/** The tensors of a tree in order, and a function that puts other values in their places. */
export interface Flattened {
  readonly leaves: readonly Tensor[];
  rebuild(values: readonly unknown[]): unknown;
}

/** Lists the tensors of a tree; an object's values are in the order of its keys. @throws {ArgumentError} */
export function flatten(tree: unknown, operation = "transforms"): Flattened {
  const leaves: Tensor[] = [];
  reading(operation, () => new Visit(operation, (leaf) => leaves.push(leaf)).visit(tree));
  return {
    leaves,
    rebuild(values) {
      let next = 0;
      return reading(operation, () => new Visit(operation, () => values[next++]).visit(tree));
    },
  };
}

/** A limit above the size of any tree of parameters. It stops the visit of a cyclic value. */
export const MOST_VALUES = 2 ** 16;
export const MOST_DEPTH = 64;

/** One visit of a tree. */
class Visit {
  private visited = 0;

  constructor(
    private readonly operation: string,
    private readonly change: (leaf: Tensor) => unknown,
  ) {}

  visit(tree: unknown, depth = 0): unknown {
    if (Tensor.isTensor(tree)) return this.change(tree);
    const isList = Array.isArray(tree);
    if (!isList && !isPlain(tree)) return tree;
    const items = isList ? tree.length : Object.keys(tree).length;
    this.visited += items;
    if (depth > MOST_DEPTH || this.visited > MOST_VALUES)
      throw new ArgumentError(
        this.operation,
        "tooLarge",
        `expected a tree of tensors with at most ${MOST_VALUES} values, nested at most ${MOST_DEPTH} deep`,
      );
    if (isList) return Array.from(tree, (item) => this.visit(item, depth + 1));
    return Object.fromEntries(Object.entries(tree).map(([key, item]) => [key, this.visit(item, depth + 1)]));
  }
}

/** Whether a value is an object literal. */
export const isPlain = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
