/** Determines which backends a call tries, and in which order. */
import { ContextVariable } from "../core/context.ts";
import { environment, environmentFlag } from "../core/environment.ts";
import { ArgumentError } from "../core/errors.ts";
import { aFunction, choice, flag } from "../core/kinds.ts";
import { expectNothing, type Kind, operand, parameters } from "../core/parameters.ts";
import { type BackendName, backendNames } from "./names.ts";

const isBackendName = (name: string): name is BackendName => (backendNames as readonly string[]).includes(name);

function fromEnvironment(): BackendName {
  const name = environment("ORCHARD_BACKEND");
  if (name !== undefined) {
    if (isBackendName(name)) return name;
    throw new ArgumentError(
      "ORCHARD_BACKEND",
      "unknownBackend",
      `expected a backend (${backendNames.join(", ")}), got "${name}"`,
    );
  }
  const isAppleSilicon = process.platform === "darwin" && process.arch === "arm64";
  return isAppleSilicon ? "metal" : "cpu"; // the software device on Linux must be requested explicitly
}

let processBackend: BackendName = fromEnvironment();
let processStrict = environmentFlag("ORCHARD_STRICT");

/** The backend set by {@link withBackend}; null: the process's. */
const preferred = new ContextVariable<BackendName | null>(null);
/** Whether a fallback is an error; null: the process's setting. */
const strict = new ContextVariable<boolean | null>(null);

const backend: Kind<BackendName> = {
  ...choice(...backendNames),
  expected: `a backend (${backendNames.join(", ")})`,
  error: [ArgumentError, "unknownBackend"],
};
const body = operand(aFunction<() => unknown>());

const readSetBackend = parameters("setBackend", { name: operand(backend) });
const readWithBackend = parameters("withBackend", { name: operand(backend), body });
const readSetStrict = parameters("setStrict", { value: operand(flag) });
const readWithStrict = parameters("withStrict", { value: operand(flag), body });

/**
 * Sets the backend that calls try first. Calls that it can't run fall back to the next backends in the order metal,
 * cpu, reference.
 *
 * @example
 * setBackend("reference");
 */
export function setBackend(name: BackendName): void;
export function setBackend(...values: unknown[]): void {
  processBackend = readSetBackend(values).name;
}

/** Returns the backend set by {@link withBackend}; null if there is none. */
export const getScopedBackend = (): BackendName | null => preferred.get();

/**
 * Returns the backend that calls try first.
 *
 * @example
 * withBackend("reference", () => getBackend()); // "reference"
 */
export function getBackend(): BackendName;
export function getBackend(...values: unknown[]): BackendName {
  expectNothing("getBackend", values);
  return preferred.get() ?? processBackend;
}

/**
 * Runs `body` with another backend tried first, including after its awaits.
 *
 * @example
 * const expected = withBackend("reference", () => softmax(x));
 */
export function withBackend<Result>(name: BackendName, body: () => Result): Result;
export function withBackend<Result>(name: BackendName, body: () => Result, ...others: unknown[]): Result {
  if (others.length > 0 || !isBackendName(name) || typeof body !== "function") readWithBackend([name, body, ...others]);
  return preferred.run(name, body);
}

/**
 * Turns strict mode on or off. In strict mode, a call that the first backend can't run throws instead of falling back.
 *
 * @example
 * setStrict(true);
 */
export function setStrict(value: boolean): void;
export function setStrict(...values: unknown[]): void {
  processStrict = readSetStrict(values).value;
}

/**
 * Returns whether strict mode is on, by {@link withStrict}, {@link setStrict} or `ORCHARD_STRICT`, in this order.
 *
 * @example
 * withStrict(true, () => isStrict()); // true
 */
export function isStrict(): boolean;
export function isStrict(...values: unknown[]): boolean {
  expectNothing("isStrict", values);
  return strict.get() ?? processStrict;
}

/**
 * Runs `body` with strict mode on or off.
 *
 * @example
 * const y = withStrict(true, () => softmax(x)); // on the first backend, or an error
 */
export function withStrict<Result>(value: boolean, body: () => Result): Result;
export function withStrict<Result>(value: boolean, body: () => Result, ...others: unknown[]): Result {
  if (others.length > 0 || typeof value !== "boolean" || typeof body !== "function")
    readWithStrict([value, body, ...others]);
  return strict.run(value, body);
}

/** For each backend, the backends to try in order, starting with itself. */
export const orderFrom: Readonly<Record<BackendName, readonly BackendName[]>> = {
  metal: ["metal", "cpu", "reference"],
  cpu: ["cpu", "reference"],
  reference: ["reference"],
};
