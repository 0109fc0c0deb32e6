import { enableBatching } from "../backend/batching/calls.ts";
import { ArgumentError, ShapeError } from "../core/errors.ts";
import { aFunction, aNumber, choice } from "../core/kinds.ts";
import { count } from "../core/options.ts";
import { type Given, type Kind, operand, optional, parameters } from "../core/parameters.ts";
import { enterExamples, leaveExamples } from "../ops/gradient/examples.ts";
import { cat } from "../ops/join/cat.ts";
import { narrow } from "../ops/view/slice.ts";
import { type BatchLevel, batchLevels, type Randomness } from "../tensor/batched.ts";
import { normalizeAxis } from "../tensor/shape.ts";
import { Storage } from "../tensor/storage.ts";
import type { Tensor } from "../tensor/tensor.ts";
import type { AnyFunction } from "./graph.ts";
import { flatten, isPlain, MOST_DEPTH, MOST_VALUES } from "./tree.ts";

/** An axis for all tensors of a tree, null for none, or a tree of axes. */
export type Axes = number | null | readonly Axes[] | { readonly [key: string]: Axes };

/** Options of {@link vmap}. */
export interface VmapOptions {
  /**
   * The axis of the examples in each argument: one axis for all, or a list with one for each argument. null means that
   * all examples share the argument. An object or a list of axes describes the tensors in an argument. Default 0.
   */
  inDims?: Axes | undefined;
  /** The axis of the examples in the results, or a tree of axes like the result. Default 0. */
  outDims?: Axes | undefined;
  /**
   * Random operations in `f`: `"different"` draws different numbers for each example, `"same"` the same numbers for
   * all. The default, `"error"`, throws.
   */
  randomness?: Randomness | undefined;
  /** The number of examples to compute at once, which bounds memory. Default: all. */
  chunkSize?: number | undefined;
}

/** A list or object of axes; it is checked against the arguments. */
const axesTree: Kind<Axes> = {
  expected: "an axis, null, or a tree of axes",
  parse: (value) => (isAxes(value) ? value : undefined),
};

function isAxes(tree: unknown): tree is Axes {
  let visited = 0;
  const visit = (value: unknown, depth: number): boolean => {
    if (value === null || typeof value === "number") return true;
    if (!Array.isArray(value) && !isPlain(value)) return false;
    visited += Array.isArray(value) ? value.length : Object.keys(value).length;
    if (depth > MOST_DEPTH || visited > MOST_VALUES) return false;
    return Object.values(value).every((item) => visit(item, depth + 1));
  };
  return visit(tree, 0);
}

let created = 0;

/**
 * Turns a function of one example into a function of many: PyTorch's `torch.vmap`. Operations in `f` see one example
 * and run once for all of them.
 *
 * @param f a function from trees of tensors to a tree of tensors; it can't read their values
 *
 * @example
 * const dots = transforms.vmap((a, b) => dot(a, b));
 * dots(tensor([[1, 2], [3, 4]]), tensor([[1, 1], [1, 1]])); // float32 [3, 7]
 *
 * @throws {ShapeError} (the returned function) if the numbers of examples differ, or an axis is out of range.
 * @throws {VmapError} (the returned function) if `f` reads values, or draws random numbers without `randomness`.
 */
export function vmap<Arguments extends readonly unknown[], Result>(
  f: (...values: Arguments) => Result,
  ...options: Given<VmapOptions, ["inDims", "outDims", "randomness"]>
): (...values: Arguments) => Result;
export function vmap(...given: unknown[]): (...values: unknown[]) => unknown {
  const { f, inDims, outDims, randomness, chunkSize } = vmapParameters(given);
  enableBatching({ enter: enterExamples, leave: leaveExamples });
  return (...values) => {
    const mapped = mappedIn(values, inDims);
    const size = mapped[0].size;
    if (chunkSize === undefined || chunkSize >= size) return run(f, values, mapped, { outDims, randomness, size });
    const parts: unknown[] = [];
    for (let start = 0; start < size; start += chunkSize) {
      const length = Math.min(chunkSize, size - start);
      const pieces = new Map(mapped.map(({ leaf, axis }) => [leaf, narrow(leaf, axis, start, length)]));
      const { leaves, rebuild } = flatten(values, "vmap");
      const part = rebuild(leaves.map((leaf) => pieces.get(leaf) ?? leaf)) as unknown[];
      parts.push(run(f, part, mappedIn(part, inDims), { outDims: 0, randomness, size: length }));
    }
    return joined(parts, outDims);
  };
}
const vmapParameters = parameters("vmap", {
  f: operand(aFunction<AnyFunction>()),
  inDims: optional(axesTree, 0),
  outDims: optional(axesTree, 0),
  randomness: optional(choice("error", "same", "different"), "error"),
  chunkSize: optional(aNumber(count)),
});

