/** The backward pass: gradients flow from a result to the leaves, each recorded operation after all that used its results. */
import { withAmbient } from "../ambient.ts";
import { getOrMake } from "../collections.ts";
import { ArgumentError, DTypeError, ShapeError } from "../errors.ts";
import { toDType } from "../ops/copy/cast.ts";
import { clone } from "../ops/copy/copy.ts";
import { tensor } from "../ops/creation/tensor.ts";
import { add } from "../ops/elementwise/binary.ts";
import { expand } from "../ops/view/expand.ts";
import { isFloat } from "../tensor/dtype.ts";
import { formatShape, sameShape } from "../tensor/shape.ts";
import { Storage } from "../tensor/storage.ts";
import { Tensor } from "../tensor/tensor.ts";
import { keep, tidy } from "../tensor/tidy.ts";
import { AutogradError, type GradientTarget, type GraphEdge, type GraphNode, runHooks } from "./node.ts";

/** What becomes of the graph when {@link backward} has passed. */
export interface BackwardOptions {
  /** Keep what the forward saved, for a further pass over the same graph. Default: `createGraph`. */
  retainGraph?: boolean;
  /** Record the backward pass too, for gradients of gradients. */
  createGraph?: boolean;
}

/**
 * Adds the gradient of `root` to the `grad` of every leaf that requires one.
 *
 * @param gradient of `root`'s shape; may be left out where `root` has one element: then it is 1
 *
 * @example
 * const w = tensor([1, 2], { requiresGrad: true });
 * backward(sum(mul(w, w)));
 * w.grad; // float32 [2, 4]
 *
 * @throws {AutogradError} `noGraph` where nothing requires a gradient, `notAScalar`, `graphFreed` on a second pass, `savedTensorChanged`.
 */
export function backward(root: Tensor, gradient?: Tensor, options: BackwardOptions = {}): void {
  const seed = checkRoot("backward", root, gradient);
  const handedOut = new Set<Storage>();
  const firstSerial = Storage.nextSerial;
  // A gradient that shares memory with another, with the caller's or with what the forward made would change with it.
  const isOwn = ({ isContiguous, storage }: Tensor) =>
    isContiguous && storage.serial >= firstSerial && !handedOut.has(storage);
  run([{ root, seed }], options, (target, incoming) => {
    const sum = target.grad === null ? incoming : noting(options, () => add(target.grad!, incoming) as Tensor);
    const own = isOwn(sum) ? sum : noting(options, () => clone(sum));
    handedOut.add(own.storage);
    target.grad = keep(own);
  });
}

/** Options of {@link grad}. */
export interface GradOptions extends BackwardOptions {
  /** Gradients of the outputs; default 1 for each, which must then have one element. */
  gradOutputs?: readonly (Tensor | undefined)[];
  /** Give null for an input that the outputs do not depend on, instead of an error. */
  allowUnused?: boolean;
}

/**
 * The gradients of the sum of `outputs` for each of `inputs`, which need not be leaves. Leaves' `grad` stay as they are.
 *
 * @throws {AutogradError} as {@link backward}, and `unused` where an output does not depend on an input.
 */
export function grad(
  outputs: Tensor | readonly Tensor[],
  inputs: readonly Tensor[],
  options: GradOptions = {},
): Tensor[] {
  const roots = outputs instanceof Tensor ? [outputs] : outputs;
  const seeded = roots.map((root, index) => ({ root, seed: checkRoot("grad", root, options.gradOutputs?.[index]) }));
  const results = new Array<Tensor | null>(inputs.length).fill(null);
  run(seeded, options, undefined, (target, incoming) => {
    for (const [index, input] of inputs.entries()) {
      if (!isSameTarget(input.edge ?? input, target)) continue;
      const known = results[index];
      results[index] = known ? noting(options, () => add(known, incoming) as Tensor) : incoming;
    }
  });
  const unused = results.indexOf(null);
  if (unused >= 0 && !options.allowUnused)
    throw new AutogradError(
      "grad",
      "unused",
      `the outputs do not depend on input ${unused} (${inputs[unused]!.describe()}); { allowUnused: true } gives null for it`,
    );
  return results as Tensor[];
}

function isSameTarget(a: GradientTarget, b: GradientTarget): boolean {
  if (a === null || b === null) return false;
  if (a instanceof Tensor || b instanceof Tensor) return a === b;
  return a.node === b.node && a.output === b.output;
}

/** Runs with recording only where a graph of the backward pass is wanted. */
const noting = <Result>({ createGraph = false }: BackwardOptions, body: () => Result): Result =>
  withAmbient({ gradEnabled: createGraph }, body);

function checkRoot(operation: string, root: Tensor, gradient: Tensor | undefined): Tensor {
  if (!root.requiresGrad)
    throw new AutogradError(
      operation,
      "noGraph",
      `${root.describe()} does not depend on anything that requires a gradient (or was made in noGrad)`,
    );
  if (gradient === undefined) {
    if (root.size !== 1)
      throw new AutogradError(
        operation,
        "notAScalar",
        `a result of one element is wanted, ${root.describe()} came; reduce it (sum, mean) or give its gradient`,
      );
    return expand(tensor(1, { dtype: root.dtype }), root.shape);
  }
  if (!sameShape(gradient.shape, root.shape))
    throw new ShapeError(
      operation,
      "shapesDiffer",
      `the gradient has shape ${formatShape(gradient.shape)}, its tensor ${formatShape(root.shape)}`,
    );
  if (!isFloat(gradient.dtype))
    throw new DTypeError(operation, "notAFloat", `a gradient is a float, ${gradient.dtype} came`);
  return toDType(gradient, root.dtype);
}

