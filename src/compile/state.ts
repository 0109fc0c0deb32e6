/**
 * The state that a compiled function may change: modules, optimizers and tensors. Also records properties of them that
 * must not change between calls.
 */
import { describeValue } from "../core/describe.ts";
import { ArgumentError } from "../core/errors.ts";
import { reading } from "../core/parameters.ts";
import { KeyValueCache } from "../nn/cache/cache.ts";
import { hasHooks } from "../nn/layers/hooks.ts";
import { Module } from "../nn/layers/module.ts";
import type { LearningRate } from "../optim/groups.ts";
import { Optimizer } from "../optim/optimizer.ts";
import { Tensor } from "../tensor/tensor.ts";

/** An optimizer, with any options. */
interface AnyOptimizer {
  readonly name: string;
  step(): void;
  zeroGrad(): void;
}

/**
 * State that a compiled function may change: modules, optimizers, tensors, and caches of keys and values, in arrays at
 * any depth.
 */
export type CompileState = Module | AnyOptimizer | Tensor | KeyValueCache | readonly CompileState[];

/** An optimizer whose step can be compiled. */
export type StateOptimizer = Optimizer<LearningRate>;

/** A property that the recorded calls depend on. */
interface Watched {
  readonly holder: Record<string | number, unknown>;
  readonly key: string | number;
  readonly value: unknown;
  readonly name: string;
}

/** Deeper than any list of state; keeps cyclic arrays from overflowing the stack. */
const MOST_DEPTH = 100;

/** The objects of the state, each once. */
export class State {
  readonly modules: readonly Module[];
  readonly optimizers: readonly StateOptimizer[];
  readonly caches: readonly KeyValueCache[];
  /** Tensors given directly. */
  private readonly given: readonly Tensor[];

  /** @throws {ArgumentError} for other values, and for optimizers that can't be compiled. */
  constructor(values: unknown) {
    const modules = new Set<Module>();
    const optimizers = new Set<StateOptimizer>();
    const caches = new Set<KeyValueCache>();
    const given = new Set<Tensor>();
    const visit = (value: unknown, depth: number): void => {
      if (Array.isArray(value) && depth < MOST_DEPTH) {
        // a hole of a sparse array is rejected like any other wrong value
        for (let at = 0; at < value.length; at++) visit(value[at], depth + 1);
      } else if (value instanceof Module) for (const module of value.modules()) modules.add(module);
      else if (value instanceof Optimizer && value.stepKey() !== null) optimizers.add(value);
      else if (value instanceof KeyValueCache) caches.add(value);
      else if (Tensor.isTensor(value)) given.add(value);
      else throw stateError(value);
    };
    reading("compile", () => visit(values, 0));
    [this.modules, this.optimizers, this.given] = [[...modules], [...optimizers], [...given]];
    this.caches = [...caches];
  }

  /** Whether an object is a module, an optimizer or a cache of the state. */
  has(value: object): boolean {
    return [this.modules, this.optimizers, this.caches].some((objects: readonly object[]) => objects.includes(value));
  }

  /** Parameters and buffers of modules, parameters of optimizers, and given tensors. */
  tensors(): Set<Tensor> {
    const found = new Set<Tensor>(this.given);
    for (const module of this.modules) {
      for (const tensor of module.namedParameters().values()) found.add(tensor);
      for (const tensor of module.namedBuffers().values()) found.add(tensor);
    }
    for (const { slots } of this.optimizers) for (const { parameter } of slots) found.add(parameter);
    return found;
  }

  /** The keys and values in caches. They may be replaced between calls. */
  cachedTensors(): Tensor[] {
    return this.caches.flatMap(({ layers }) => layers.flatMap((layer) => layer.tensors()));
  }

  /** The state tensors of optimizers. */
  optimizerTensors(): Tensor[] {
    return this.optimizers.flatMap(({ slots }) => slots.flatMap(({ state }) => Object.values(state)));
  }

  /** Returns why calls run plainly; undefined if they can be compiled. */
  unsupported(): string | undefined {
    const hooked = this.modules.find(hasHooks);
    return hooked && `a ${hooked.constructor.name} has hooks`;
  }

  /** Returns a description of all properties that recorded calls depend on. */
  snapshot(): StateSnapshot {
    return new StateSnapshot(this);
  }
}

function stateError(value: unknown): ArgumentError {
  if (value instanceof Optimizer)
    return new ArgumentError(
      "compile",
      "unsupportedOptimizer",
      `${value.name} reads the loss during its step, which compile can't do; compile the closure that computes the ` +
        "loss and its gradients, with the model as state, and pass it to step()",
    );
  return new ArgumentError(
    "compile",
    "invalidOption",
    `expected state to have modules, optimizers and tensors, got ${describeValue(value)}`,
  );
}

/** Properties of the state at one time. */
export class StateSnapshot {
  private readonly watched: Watched[] = [];
  private readonly hooks: readonly { readonly tensor: Tensor; readonly count: number; readonly needs: boolean }[];
  private readonly keys: readonly (string | null)[];

  constructor(private readonly state: State) {
    for (const module of state.modules) {
      const name = module.constructor.name;
      this.watch(module, "forward", name);
      for (const [key] of Object.entries(module)) this.watch(module, key, name);
    }
    for (const { name, slots } of state.optimizers) for (const slot of slots) this.watch(slot, "state", name);
    this.hooks = [...state.tensors()].map((tensor) => ({
      tensor,
      count: tensor.hooks?.length ?? 0,
      needs: tensor.requiresGrad,
    }));
    this.keys = state.optimizers.map((optimizer) => optimizer.stepKey());
  }

  private watch(holder: object, key: string | number, name: string): void {
    const record = holder as Record<string | number, unknown>;
    const value = record[key];
    this.watched.push({ holder: record, key, value, name: `${name}.${key}` });
    if (!Array.isArray(value)) return;
    this.watch(value, "length", `${name}.${key}`);
    for (const at of value.keys()) this.watch(value, at, `${name}.${key}`);
  }

  /** Returns the name of a property that has changed; undefined if none has. Allocates nothing. */
  changed(): string | undefined {
    for (let at = 0; at < this.watched.length; at++) {
      const { holder, key, value, name } = this.watched[at];
      if (!Object.is(holder[key], value)) return name;
    }
    for (let at = 0; at < this.hooks.length; at++) {
      const { tensor, count, needs } = this.hooks[at];
      if ((tensor.hooks?.length ?? 0) !== count) return "the hooks of a parameter";
      if (tensor.requiresGrad !== needs) return "requiresGrad of a parameter";
    }
    for (let at = 0; at < this.keys.length; at++)
      if (this.state.optimizers[at].stepKey() !== this.keys[at])
        return `the options of ${this.state.optimizers[at].name}`;
    return undefined;
  }
}
