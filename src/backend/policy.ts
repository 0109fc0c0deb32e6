/** Which backends a call tries, in which order. */
import { ContextVariable } from "../core/context.ts";
import { environment, environmentFlag } from "../core/environment.ts";
import { ArgumentError } from "../core/errors.ts";
import { type BackendName, backendNames } from "./names.ts";

function fromEnvironment(): BackendName {
  const name = environment("ORCHARD_BACKEND");
  if (name !== undefined) return checkName("ORCHARD_BACKEND", name);
  const isAppleSilicon = process.platform === "darwin" && process.arch === "arm64";
  return isAppleSilicon ? "metal" : "cpu"; // the software device on Linux is used only where it is named
}

let processBackend: BackendName = fromEnvironment();
let processStrict = environmentFlag("ORCHARD_STRICT");

/** The backend that {@link withBackend} asks for; null: the process's. */
const preferred = new ContextVariable<BackendName | null>(null);
/** Whether a fallback is an error; null: the process's setting. */
const strict = new ContextVariable<boolean | null>(null);

function checkName(operation: string, name: string): BackendName {
  if ((backendNames as readonly string[]).includes(name)) return name as BackendName;
  throw new ArgumentError(
    operation,
    "unknownBackend",
    `expected a backend (${backendNames.join(", ")}), got "${name}"`,
  );
}

/**
 * Chooses the backend that calls try first from now on. What it can't run goes to the ones after it: metal, cpu,
 * reference.
 *
 * @example
 * setBackend("reference");
 */
export function setBackend(name: BackendName): void {
  processBackend = checkName("setBackend", name);
}

/** The backend that {@link withBackend} asks for here; null where it does not. */
export const getScopedBackend = (): BackendName | null => preferred.get();

/** The backend that calls try first now. */
export const getBackend = (): BackendName => preferred.get() ?? processBackend;

/**
 * Runs `body` with another backend tried first, across its awaits.
 *
 * @example
 * const expected = withBackend("reference", () => softmax(x));
 */
export const withBackend = <Result>(name: BackendName, body: () => Result): Result =>
  preferred.run(checkName("withBackend", name), body);

/** In strict mode a call that its first backend can't run is an error instead of a fallback. */
export function setStrict(value: boolean): void {
  processStrict = value;
}

/** Whether strict mode is on now: by {@link withStrict}, {@link setStrict} or `ORCHARD_STRICT`, in this order. */
export const isStrict = (): boolean => strict.get() ?? processStrict;

/**
 * Runs `body` in strict mode, or out of it.
 *
 * @example
 * const y = withStrict(true, () => softmax(x)); // on the first backend, or an error
 */
export const withStrict = <Result>(value: boolean, body: () => Result): Result => strict.run(value, body);

/** For each backend, itself and those after it, in the order in which they are tried. */
export const orderFrom: Readonly<Record<BackendName, readonly BackendName[]>> = {
  metal: ["metal", "cpu", "reference"],
  cpu: ["cpu", "reference"],
  reference: ["reference"],
};
