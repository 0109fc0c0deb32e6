/** A backward pass: gradients flow from roots to leaves, through each operation after all operations that used it. */

import { getOrMake } from "../core/collections.ts";
import { runWith } from "../core/context.ts";
import { observer } from "../observe/observer.ts";
import { within } from "../observe/within.ts";
import { type BatchLevel, batchLevels, levelsOf } from "../tensor/batched.ts";
import { Tensor } from "../tensor/tensor.ts";
import { TidyScope, tidyScope } from "../tensor/tidy.ts";
import { arrivalHookOf, withPassEnds } from "./arrival.ts";
import { autocastDType, gradEnabled } from "./modes.ts";
import { edgeOf, type GradientTarget, type GraphEdge, type GraphNode, outputOf, runHooks } from "./node.ts";
import { GradientReferences } from "./references.ts";

/** Options of a backward pass. */
export interface BackwardOptions {
  /** Keeps saved tensors, for another pass over the same graph. Default: `createGraph`. */
  retainGraph?: boolean | undefined;
  /** Records the backward pass too, for gradients of gradients. Default false. */
  createGraph?: boolean | undefined;
}

/** Options of passes that transformations run. */
export interface InternalPassOptions extends BackwardOptions {
  /** Computes gradients only along paths to these tensors, and not beyond them. Default: to every leaf. */
  readonly toward?: readonly Tensor[] | undefined;
  /**
   * Runs the rule of a node, in passes that compute tangents. Hooks do not run in such a pass. Default: the node's
   * `backward`.
   */
  readonly runRule?: (
    node: GraphNode,
    gradients: readonly (Tensor | null)[],
    needs: readonly boolean[],
  ) => readonly (Tensor | null)[];
}

/**
 * The callbacks of a pass. Callbacks that receive gradients return whether they keep the tensor.
 */
export interface PassCallbacks {
  /** Adds two gradients of one tensor. The operation is passed in, because this folder can't import operations. */
  readonly add: (a: Tensor, b: Tensor) => Tensor;
  /** Sums the gradients of the examples of a `vmap`. */
  readonly addExamples: (gradient: Tensor, level: BatchLevel) => Tensor;
  /** Called for every gradient that arrives. */
  readonly observe?: (target: NonNullable<GradientTarget>, gradient: Tensor) => boolean;
  /** Accumulates the gradient of a leaf, or of a tensor that retains its gradient. */
  readonly accumulate?: (target: Tensor, gradient: Tensor) => boolean;
}

export interface Root {
  readonly root: Tensor;
  /** The gradient of the root. */
  readonly seed: Tensor;
}

/** Runs `body` with recording only if the pass creates a graph. Rules compute in the dtypes of the forward pass. */
const withRecording = <Result>({ createGraph = false }: BackwardOptions, body: () => Result): Result =>
  runWith([gradEnabled.bind(createGraph), autocastDType.bind(null)], body);

/** Propagates the gradients of the roots through the graph. @throws {AutogradError} */
export function passBackward(roots: readonly Root[], options: InternalPassOptions, callbacks: PassCallbacks): void {
  const start = performance.now();
  const run = (): void => {
    withRecording(options, () => new BackwardPass(options, callbacks).run(roots));
    const end = performance.now();
    observer?.took({ name: "backward", category: "autograd", start, end, details: {} });
  };
  withPassEnds(run);
}

class BackwardPass {
  private readonly createGraph: boolean;
  private readonly retainGraph: boolean;
  /** The gradients so far for the outputs of each node. */
  private readonly pending = new Map<GraphNode, (Tensor | null)[]>();
  private readonly leaves = new Map<Tensor, Tensor>();
  private readonly references = new GradientReferences();
  /**
   * For each node on a path to a tensor of `toward`: which of its targets are on such a path. Null if all targets
   * count.
   */
  private paths: ReadonlyMap<GraphNode, readonly boolean[]> | null = null;

