import { noGrad } from "../../autograd/modes.ts";
import { getOrMake } from "../../core/collections.ts";
import { flag } from "../../core/kinds.ts";
import { operand, parameters } from "../../core/parameters.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { detach } from "../../ops/gradient/backward.ts";
import { namedParts } from "../../quant/parts.ts";
import { QuantizedTensor } from "../../quant/quantized_tensor.ts";
import { type FloatDType, isFloat } from "../../tensor/dtype.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { keep } from "../../tensor/tidy.ts";
import { type BackwardHook, type BackwardPreHook, type ForwardHook, type ForwardPreHook, register } from "./hooks.ts";
import { floatDType } from "./kinds.ts";
import { checkDepth, joinPath, type Slot, slotsOf } from "./slots.ts";
import { type LoadOptions, type LoadReport, loadInto, readLoadOptions, type StateDict } from "./state_dict.ts";
import { formatSummary, formatTree, type SummaryLayer, type SummaryTree } from "./summary.ts";

/**
 * The base class of layers and models. The properties of a module are its state:
 *
 * - Tensors that require gradients are parameters; other tensors are buffers.
 * - Modules are submodules. Arrays and maps are traversed.
 * - Names are PyTorch's: `blocks.0.attention.output.weight`.
 * - `#private` fields and tensors that an operation returned are not part of the state.
 *
 * A tensor in several properties (tied weights) is one parameter, under the first of its names. Setting `requiresGrad`
 * of a parameter to false freezes it: it becomes a buffer, which is saved and loaded but not trained. A quantized
 * tensor `weight` has its parts as buffers, under MLX's names: `weight`, `scales`, `biases`.
 *
 * @example
 * class Perceptron extends Module<[x: Tensor], Tensor> {
 *   readonly hidden = new Linear(784, 128);
 *   readonly output = new Linear(128, 10);
 *   forward(x: Tensor) {
 *     return this.output.forward(relu(this.hidden.forward(x)));
 *   }
 * }
 */
export abstract class Module<Arguments extends readonly unknown[] = never[], Result = unknown> {
  /**
   * Whether the module is in training mode. In evaluation mode, dropout does nothing and batch norms use running
   * statistics. Set it with {@link train} and {@link eval}.
   */
  training = true;

  /** Computes the module's result. */
  abstract forward(...values: Arguments): Result;

  /** Returns the tensors that require gradients, each once, in the order of declaration. Pass them to an optimizer. */
  parameters(): Tensor[] {
    return [...this.namedParameters().values()];
  }

  /** Returns the {@link parameters} by name. */
  namedParameters(): Map<string, Tensor> {
    return new Map([...namedState(this)].filter(([, tensor]) => tensor.requiresGrad));
  }

  /**
   * Returns the tensors that do not require gradients by name, each once. They are saved and loaded, but not trained.
   */
  namedBuffers(): Map<string, Tensor> {
    return new Map([...namedState(this)].filter(([, tensor]) => !tensor.requiresGrad));
  }

  /** Returns this module and all its submodules, each once. */
  modules(): Module[] {
    return [...modulesIn(this, new Set())];
  }

  /** Returns the {@link modules} by the first of their names. This module's name is empty. */
  namedModules(): Map<string, Module> {
    const named = new Map<string, Module>();
    const seen = new Set<Module>();
    const visit = (name: string, module: Module, depth = 0): void => {
      if (seen.has(module)) return;
      checkDepth(depth);
      seen.add(module);
      named.set(name, module);
      for (const slot of slotsOf(module))
        if (slot.value instanceof Module) visit(joinPath(name, slot.name), slot.value, depth + 1);
    };
    visit("", this);
    return named;
  }

  /** Returns parameters and buffers by name, as views of the same memory without autograd history. */
  stateDict(): StateDict {
    return Object.fromEntries([...namedState(this)].map(([name, tensor]) => [name, detach(tensor)]));
  }

  /** Returns {@link stateDict} with each quantized tensor as one value, for `saveSafetensors` and `saveGguf`. */
  quantizedState(): Record<string, Tensor | QuantizedTensor> {
    const seen = new Set<unknown>();
    const found: [string, Tensor | QuantizedTensor][] = [];
    for (const { name, value } of stateSlotsIn(this)) {
      if (!seen.has(value)) found.push([name, value instanceof QuantizedTensor ? value : detach(value)]);
      seen.add(value);
    }
    return Object.fromEntries(found);
  }