/** Takes the gradient of a leaf, or of a tensor that asked for its own. */
type Accumulate = (target: Tensor, gradient: Tensor) => void;
type Receive = (target: NonNullable<GradientTarget>, gradient: Tensor) => void;

function run(
  roots: readonly { root: Tensor; seed: Tensor }[],
  options: BackwardOptions,
  accumulate: Accumulate | undefined,
  observe?: Receive,
): void {
  const { createGraph = false, retainGraph = createGraph } = options;
  const pending = new Map<GraphNode, (Tensor | null)[]>();
  const leaves = new Map<Tensor, Tensor>();
  const send = (target: GradientTarget, gradient: Tensor): void => {
    if (target === null) return;
    if (target instanceof Tensor) {
      const known = leaves.get(target);
      leaves.set(target, known ? (add(known, gradient) as Tensor) : gradient);
      return;
    }
    const slots = slotsOf(pending, target.node);
    const known = slots[target.output];
    slots[target.output] = known ? (add(known, gradient) as Tensor) : gradient;
  };
  noting(options, () => {
    for (const { root, seed } of roots) send(root.edge ?? root, seed);
    for (const node of inOrder(pending.keys())) {
      const incoming = arrived(node, pending);
      if (incoming === null) continue;
      for (const [output, gradient] of incoming.entries()) {
        if (gradient) show({ node, output }, gradient, observe, accumulate);
      }
      step(node, incoming, send, createGraph, retainGraph);
    }
    for (const [leaf, sum] of leaves) {
      const gradient = runHooks(leaf.hooks, sum);
      observe?.(leaf, gradient);
      accumulate?.(leaf, gradient);
    }
  });
}

/** What came for a node's outputs, after the hooks' say; null where nothing did. */
function arrived(node: GraphNode, pending: Map<GraphNode, (Tensor | null)[]>): (Tensor | null)[] | null {
  const incoming = pending.get(node);
  pending.delete(node);
  return incoming?.map((gradient, output) => gradient && node.applyHooks(output, gradient)) ?? null;
}

/** Gives a gradient on its way to whoever asked for it. */
function show(edge: GraphEdge, gradient: Tensor, observe?: Receive, accumulate?: Accumulate): void {
  observe?.(edge, gradient);
  const retainer = edge.node.retainerOf(edge.output);
  if (retainer && !retainer.isDisposed) accumulate?.(retainer, gradient);
}

function step(
  node: GraphNode,
  gradients: readonly (Tensor | null)[],
  send: (target: GradientTarget, gradient: Tensor) => void,
  createGraph: boolean,
  retainGraph: boolean,
): void {
  const results = withAmbient({ within: `backward of ${node.operation}: ` }, () =>
    createGraph ? node.backward(gradients) : tidy(() => node.backward(gradients)),
  );
  for (const [index, target] of node.targets.entries()) {
    const result = results[index];
    if (target !== null && result) send(target, result);
  }
  if (!retainGraph) node.free();
}

const slotsOf = (pending: Map<GraphNode, (Tensor | null)[]>, node: GraphNode): (Tensor | null)[] =>
  getOrMake(pending, node, () => new Array<Tensor | null>(node.outputs.length).fill(null));

/** Every node that is reached, later operations first: a valid order, since an operation comes after what it uses. */
function inOrder(roots: Iterable<GraphNode>): GraphNode[] {
  const found = new Set<GraphNode>(roots);
  for (const node of found) {
    for (const target of node.targets) if (target !== null && !(target instanceof Tensor)) found.add(target.node);
  }
  return [...found].sort((a, b) => b.id - a.id);
}

/**
 * A function that gives the value of `compute` and the gradients of its first arguments.
 *
 * @param compute returns a tensor of one element; the tensors that it is given live until it returns
 * @param count how many of its arguments, from the first, get a gradient; default 1
 *
 * @example
 * const step = valueAndGrad((w, x) => sum(mul(w, x)));
 * const { value, gradients: [dw] } = step(w, x);
 */
export function valueAndGrad<Arguments extends readonly unknown[]>(
  compute: (...values: Arguments) => Tensor,
  count = 1,
): (...values: Arguments) => { value: Tensor; gradients: Tensor[] } {
  return (...values) => {
    const inputs = values.slice(0, count).map((value, index) => {
      if (!(value instanceof Tensor))
        throw new ArgumentError(
          "valueAndGrad",
          "notATensor",
          `argument ${index} gets a gradient, so a tensor is wanted`,
        );
      const leaf = new Tensor(value.storage, value.dtype, value.shape, value.strides, value.offset);
      leaf.requiresGrad = true;
      return leaf;
    });
    try {
      const value = withAmbient({ gradEnabled: true }, () =>
        compute(...([...inputs, ...values.slice(count)] as unknown as Arguments)),
      );
      return { value: detach(value), gradients: grad(value, inputs) };
    } finally {
      for (const input of inputs) input.dispose();
    }
  };
}

/** The same elements without the history: a view that requires no gradient. */
export function detach(x: Tensor): Tensor {
  x.checkAlive("detach");
  return new Tensor(x.storage, x.dtype, x.shape, x.strides, x.offset);
}
