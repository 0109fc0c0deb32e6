/** Which backends a call tries, in which order. */
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
  return isAppleSilicon ? "metal" : "cpu"; // the software device on Linux is used only where it is named
}

let processBackend: BackendName = fromEnvironment();
let processStrict = environmentFlag("ORCHARD_STRICT");

/** The backend that {@link withBackend} asks for; null: the process's. */
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
 * Chooses the backend that calls try first from now on. What it can't run goes to the ones after it: metal, cpu,
 * reference.
 *
 * @example
 * setBackend("reference");
 */
export function setBackend(name: BackendName): void;
export function setBackend(...values: unknown[]): void {
  processBackend = readSetBackend(values).name;
}

/** The backend that {@link withBackend} asks for here; null where it does not. */
export const getScopedBackend = (): BackendName | null => preferred.get();

/** The backend that calls try first now. */
export function getBackend(): BackendName;
export function getBackend(...values: unknown[]): BackendName {
  expectNothing("getBackend", values);
  return preferred.get() ?? processBackend;
}

/**
 * Runs `body` with another backend tried first, across its awaits.
 *
 * @example
 * const expected = withBackend("reference", () => softmax(x));
 */
export function withBackend<Result>(name: BackendName, body: () => Result): Result;
export function withBackend<Result>(name: BackendName, body: () => Result, ...others: unknown[]): Result {
  if (others.length > 0 || !isBackendName(name) || typeof body !== "function") readWithBackend([name, body, ...others]);
  return preferred.run(name, body);
}

/** In strict mode a call that its first backend can't run is an error instead of a fallback. */
export function setStrict(value: boolean): void;
export function setStrict(...values: unknown[]): void {
  processStrict = readSetStrict(values).value;
}

/** Whether strict mode is on now: by {@link withStrict}, {@link setStrict} or `ORCHARD_STRICT`, in this order. */
export function isStrict(): boolean;
export function isStrict(...values: unknown[]): boolean {
  expectNothing("isStrict", values);
  return strict.get() ?? processStrict;
}

/**
 * Runs `body` in strict mode, or out of it.
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

/** For each backend, itself and those after it, in the order in which they are tried. */
export const orderFrom: Readonly<Record<BackendName, readonly BackendName[]>> = {
  metal: ["metal", "cpu", "reference"],
  cpu: ["cpu", "reference"],
  reference: ["reference"],
};
