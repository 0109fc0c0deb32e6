/** The tape: what each operation needs to carry gradients back. */
import { describeValue } from "../core/describe.ts";
import { OrchardError } from "../core/errors.ts";
import { bytesOf, isFloat } from "../tensor/dtype.ts";
import { reachOf } from "../tensor/reach.ts";
import { sameShape } from "../tensor/shape.ts";
import { type GradientHook, Tensor } from "../tensor/tensor.ts";

/** A leaf that sums gradients up, or an output of a node. */
export interface GraphEdge {
  readonly node: GraphNode;
  /** Which of the node's outputs. */
  readonly output: number;
}

/**
 * The edge of a tensor, which knows no more of its node than it needs itself; null on a leaf and on what needs no
 * gradient.
 */
export const edgeOf = (tensor: Tensor): GraphEdge | null => tensor.edge as GraphEdge | null;

/** Where a gradient goes: on to a node's output, into a leaf, or nowhere. */
export type GradientTarget = GraphEdge | Tensor | null;

/** Gradients of the inputs from those of the outputs; null where an input needs none, or an output got none. */
export type BackwardRule = (
  gradients: readonly (Tensor | null)[],
  saved: readonly Tensor[],
  needs: readonly boolean[],
) => readonly (Tensor | null)[];

/** A backward pass, or the graph that it needs, is misused. */
export class AutogradError extends OrchardError {
  override readonly name = "AutogradError";
}

let created = 0;

/** One recorded operation. */
export class GraphNode {
  /** Later operations have higher ones, so descending order is a valid order of a backward pass. */
  readonly id = created++;
  readonly targets: readonly GradientTarget[];
  readonly outputs: readonly { readonly shape: readonly number[]; readonly dtype: Tensor["dtype"] }[];
  private saved: SavedTensor[] | null;
  private hooks: (GradientHook[] | undefined)[] | null = null;
  private retaining: (Tensor | undefined)[] | null = null;

  constructor(
    readonly operation: string,
    inputs: readonly Tensor[],
    outputs: readonly Tensor[],
    save: readonly Tensor[],
    private readonly rule: BackwardRule,
  ) {
    this.targets = inputs.map(gradientTarget);
    this.outputs = outputs.map(({ shape, dtype }) => ({ shape, dtype }));
    for (const [output, tensor] of outputs.entries())
      if (isDifferentiable(tensor)) tensor.edge = { node: this, output };
    this.saved = save.map((tensor) => new SavedTensor(tensor));
  }

  /** The hooks on one of the outputs' gradients. */
  hooksOf(output: number): GradientHook[] {
    this.hooks ??= [];
    this.hooks[output] ??= [];
    return this.hooks[output];
  }

  hasHooks(output: number): boolean {
    return (this.hooks?.[output]?.length ?? 0) > 0;
  }

  /** Has `backward()` leave the gradient of one of the outputs in its tensor's `grad`. */
  retainGradOf(output: number, tensor: Tensor): void {
    this.retaining ??= [];
    this.retaining[output] = tensor;
  }

  /** The tensor that retains the gradient of an output. */
  retainerOf(output: number): Tensor | undefined {
    return this.retaining?.[output];
  }

  /** Runs the rule. @throws {AutogradError} where what it saved is gone or was changed. */
  backward(gradients: readonly (Tensor | null)[]): readonly (Tensor | null)[] {
    if (this.saved === null)
      throw new AutogradError(
        "backward",
        "graphFreed",
        `what ${this.operation} saved was freed by an earlier backward(); pass { retainGraph: true } to the first one`,
      );
    const tensors = this.saved.map((saved) => saved.unpack(this.operation));
    const needs = this.targets.map((target) => target !== null);
    return this.rule(gradients, tensors, needs);
  }

  /** Applies the hooks on an output to its gradient. */
  applyHooks(output: number, gradient: Tensor): Tensor {
    return runHooks(this.hooks?.[output], gradient);
  }