interface Mapped {
  /** The tensor's position among all tensors of the arguments. */
  readonly at: number;
  readonly leaf: Tensor;
  readonly axis: number;
  readonly size: number;
}

/** Returns the tensors that differ between examples, with the axis of the examples. */
function mappedIn(values: readonly unknown[], inDims: Axes): readonly Mapped[] {
  const { leaves } = flatten(values, "vmap");
  for (const leaf of leaves) leaf.checkAlive("vmap");
  const mapped = axesOf("inDims", values, inDims).flatMap((axis, at): Mapped[] => {
    const leaf = leaves[at];
    if (axis === null) return [];
    const normal = normalizeAxis("vmap", axis, leaf.rank, "inDims");
    return [{ at, leaf, axis: normal, size: leaf.shape[normal] }];
  });
  if (mapped.length === 0)
    throw new ArgumentError("vmap", "nothingMapped", "expected an argument with an axis of examples, got none");
  const other = mapped.find(({ size }) => size !== mapped[0].size);
  if (other)
    throw new ShapeError(
      "vmap",
      "sizesDiffer",
      `expected the same number of examples in all arguments, got ${mapped[0].size} and ${other.size}`,
    );
  return mapped;
}

/** Returns an axis for each tensor of a tree. */
function axesOf(option: string, tree: unknown, axes: Axes): (number | null)[] {
  if (axes === null || typeof axes === "number") return flatten(tree, "vmap").leaves.map(() => axes);
  const isList = Array.isArray(axes);
  if (isList ? !Array.isArray(tree) || tree.length !== axes.length : !isPlain(tree))
    throw new ArgumentError("vmap", "treesDiffer", `expected ${option} to have the structure of the tensors`);
  const items = isList ? axes.map((item, at) => [at, item] as const) : Object.entries(axes);
  const given = new Map<string, Axes>(items.map(([key, item]) => [String(key), item]));
  return Object.entries(tree as object).flatMap(([key, item]) => {
    const axis = given.get(key);
    if (axis === undefined)
      throw new ArgumentError("vmap", "treesDiffer", `expected ${option} to have an axis for ${key}; null means none`);
    return axesOf(option, item, axis);
  });
}

interface Run {
  readonly outDims: Axes;
  readonly randomness: Randomness;
  readonly size: number;
}

function run(f: AnyFunction, values: readonly unknown[], mapped: readonly Mapped[], options: Run): unknown {
  const { size, randomness, outDims } = options;
  const level: BatchLevel = { id: created++, size, randomness, firstSerial: Storage.nextSerial };
  const { leaves, rebuild } = flatten(values, "vmap");
  const examples: Tensor[] = [...leaves];
  for (const { at, leaf, axis } of mapped) examples[at] = enterExamples(leaf, axis, level);
  const result = batchLevels.run([...batchLevels.get(), level], () => f(...(rebuild(examples) as never[])));
  if (result instanceof Promise)
    throw new ArgumentError("vmap", "asynchronous", "expected the function to return a tree of tensors, got a promise");
  const outputs = flatten(result, "vmap");
  if (outputs.leaves.length === 0)
    throw new ArgumentError("vmap", "notATensor", "expected the function to return a tensor or a tree of tensors");
  const axes = axesOf("outDims", result, outDims);
  return outputs.rebuild(
    outputs.leaves.map((leaf, at) => {
      const axis = axes[at] ?? null;
      if (axis === null)
        throw new ArgumentError(
          "vmap",
          "treesDiffer",
          "expected outDims to be axes, got null; every result has an axis of examples",
        );
      return leaveExamples(leaf, normalizeAxis("vmap", axis, leaf.rank + 1, "outDims"), level);
    }),
  );
}

/** Joins the results of chunks, which have the examples along the first axis. */
function joined(parts: readonly unknown[], outDims: Axes): unknown {
  const all = parts.map((part) => flatten(part, "vmap").leaves);
  const axes = axesOf("outDims", parts[0], outDims);
  const whole = all[0].map((first, at) => {
    const joinedAll = cat(all.map((leaves) => leaves[at]));
    return joinedAll.movedim(0, normalizeAxis("vmap", axes[at] ?? 0, first.rank, "outDims"));
  });
  return flatten(parts[0], "vmap").rebuild(whole);
}
