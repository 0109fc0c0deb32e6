/**
 * Hooks around a module's `forward` and its gradients. The first hook defines a property `forward` on the module, which
 * calls the hooks and the original method. Modules without hooks therefore cost nothing.
 */
import { describeValue } from "../../core/describe.ts";
import { ArgumentError } from "../../core/errors.ts";
import { isArray } from "../../core/kinds.ts";
import { detach } from "../../ops/gradient/backward.ts";
import { Function as Differentiable, type FunctionContext } from "../../ops/gradient/function.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { keep } from "../../tensor/tidy.ts";
import type { Module } from "./module.ts";

/** Gradients of several tensors, in order; null for a tensor without a gradient. */
export type Gradients = readonly (Tensor | null)[];

/** Called with the arguments of `forward` before each call. A returned array replaces the arguments. */
export type ForwardPreHook<M = Module> = (module: M, inputs: readonly unknown[]) => readonly unknown[] | undefined;

/** Called with the arguments and the result of `forward` after each call. A returned value replaces the result. */
export type ForwardHook<M = Module, Result = unknown> = (
  module: M,
  inputs: readonly unknown[],
  output: Result,
) => Result | undefined;

/** Called with the gradients of the results before the module's backward pass. A returned array replaces them. */
export type BackwardPreHook<M = Module> = (module: M, gradOutputs: Gradients) => Gradients | undefined;

/**
 * Called with the gradients of the arguments and of the results of `forward`. A returned array replaces the gradients
 * of the arguments.
 */
export type BackwardHook<M = Module> = (
  module: M,
  gradInputs: Gradients,
  gradOutputs: Gradients,
) => Gradients | undefined;

interface Kinds {
  readonly forwardPre: ForwardPreHook;
  readonly forward: ForwardHook;
  readonly backwardPre: BackwardPreHook;
  readonly backward: BackwardHook;
}

/**
 * The hooks of a module, in order of registration. Each is wrapped in an object, because a function may be registered
 * twice.
 */
type Hooks = { readonly [Kind in keyof Kinds]: { readonly hook: Kinds[Kind] }[] } & {
  /** The descriptor of the module's property `forward` before the first hook, if it had one. */
  readonly before: PropertyDescriptor | undefined;
};

const hooks = new WeakMap<object, Hooks>();

/** Whether `forward` has hooks. Fused operations must then call `forward` instead. */
export const hasHooks = (module: object): boolean => hooks.has(module);

/** Appends a hook to its list. @returns a function that removes it @throws {ArgumentError} `invalidOperand` */
export function register<Kind extends keyof Kinds>(
  operation: string,
  module: Module,
  kind: Kind,
  hook: Kinds[Kind],
): () => void {
  if (typeof hook !== "function")
    throw new ArgumentError(operation, "invalidOperand", `expected hook to be a function, got ${describeValue(hook)}`);
  const installed = hooks.get(module) ?? install(module);
  const list = installed[kind] as { readonly hook: Kinds[Kind] }[];
  const entry = { hook };
  list.push(entry);
  return () => {
    const at = list.indexOf(entry);
    if (at < 0) return;
    list.splice(at, 1);
    if (
      installed.forwardPre.length +
        installed.forward.length +
        installed.backwardPre.length +
        installed.backward.length >
      0
    )
      return;
    hooks.delete(module);
    if (installed.before) Object.defineProperty(module, "forward", installed.before);
    else Reflect.deleteProperty(module, "forward");
  };
}

/** Defines a property `forward` that calls the hooks and the original method. */
function install(module: Module): Hooks {
  const installed: Hooks = {
    forwardPre: [],
    forward: [],
    backwardPre: [],
    backward: [],
    before: Object.getOwnPropertyDescriptor(module, "forward"),
  };
  const forward = module.forward as (...values: readonly unknown[]) => unknown;
  const value = (...values: readonly unknown[]) =>
    callWith(installed, module, values, (given) => forward.apply(module, [...given]));
  Object.defineProperty(module, "forward", { value, configurable: true, enumerable: false, writable: true });
  hooks.set(module, installed);
  return installed;
}

function callWith(
  installed: Hooks,
  module: Module,
  values: readonly unknown[],
  forward: (values: readonly unknown[]) => unknown,
): unknown {
  const name = module.constructor.name;
  let inputs = values;
  // copies of the lists: a hook may remove itself
  for (const { hook } of [...installed.forwardPre]) inputs = argumentsOf(name, hook(module, inputs)) ?? inputs;
  const passes = installed.backward.length + installed.backwardPre.length > 0;
  const pass = new Pass(installed, module);
  let output = forward(passes ? pass.watchInputs(inputs) : inputs);
  for (const { hook } of [...installed.forward]) {
    const replaced = hook(module, inputs, output);
    if (replaced !== undefined) output = replaced;
  }
  return passes ? pass.watchOutputs(output) : output;
}

