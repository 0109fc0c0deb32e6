/** The autograd graph: the nodes that propagate gradients back through operations. */
import { describeValue } from "../core/describe.ts";
import { OrchardError } from "../core/errors.ts";
import { type BatchLevel, levelsOf } from "../tensor/batched.ts";
import { bytesOf, hasGradients } from "../tensor/dtype.ts";
import { reachOf } from "../tensor/reach.ts";
import { sameShape } from "../tensor/shape.ts";
import { type GradientHook, Tensor } from "../tensor/tensor.ts";

/** The layout of an output's gradient. */
export interface NodeOutput {
  readonly shape: readonly number[];
  readonly dtype: Tensor["dtype"];
  /** The `vmap` levels at which the gradient differs between examples. */
  readonly levels: readonly BatchLevel[];
}

/** @internal Describes a tensor. */
export const outputOf = (tensor: Tensor): NodeOutput => ({
  shape: tensor.shape,
  dtype: tensor.dtype,
  levels: levelsOf(tensor),
});

/** An output of a node. */
export interface GraphEdge {
  readonly node: GraphNode;
  /** The index of the output. */
  readonly output: number;
}

/**
 * Returns the edge of a tensor; null for a leaf, and for a tensor that needs no gradient. `Tensor` can't import the
 * type of edges, so it declares another one.
 */
export const edgeOf = (tensor: Tensor): GraphEdge | null => tensor.edge as GraphEdge | null;

/** The target of a gradient: a node's output, a leaf, or none. */
export type GradientTarget = GraphEdge | Tensor | null;

/**
 * Computes the gradients of inputs from the gradients of outputs; null for an input that needs no gradient, and for an
 * output that received none.
 */
export type BackwardRule = (
  gradients: readonly (Tensor | null)[],
  saved: readonly Tensor[],
  needs: readonly boolean[],
) => readonly (Tensor | null)[];

/** Computes the tangents of outputs from the tangents of inputs; null is a tangent of 0. */
export type ForwardRule = (
  tangents: readonly (Tensor | null)[],
  saved: readonly Tensor[],
) => readonly (Tensor | null)[];

/** A misuse of a backward pass or of its graph. */
export class AutogradError extends OrchardError {
  override readonly name = "AutogradError";
}

let created = 0;

/** One recorded operation. */
export class GraphNode {
  /** Later operations have higher ids, so descending order is a valid order for a backward pass. */
  readonly id = created++;
  readonly targets: readonly GradientTarget[];
  readonly outputs: readonly NodeOutput[];
  /** The rule of tangents. Default: the transpose of the gradient rule, which is linear in the gradients. */
  forward: ForwardRule | null = null;
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
    this.outputs = outputs.map(outputOf);
    for (let output = 0; output < outputs.length; output++)
      if (isDifferentiable(outputs[output])) outputs[output].edge = { node: this, output };
    this.saved = save.map((tensor) => new SavedTensor(tensor));
  }

  /** The hooks on the gradient of an output. */
  hooksOf(output: number): GradientHook[] {
    this.hooks ??= [];
    this.hooks[output] ??= [];
    return this.hooks[output];
  }

  hasHooks(output: number): boolean {
    return (this.hooks?.[output]?.length ?? 0) > 0;
  }

  /** Makes `backward()` store the gradient of an output in the tensor's `grad`. */
  retainGradOf(output: number, tensor: Tensor): void {
    this.retaining ??= [];
    this.retaining[output] = tensor;
  }

  /** The tensor that retains the gradient of an output. */
  retainerOf(output: number): Tensor | undefined {
    return this.retaining?.[output];
  }

  /**
   * Runs the rule.
   *
   * @param needs which targets need a gradient; default: all that exist
   * @param change replaces a saved tensor
   *
   * @throws {AutogradError} if saved tensors were freed or changed.
   */
  backward(
    gradients: readonly (Tensor | null)[],
    needs: readonly boolean[] = this.targets.map((target) => target !== null),
    change?: (saved: Tensor) => Tensor,
  ): readonly (Tensor | null)[] {
    const saved = this.unpacked();
    return this.rule(gradients, change ? saved.map(change) : saved, needs);
  }

  /** Runs the rule of tangents, if it has one. @throws {AutogradError} as {@link backward}. */
  pushForward(tangents: readonly (Tensor | null)[]): readonly (Tensor | null)[] | undefined {
    return this.forward?.(tangents, this.unpacked());
  }

  private unpacked(): Tensor[] {
    if (this.saved === null)
      throw new AutogradError(
        "backward",
        "graphFreed",
        `the tensors saved by ${this.operation} were freed by an earlier backward(); pass { retainGraph: true } to it`,
      );
    return this.saved.map((saved) => saved.unpack(this.operation));
  }

  /** Applies the hooks on an output to its gradient. */
  applyHooks(output: number, gradient: Tensor): Tensor {
    return runHooks(this.hooks?.[output], gradient);
  }

  /** Releases saved tensors. An operation that saved none, such as a view, can run backward again. */
  free(): void {
    if (!this.saved?.length) return;
    for (const saved of this.saved) saved.free();
    this.saved = null;
  }
}

export function runHooks(hooks: readonly GradientHook[] | null | undefined, gradient: Tensor): Tensor {
  if (!hooks?.length) return gradient;
  let result = gradient;
  for (const hook of [...hooks]) result = replaced(result, hook(result)); // a hook may remove itself
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

const isDifferentiable = ({ dtype }: Tensor): boolean => hasGradients(dtype);

function gradientTarget(input: Tensor): GradientTarget {
  return edgeOf(input) ?? (input.requiresGrad ? input : null);
}

/** A tensor that backward needs. It retains the storage, so the caller may dispose of the tensor. */
class SavedTensor {
  private readonly version: number;
  /** A hash of the elements if the caller can change their memory without a new version; otherwise null. */
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
        `a tensor ${this.tensor.describe()} that ${operation} needs for its gradient was changed in place ` +
          `(it is at version ${storage.version}, expected ${this.version}); change a clone() instead`,
      );
    if (this.hash !== null) this.checkArray(operation, this.hash);
    if (this.leaf !== null && !this.leaf.isDisposed) return this.leaf;
    const view = new Tensor(storage, dtype, shape, strides, offset);
    view.edge = this.edge;
    return view;
  }

  /**
   * Checks the caller's array, which may have been changed or detached; an operation may also have moved it to a
   * device.
   */
  private checkArray(operation: string, hash: bigint): void {
    const { storage } = this.tensor;
    if (storage.isClosed) throw storage.closedError("backward", this.tensor.describe());
    if (hashOf(this.tensor) === hash) return;
    throw new AutogradError(
      "backward",
      "savedArrayChanged",
      `the array behind a tensor ${this.tensor.describe()} that ${operation} needs for its gradient was changed ` +
        "between forward and backward; change it after backward(), or copy it with tensor(array) " +
        "instead of fromArray(array)",
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
