/** A backward pass: gradients flow from roots to leaves, through each operation after all operations that used it. */

import { getOrMake } from "../core/collections.ts";
import { runWith } from "../core/context.ts";
import { observer } from "../observe/observer.ts";
import { within } from "../observe/within.ts";
import { Tensor } from "../tensor/tensor.ts";
import { TidyScope, tidyScope } from "../tensor/tidy.ts";
import { arrivalHookOf, withPassEnds } from "./arrival.ts";
import { autocastDType, gradEnabled } from "./modes.ts";
import { edgeOf, type GradientTarget, type GraphEdge, type GraphNode, runHooks } from "./node.ts";
import { GradientReferences } from "./references.ts";

/** Options of a backward pass. */
export interface BackwardOptions {
  /** Keeps saved tensors, for another pass over the same graph. Default: `createGraph`. */
  retainGraph?: boolean | undefined;
  /** Records the backward pass too, for gradients of gradients. Default false. */
  createGraph?: boolean | undefined;
}

/**
 * The callbacks of a pass. Callbacks that receive gradients return whether they keep the tensor.
 */
export interface PassCallbacks {
  /** Adds two gradients of one tensor; an operation, which this folder can't import. */
  readonly add: (a: Tensor, b: Tensor) => Tensor;
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
export function passBackward(roots: readonly Root[], options: BackwardOptions, callbacks: PassCallbacks): void {
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

  constructor(
    { createGraph = false, retainGraph = createGraph }: BackwardOptions,
    private readonly callbacks: PassCallbacks,
  ) {
    this.createGraph = createGraph;
    this.retainGraph = retainGraph;
  }

  run(roots: readonly Root[]): void {
    for (const { root, seed } of roots) this.send(edgeOf(root) ?? root, seed);
    const nodes = inOrder(this.pending.keys());
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

  private send(target: GradientTarget, gradient: Tensor): void {
    if (target === null) return;
    this.references.retain(gradient);
    if (target instanceof Tensor) {
      this.leaves.set(target, this.plus(this.leaves.get(target), gradient));
      return;
    }
    const slots = this.slotsOf(target.node);
    slots[target.output] = this.plus(slots[target.output], gradient);
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
    const results = this.compute(node, gradients);
    for (const [index, target] of node.targets.entries()) {
      const result = results[index];
      if (result) this.send(target, result);
    }
    if (!this.retainGraph) node.free();
    for (const gradient of gradients) if (gradient) this.references.release(gradient);
  }

  /** Applies the hooks to a gradient, and passes it to the callbacks. */
  private arriveAt(edge: GraphEdge, incoming: Tensor): Tensor {
    const { node, output } = edge;
    if (node.hasHooks(output)) this.references.disown(incoming);
    const gradient = node.applyHooks(output, incoming);
    const retainer = node.retainerOf(output);
    if (this.callbacks.observe?.(edge, gradient)) this.references.disown(gradient);
    if (retainer && !retainer.isDisposed && this.callbacks.accumulate?.(retainer, gradient))
      this.references.disown(gradient);
    return gradient;
  }

  private arriveAtLeaf(leaf: Tensor, sum: Tensor): void {
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
  private compute(node: GraphNode, gradients: readonly (Tensor | null)[]): readonly (Tensor | null)[] {
    const name = within.bind(`backward of ${node.operation}: `);
    if (this.createGraph) return runWith([name], () => node.backward(gradients));
    const scope = new TidyScope();
    const around = tidyScope.get();
    let results: readonly (Tensor | null)[] = [];
    try {
      results = runWith([name, tidyScope.bind(scope)], () => node.backward(gradients));
      return results;
    } finally {
      const returned = new Set(results.filter((result) => result !== null));
      for (const made of scope.close(returned, around)) this.references.adopt(made);
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

/** Counts the uses of each leaf with an arrival hook. */
function usesOfAwaited(nodes: readonly GraphNode[]): Map<Tensor, number> {
  const uses = new Map<Tensor, number>();
  for (const { targets } of nodes)
    for (const target of targets)
      if (target instanceof Tensor && arrivalHookOf(target)) uses.set(target, (uses.get(target) ?? 0) + 1);
  return uses;
}