function argumentsOf(operation: string, given: readonly unknown[] | undefined): readonly unknown[] | undefined {
  if (given === undefined || isArray(given)) return given;
  throw new ArgumentError(
    operation,
    "invalidHook",
    `expected a forward pre-hook to return an array of arguments or nothing, got ${describeValue(given)}`,
  );
}

/** One call of `forward`, with the state that backward hooks need. */
class Pass {
  /** Whether each tensor among the arguments requires a gradient. */
  private inputs: readonly boolean[] = [];
  private gradOutputs: Gradients = [];

  constructor(
    private readonly hooks: Hooks,
    private readonly module: Module,
  ) {}

  /**
   * Returns the arguments. Those that require gradients pass through one graph node, which calls the backward hooks.
   */
  watchInputs(values: readonly unknown[]): readonly unknown[] {
    const tensors = values.filter((value) => Tensor.isTensor(value));
    this.inputs = tensors.map((tensor) => tensor.requiresGrad);
    const watched = tensors.filter((tensor) => tensor.requiresGrad);
    if (watched.length === 0) return values;
    const passed = PassInputs.apply(this, ...watched);
    const next = new Map(watched.map((tensor, at) => [tensor, passed[at]]));
    return values.map((value) => next.get(value as Tensor) ?? value);
  }

  /**
   * Returns the result. Tensors that require gradients pass through one graph node, which calls the backward pre-hooks.
   */
  watchOutputs(output: unknown): unknown {
    const tensors = tensorsIn(output).filter((tensor) => tensor.requiresGrad);
    if (tensors.length === 0) return output;
    const passed = PassOutputs.apply(this, ...tensors);
    const next = new Map(tensors.map((tensor, at) => [tensor, passed[at]]));
    return replacedIn(output, next);
  }

  arriveAtOutputs(gradients: Gradients): Gradients {
    let current = gradients;
    for (const { hook } of [...this.hooks.backwardPre])
      current = gradientsOf(this.module, "pre-hook", hook(this.module, current), current);
    this.gradOutputs = current.map((gradient) => gradient && keep(gradient));
    if (!this.inputs.includes(true)) this.arriveAtInputs([]);
    return current;
  }

  arriveAtInputs(gradients: Gradients): Gradients {
    let at = 0;
    let current: Gradients = this.inputs.map((has) => (has ? (gradients[at++] ?? null) : null));
    for (const gradient of current) if (gradient) keep(gradient);
    for (const { hook } of [...this.hooks.backward])
      current = gradientsOf(this.module, "hook", hook(this.module, current, this.gradOutputs), current);
    return current.filter((_, index) => this.inputs[index]);
  }
}

function gradientsOf(module: Module, kind: string, given: Gradients | undefined, before: Gradients): Gradients {
  if (given === undefined) return before;
  if (isArray(given) && given.length === before.length) return given;
  throw new ArgumentError(
    module.constructor.name,
    "invalidHook",
    `expected a backward ${kind} to return ${before.length} gradients or nothing, got ${describeValue(given)}`,
  );
}

/** The identity on a module's inputs. */
class PassInputs extends Differentiable {
  static forward(context: FunctionContext, pass: Pass, ...inputs: readonly Tensor[]): readonly Tensor[] {
    context["pass"] = pass;
    return inputs.map((input) => detach(input));
  }

  static backward(context: FunctionContext, ...gradients: (Tensor | null)[]): Gradients {
    return [null, ...(context["pass"] as Pass).arriveAtInputs(gradients)];
  }
}

/** The identity on a module's outputs. */
class PassOutputs extends Differentiable {
  static forward(context: FunctionContext, pass: Pass, ...outputs: readonly Tensor[]): readonly Tensor[] {
    context["pass"] = pass;
    return outputs.map((output) => detach(output));
  }

  static backward(context: FunctionContext, ...gradients: (Tensor | null)[]): Gradients {
    return [null, ...(context["pass"] as Pass).arriveAtOutputs(gradients)];
  }
}

const isPlain = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;

/** Returns the tensors in a result: the result itself, or those in its arrays and plain objects, each once. */
function tensorsIn(value: unknown): Tensor[] {
  if (Tensor.isTensor(value)) return [value];
  const parts = isArray(value) ? value : isPlain(value) ? Object.values(value) : [];
  return [...new Set(parts.flatMap(tensorsIn))];
}

function replacedIn(value: unknown, next: ReadonlyMap<Tensor, Tensor>): unknown {
  if (Tensor.isTensor(value)) return next.get(value) ?? value;
  if (isArray(value)) return value.map((part) => replacedIn(part, next));
  if (!isPlain(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, replacedIn(part, next)]));
}