  constructor(
    private readonly options: InternalPassOptions,
    private readonly callbacks: PassCallbacks,
  ) {
    const { createGraph = false, retainGraph = createGraph } = options;
    this.createGraph = createGraph;
    this.retainGraph = retainGraph;
  }

  run(roots: readonly Root[]): void {
    for (const { root, seed } of roots) this.send(edgeOf(root) ?? root, seed);
    const nodes = inOrder(this.pending.keys());
    if (this.options.toward) this.paths = pathsTo(this.options.toward, nodes);
    const awaited = this.callbacks.accumulate ? usesOfAwaited(nodes) : new Map<Tensor, number>();
    for (const node of nodes) {
      this.visit(node);
      if (awaited.size > 0) this.countDown(node, awaited);
    }
    for (const [leaf, sum] of this.leaves) this.arriveAtLeaf(leaf, sum);
  }

  /** Delivers the gradients of leaves with arrival hooks, once the last node that uses them was visited. */
  private countDown({ targets }: GraphNode, awaited: Map<Tensor, number>): void {
    for (const target of targets) {
      if (!(target instanceof Tensor)) continue;
      const left = awaited.get(target);
      if (left === undefined) continue;
      awaited.set(target, left - 1);
      const sum = this.leaves.get(target);
      if (left > 1 || sum === undefined) continue;
      this.leaves.delete(target);
      this.arriveAtLeaf(target, sum);
    }
  }

  private send(target: GradientTarget, result: Tensor): void {
    if (target === null) return;
    const gradient = result.storage.batch ? this.overExamples(target, result) : result;
    this.references.retain(gradient);
    if (target instanceof Tensor) {
      this.leaves.set(target, this.plus(this.leaves.get(target), gradient));
      return;
    }
    const slots = this.slotsOf(target.node);
    slots[target.output] = this.plus(slots[target.output], gradient);
  }

  /**
   * Sums a gradient over the examples of `vmap`s that have ended, if all examples share the target. While a `vmap`
   * runs, its body computes gradients for each example.
   */
  private overExamples(target: NonNullable<GradientTarget>, gradient: Tensor): Tensor {
    const { levels } = target instanceof Tensor ? outputOf(target) : target.node.outputs[target.output];
    const running = batchLevels.get();
    let sum = gradient;
    for (const level of levelsOf(gradient))
      if (!levels.includes(level) && !running.includes(level)) sum = this.callbacks.addExamples(sum, level);
    if (sum !== gradient && !this.createGraph) this.references.adopt(sum);
    return sum;
  }

  /** Adds a gradient to the accumulated one. */
  private plus(known: Tensor | null | undefined, gradient: Tensor): Tensor {
    if (!known) return gradient;
    const sum = this.callbacks.add(known, gradient);
    if (!this.createGraph) this.references.adopt(sum);
    this.references.retain(sum);
    this.references.release(known);
    this.references.release(gradient);
    return sum;
  }

  private slotsOf(node: GraphNode): (Tensor | null)[] {
    return getOrMake(this.pending, node, () => new Array<Tensor | null>(node.outputs.length).fill(null));
  }

  private visit(node: GraphNode): void {
    const arrived = this.pending.get(node);
    if (arrived === undefined) return;
    this.pending.delete(node);
    const gradients = arrived.map((gradient, output) => gradient && this.arriveAt({ node, output }, gradient));
    const needs = this.paths?.get(node);
    const results = this.paths && !needs ? [] : this.compute(node, gradients, needs);
    for (let index = 0; index < results.length; index++) {
      const result = results[index];
      if (result && (needs?.[index] ?? true)) this.send(node.targets[index] ?? null, result);
    }
    if (!this.retainGraph) node.free();
    for (const gradient of gradients) if (gradient) this.references.release(gradient);
  }

