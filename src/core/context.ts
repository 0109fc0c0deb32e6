/**
 * Context variables: state that affects a computation without being an argument, such as whether gradients are
 * recorded, which tidy scope owns new tensors, and which backend is preferred. Each folder declares its variables.
 */
import type { AsyncLocalStorage } from "node:async_hooks";

/**
 * The values of all variables at one time, each at its index. A frame does not change once it is created; variables
 * that are declared later are missing from it.
 */
type Frame = readonly unknown[];

// Reading an AsyncLocalStorage costs more than a small operation, so it is read only while an asynchronous body runs.
// Its module takes a millisecond to load, so it is loaded for the first body.
let storage: AsyncLocalStorage<Frame> | undefined;
const storageOfFrames = (): AsyncLocalStorage<Frame> => {
  const { AsyncLocalStorage } = require("node:async_hooks") as typeof import("node:async_hooks");
  storage = new AsyncLocalStorage();
  return storage;
};
const root: unknown[] = [];
let current: Frame = root;
let asynchronousBodies = 0;

const currentFrame = (): Frame => (asynchronousBodies === 0 ? current : (storage?.getStore() ?? root));

/**
 * A variable whose value is set for the body of a call (`noGrad(() => …)`), including after its `await`s, but not for
 * other code that runs in between. It behaves like `AsyncContext.Variable` of the AsyncContext proposal for JavaScript.
 *
 * @example
 * const verbose = new ContextVariable(false);
 * verbose.run(true, () => verbose.get()); // true
 */
export class ContextVariable<Value> {
  private readonly index = root.length;

  /** @param initial the value outside of every {@link run}; undefined is not a valid value */
  constructor(private readonly initial: Value) {
    root.push(initial);
  }

  get(): Value {
    const value = currentFrame()[this.index];
    return (value === undefined ? this.initial : value) as Value; // undefined for a newer variable
  }

  /** Runs `body` with another value. If `body` returns a promise, the value is kept until it settles. */
  run<Result>(value: Value, body: () => Result): Result {
    return runWith([this.bind(value)], body);
  }

  /** Returns a binding for {@link runWith}. */
  bind(value: Value): Binding {
    return { index: this.index, value };
  }
}

/** A variable's value in the body of {@link runWith}. */
export interface Binding {
  readonly index: number;
  readonly value: unknown;
}

/** Runs `body` with other values of several variables. If it returns a promise, they are kept until it settles. */
export function runWith<Result>(bindings: readonly Binding[], body: () => Result): Result {
  const inside = currentFrame().slice();
  for (const { index, value } of bindings) inside[index] = value;
  const outside = current;
  return (storage ?? storageOfFrames()).run(inside, () => {
    current = inside;
    let result: Result;
    try {
      result = body();
    } finally {
      current = outside;
    }
    if (!isPromise(result)) return result;
    asynchronousBodies++;
    return result.finally(() => {
      asynchronousBodies--;
    }) as Result;
  });
}

/** Whether a value is a promise. */
export function isPromise(value: unknown): value is Promise<unknown> {
  return value instanceof Promise;
}