  /**
   * Copies values into parameters and buffers. If anything does not match, nothing is copied.
   *
   * @param state tensors by name, as from {@link stateDict} or {@link quantizedState}. A tied tensor may have any of
   * its names
   * @param options `strict: false` ignores missing and unexpected names; shapes and dtypes must still match
   * @returns the missing and the unexpected names: none unless `strict` is false
   *
   * @throws {StateDictError} listing missing names, unexpected names, and names whose shape or dtype differs.
   */
  loadStateDict(state: Readonly<Record<string, Tensor | QuantizedTensor>>, options?: LoadOptions): LoadReport {
    const given = readLoadOptions(options);
    const aliases = new Map<Tensor, string[]>();
    const quantized = new Map<string, QuantizedTensor>();
    for (const { name, value } of stateSlotsIn(this)) {
      if (value instanceof QuantizedTensor) quantized.set(name, value);
      for (const [path, tensor] of tensorsOf(name, value)) getOrMake(aliases, tensor, () => []).push(path);
    }
    return loadInto(this.constructor.name, aliases, state, { ...given, quantized });
  }

  /** Sets {@link training} here and in all submodules. Returns the module. */
  train(mode = true): this {
    trainParameters([mode]);
    for (const module of this.modules()) module.training = mode;
    return this;
  }

  /** Switches to evaluation mode: `train(false)`. Returns the module. */
  eval(): this {
    return this.train(false);
  }

  /**
   * Converts all floating-point parameters and buffers to a dtype. They become new tensors without gradients, so create
   * the optimizer afterwards. Quantized tensors are unchanged. Returns the module.
   *
   * @example
   * model.to("bfloat16");
   */
  to(dtype: FloatDType): this {
    toParameters([dtype]);
    const converted = new Map<Tensor, Tensor>();
    for (const { value, replace } of [...stateSlotsIn(this)])
      if (value instanceof Tensor && isFloat(value.dtype))
        replace(getOrMake(converted, value, () => convert(value, dtype)));
    return this;
  }

  /** Sets all gradients to null. */
  zeroGrad(): void {
    for (const parameter of namedState(this).values()) parameter.grad = null;
  }

  /** Returns a table of the layers that directly hold tensors: names, shapes, element counts and bytes. */
  summary(): string {
    return formatSummary(summaryLayers(this));
  }

  /**
   * Adds a function that is called with the module and the arguments of `forward` before each call. A returned array
   * replaces the arguments. Hooks are called in the order in which they were added.
   *
   * @returns a function that removes the hook
   *
   * @throws {ArgumentError} `invalidOperand` if `hook` is not a function.
   */
  registerForwardPreHook(hook: ForwardPreHook<this>): () => void {
    return register("registerForwardPreHook", this, "forwardPre", hook as ForwardPreHook);
  }

  /**
   * Adds a function that is called with the module, the arguments of `forward` and its result after each call. A
   * returned value replaces the result.
   *
   * @example
   * const remove = model.hidden.registerForwardHook((_, _inputs, output) => void console.log(output.shape));
   *
   * @returns a function that removes the hook
   *
   * @throws {ArgumentError} `invalidOperand` if `hook` is not a function.
   */
  registerForwardHook(hook: ForwardHook<this, Result>): () => void {
    return register("registerForwardHook", this, "forward", hook as ForwardHook);
  }

  /**
   * Adds a function that the backward pass calls with the gradients of the results of `forward`, before the module's
   * backward pass. A returned array replaces these gradients.
   *
   * @returns a function that removes the hook; earlier calls of `forward` keep it
   *
   * @throws {ArgumentError} `invalidOperand` if `hook` is not a function.
   */
  registerFullBackwardPreHook(hook: BackwardPreHook<this>): () => void {
    return register("registerFullBackwardPreHook", this, "backwardPre", hook as BackwardPreHook);
  }

  /**
   * Adds a function that the backward pass calls with the gradients of the arguments of `forward` and of its results,
   * once it has both. A returned array replaces the gradients of the arguments. If no argument requires a gradient, it
   * is called when the gradients of the results are known.
   *
   * @returns a function that removes the hook; earlier calls of `forward` keep it
   *
   * @throws {ArgumentError} `invalidOperand` if `hook` is not a function.
   */
  registerFullBackwardHook(hook: BackwardHook<this>): () => void {
    return register("registerFullBackwardHook", this, "backward", hook as BackwardHook);
  }

  /** @internal The text between the parentheses when the module is printed. */
  details(): string {
    return "";
  }