  /** Applies the hooks to a gradient, and passes it to the callbacks. */
  private arriveAt(edge: GraphEdge, incoming: Tensor): Tensor {
    const { node, output } = edge;
    if (this.options.runRule) {
      this.callbacks.observe?.(edge, incoming);
      return incoming;
    }
    if (node.hasHooks(output)) this.references.disown(incoming);
    const gradient = node.applyHooks(output, incoming);
    const retainer = node.retainerOf(output);
    if (this.callbacks.observe?.(edge, gradient)) this.references.disown(gradient);
    if (retainer && !retainer.isDisposed && this.callbacks.accumulate?.(retainer, gradient))
      this.references.disown(gradient);
    return gradient;
  }

  private arriveAtLeaf(leaf: Tensor, sum: Tensor): void {
    if (this.options.runRule) {
      this.callbacks.observe?.(leaf, sum);
      return;
    }
    if (leaf.hooks?.length) this.references.disown(sum);
    const gradient = runHooks(leaf.hooks, sum);
    if (this.callbacks.observe?.(leaf, gradient)) this.references.disown(gradient);
    if (this.callbacks.accumulate?.(leaf, gradient)) this.references.disown(gradient);
    this.references.release(gradient);
    if (this.callbacks.accumulate) arrivalHookOf(leaf)?.();
  }

  /**
   * Runs a node's rule. Tensors that it creates but does not return are freed immediately, unless a graph needs them.
   */
  private compute(
    node: GraphNode,
    gradients: readonly (Tensor | null)[],
    needs: readonly boolean[] | undefined,
  ): readonly (Tensor | null)[] {
    const name = within.bind(`backward of ${node.operation}: `);
    const { runRule } = this.options;
    const run = () => (runRule ? runRule(node, gradients, needs ?? []) : node.backward(gradients, needs));
    if (this.createGraph) return runWith([name], run);
    const scope = new TidyScope();
    const around = tidyScope.get();
    let results: readonly (Tensor | null)[] = [];
    try {
      results = runWith([name, tidyScope.bind(scope)], run);
      return results;
    } finally {
      const returned = results.filter((result) => result !== null);
      const kept = returned.length === 1 ? returned[0] : new Set(returned); // a set takes longer than a small rule
      for (const made of scope.close(kept, around)) this.references.adopt(made);
    }
  }
}

/** All reachable nodes, later operations first. The order is valid because an operation comes after its inputs. */
function inOrder(roots: Iterable<GraphNode>): GraphNode[] {
  const found = new Set<GraphNode>(roots);
  for (const node of found) {
    for (const target of node.targets) if (target !== null && !(target instanceof Tensor)) found.add(target.node);
  }
  return [...found].sort((a, b) => b.id - a.id);
}

/**
 * Finds the nodes from which a gradient reaches one of the tensors. For each node, says which of its targets lead
 * there.
 *
 * @param nodes in the order of a pass: a node comes before the nodes that it sends gradients to
 */
function pathsTo(tensors: readonly Tensor[], nodes: readonly GraphNode[]): ReadonlyMap<GraphNode, readonly boolean[]> {
  const ends = new Map<GraphNode | Tensor, Set<number>>();
  for (const tensor of tensors) {
    const edge = edgeOf(tensor);
    getOrMake(ends, edge?.node ?? tensor, () => new Set<number>()).add(edge?.output ?? 0);
  }
  const paths = new Map<GraphNode, readonly boolean[]>();
  const leads = (target: GradientTarget): boolean => {
    if (target === null) return false;
    if (target instanceof Tensor) return ends.has(target);
    return ends.get(target.node)?.has(target.output) === true || paths.has(target.node);
  };
  for (const node of nodes.toReversed()) {
    const needs = node.targets.map(leads);
    if (needs.includes(true)) paths.set(node, needs);
  }
  return paths;
}

/** Counts the uses of each leaf with an arrival hook. */
function usesOfAwaited(nodes: readonly GraphNode[]): Map<Tensor, number> {
  const uses = new Map<Tensor, number>();
  for (const { targets } of nodes)
    for (const target of targets)
      if (target instanceof Tensor && arrivalHookOf(target)) uses.set(target, (uses.get(target) ?? 0) + 1);
  return uses;
}
