/**
 * What surrounds a computation without being an argument of it: whether gradients are recorded, which tidy scope owns
 * new tensors, which backend is preferred. Each folder declares the variables that are its own.
 */
import { AsyncLocalStorage } from "node:async_hooks";

/**
 * The values of all variables at one time, each at its index. Never changed once it is made, but for variables that are
 * declared later.
 */
type Frame = readonly unknown[];

// Reading an AsyncLocalStorage costs more than a small operation, so it is read only while an asynchronous body is
// under way.
const storage = new AsyncLocalStorage<Frame>();
const root: unknown[] = [];
let current: Frame = root;
let asynchronousBodies = 0;

const currentFrame = (): Frame => (asynchronousBodies === 0 ? current : (storage.getStore() ?? root));

/**
 * A variable whose value holds for the body of a call (`noGrad(() => …)`), across its `await`s too, and never for code
 * that runs in between. It does what `AsyncContext.Variable` will do, of a proposal for JavaScript.
 *
 * @example
 * const verbose = new ContextVariable(false);
 * verbose.run(true, () => verbose.get()); // true
 */
export class ContextVariable<Value> {
  private readonly index = root.length;

  /** @param initial its value outside of every {@link run}; no value is undefined */
  constructor(private readonly initial: Value) {
    root.push(initial);
  }

  get(): Value {
    const value = currentFrame()[this.index];
    return (value === undefined ? this.initial : value) as Value; // undefined: declared after the frame was made
  }

  /** Runs `body` with another value; where it returns a promise, until that settles. */
  run<Result>(value: Value, body: () => Result): Result {
    return runWith([this.bind(value)], body);
  }

  /** A value for {@link runWith}. */
  bind(value: Value): Binding {
    return { index: this.index, value };
  }
}

/** A variable's value, for the body of {@link runWith}. */
export interface Binding {
  readonly index: number;
  readonly value: unknown;
}

/** Runs `body` with other values of several variables; where it returns a promise, until that settles. */
export function runWith<Result>(bindings: readonly Binding[], body: () => Result): Result {
  const inside = currentFrame().slice();
  for (const { index, value } of bindings) inside[index] = value;
  const outside = current;
  return storage.run(inside, () => {
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

/** Whether a value is to be awaited. */
export function isPromise(value: unknown): value is Promise<unknown> {
  return value instanceof Promise;
}