  /** Returns the tree of modules as text. */
  toString(): string {
    return textOf(this);
  }

  /** Returns the tree of modules with shapes of tensors, and the numbers of parameters and bytes. */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return formatTree(treeOf(this));
  }
}

/** Returns the parameters and buffers by name, each tensor once. */
function namedState(module: Module): Map<string, Tensor> {
  const named = new Map<string, Tensor>();
  const seen = new Set<Tensor>();
  for (const slot of stateSlotsIn(module))
    for (const [name, value] of tensorsOf(slot.name, slot.value)) {
      if (!seen.has(value)) named.set(name, value);
      seen.add(value);
    }
  return named;
}

/** @internal Returns a module and all its submodules, each with the tensors that it directly holds. */
export function summaryLayers(model: Module): SummaryLayer[] {
  return [...model.namedModules()].map(([name, module]) => ({
    name,
    kind: module.constructor.name,
    tensors: [...slotsOf(module)].filter(isStateSlot).map((slot) => [slot.name, slot.value] as const),
  }));
}

function textOf(module: Module, depth = 0): string {
  checkDepth(depth);
  const [name, details] = [module.constructor.name, module.details()];
  const lines = [...slotsOf(module)].flatMap(({ name: slot, value }) =>
    value instanceof Module ? [`(${slot}): ${textOf(value, depth + 1)}`.replaceAll("\n", "\n  ")] : [],
  );
  if (lines.length === 0) return `${name}(${details})`;
  return [`${name}(`, ...(details ? [details] : []), ...lines].join("\n  ").concat("\n)");
}

function treeOf(module: Module, depth = 0): SummaryTree {
  checkDepth(depth);
  const slots = [...slotsOf(module)];
  return {
    kind: module.constructor.name,
    details: module.details(),
    tensors: slots.filter(isStateSlot).map(({ name, value }) => [name, value]),
    parts: slots.flatMap(({ name, value }) =>
      value instanceof Module ? [[name, treeOf(value, depth + 1)] as const] : [],
    ),
  };
}

const trainParameters = parameters("Module.train", { mode: operand(flag) });
const toParameters = parameters("Module.to", { dtype: operand(floatDType) });

type State = Tensor | QuantizedTensor;

const isStateSlot = (slot: Slot): slot is Slot<State> =>
  slot.value instanceof QuantizedTensor || (slot.value instanceof Tensor && slot.value.isLeaf);

/** Yields every slot of a tensor in a module and its submodules. A tensor in several slots is yielded once per slot. */
function* stateSlotsIn(module: Module, prefix = "", ancestors: readonly Module[] = []): Generator<Slot<State>> {
  if (ancestors.includes(module)) return;
  checkDepth(ancestors.length);
  for (const slot of slotsOf(module)) {
    const name = joinPath(prefix, slot.name);
    if (slot.value instanceof Module) yield* stateSlotsIn(slot.value, name, [...ancestors, module]);
    else if (isStateSlot(slot)) yield { ...slot, name };
  }
}

/** Adds a module and its submodules to `found`. Unlike {@link slotsOf}, it builds no names, which saves time. */
function modulesIn(value: unknown, found: Set<Module>, depth = 0): Set<Module> {
  if (value instanceof Module) {
    if (found.has(value)) return found;
    checkDepth(depth);
    found.add(value);
    for (const inner of Object.values(value)) modulesIn(inner, found, depth + 1);
  } else if (Array.isArray(value) || value instanceof Map) {
    for (const item of value.values()) modulesIn(item, found, depth);
  }
  return found;
}

/** Returns the tensors of a slot: the tensor itself, or the parts of a quantized tensor. */
const tensorsOf = (name: string, value: State): readonly (readonly [name: string, tensor: Tensor])[] =>
  value instanceof QuantizedTensor ? namedParts(name, value) : [[name, value]];

function convert(tensor: Tensor, dtype: FloatDType): Tensor {
  if (tensor.dtype === dtype) return tensor;
  const converted: Tensor = keep(noGrad(() => toDType(tensor, dtype)));
  converted.requiresGrad = tensor.requiresGrad;
  return converted;
}

/** @internal Runs `body` with a module in evaluation mode, then restores the mode of every submodule. */
export function inEvaluation<Result>(module: Module, body: () => Result): Result {
  const training = module.modules().filter((part) => part.training);
  for (const part of training) part.training = false;
  try {
    return body();
  } finally {
    for (const part of training) part.training = true;
  }
}