  /** Releases what the forward saved. An operation that saved nothing, such as a view, can be passed again. */
  free(): void {
    if (!this.saved?.length) return;
    for (const saved of this.saved) saved.free();
    this.saved = null;
  }
}

export function runHooks(hooks: readonly GradientHook[] | null | undefined, gradient: Tensor): Tensor {
  let result = gradient;
  for (const hook of [...(hooks ?? [])]) result = replaced(result, hook(result)); // a hook may remove itself
  return result;
}

function replaced(gradient: Tensor, replacement: unknown): Tensor {
  if (replacement === undefined || replacement === null) return gradient;
  if (!Tensor.isTensor(replacement))
    throw new AutogradError(
      "registerHook",
      "wrongGradient",
      `expected a hook to return a gradient or nothing, got ${describeValue(replacement)}`,
    );
  replacement.checkAlive("registerHook");
  if (sameShape(gradient.shape, replacement.shape) && gradient.dtype === replacement.dtype) return replacement;
  throw new AutogradError(
    "registerHook",
    "wrongGradient",
    `a hook returned ${replacement.describe()} in place of a gradient ${gradient.describe()}; shape and dtype must ` +
      "stay",
  );
}

const isDifferentiable = ({ dtype }: Tensor): boolean => isFloat(dtype);

function gradientTarget(input: Tensor): GradientTarget {
  return edgeOf(input) ?? (input.requiresGrad ? input : null);
}

/** A tensor that backward needs: it owns the storage too, so that disposing of the tensor does no harm. */
class SavedTensor {
  private readonly version: number;
  /** Of elements that the caller can change without a new version; null of others. */
  private readonly hash: bigint | null;
  private readonly leaf: Tensor | null;
  private readonly edge: GraphEdge | null;

  constructor(private readonly tensor: Tensor) {
    this.version = tensor.storage.version;
    this.hash = tensor.storage.isBorrowed ? hashOf(tensor) : null;
    this.edge = edgeOf(tensor);
    this.leaf = tensor.edge === null && tensor.requiresGrad ? tensor : null;
    tensor.storage.retain();
  }

  unpack(operation: string): Tensor {
    const { storage, dtype, shape, strides, offset } = this.tensor;
    if (storage.version !== this.version)
      throw new AutogradError(
        "backward",
        "savedTensorChanged",
        `a tensor ${this.tensor.describe()} that ${operation} needs for its gradient was changed in place since ` +
          `(version ${storage.version}, ${this.version} was saved); change a clone() instead`,
      );
    if (this.hash !== null) this.checkArray(operation, this.hash);
    if (this.leaf !== null && !this.leaf.isDisposed) return this.leaf;
    const view = new Tensor(storage, dtype, shape, strides, offset);
    view.edge = this.edge;
    return view;
  }

  /** The array's owner can also have taken it away, or an operation have moved its elements to a device. */
  private checkArray(operation: string, hash: bigint): void {
    const { storage } = this.tensor;
    if (storage.isClosed) throw storage.closedError("backward", this.tensor.describe());
    if (hashOf(this.tensor) === hash) return;
    throw new AutogradError(
      "backward",
      "savedArrayChanged",
      `the array behind a tensor ${this.tensor.describe()} that ${operation} needs for its gradient was changed ` +
        "between forward and backward; change it after backward(), or copy it: tensor(array) instead of " +
        "fromArray(array)",
    );
  }

  free(): void {
    this.tensor.storage.release();
  }
}

/** A hash of the bytes from a tensor's first element in memory to its last. */
function hashOf(tensor: Tensor): bigint {
  const { first, count } = reachOf(tensor);
  const bytes = bytesOf(tensor.dtype);
  if (count === 0) return 0n;
  return Bun.hash.xxHash3(tensor.storage.hostBytes().subarray(first * bytes, (first + count) * bytes));
}
