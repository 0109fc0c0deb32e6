/**
 * What surrounds a computation without being an argument of it: whether gradients are recorded, which tidy scope owns new
 * tensors, which backend is wanted. Each holds for the body of a call (`noGrad(() => …)`), across its `await`s too, and never for
 * code that runs in between.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { AnomalyKind } from "../backend/anomaly.ts";
import type { BackendName } from "../backend/names.ts";
import type { TidyScope } from "../tensor/tidy.ts";

export interface Ambient {
  readonly gradEnabled: boolean;
  readonly tidyScope: TidyScope | null;
  /** The backend that `withBackend` asks for; null: the process's. */
  readonly backend: BackendName | null;
  /** Whether a fallback is an error; null: the process's setting. */
  readonly strict: boolean | null;
  /** What each result is searched for; null: nothing. */
  readonly anomaly: AnomalyKind | null;
  /** Prefix of operation names in messages, such as `"backward of exp: "`. */
  readonly within: string;
}

const root: Ambient = {
  gradEnabled: true,
  tidyScope: null,
  backend: null,
  strict: null,
  anomaly: null,
  within: "",
};

// Reading an AsyncLocalStorage costs more than a small operation, so it is read only while an asynchronous body is under way.
const storage = new AsyncLocalStorage<Ambient>();
let current: Ambient = root;
let asynchronousBodies = 0;

/** What surrounds the code that runs now. */
export function ambient(): Ambient {
  return asynchronousBodies === 0 ? current : (storage.getStore() ?? root);
}

/** Runs `body` with some of its surroundings changed; where it returns a promise, until that settles. */
export function withAmbient<Result>(change: Partial<Ambient>, body: () => Result): Result {
  const inside = { ...ambient(), ...change };
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
