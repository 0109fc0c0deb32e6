/**
 * Decides after which failures of a backend the next one may compute, reports failures, and keeps the reasons for
 * fallbacks.
 */
import { BackendError, KernelCompileError, type OrchardError, OutOfMemoryError, ShapeError } from "../core/errors.ts";
import { forgetWarnings, warnOnce } from "../core/warn.ts";
import type { Tensor } from "../tensor/tensor.ts";
import type { Primitive } from "./backend.ts";
import type { BackendName } from "./names.ts";
import { isStrict } from "./policy.ts";
import { whyUnavailable } from "./registry.ts";

/** The reason for the backend that a call tries first. */
export const PREFERRED = "preferred";

/** Returns why a backend does not support a call, as far as is known before it runs; undefined if it may. */
export function whyUnsupported<Attributes>(
  primitive: Primitive<Attributes>,
  name: BackendName,
  inputs: readonly Tensor[],
  attributes: Attributes,
): string | undefined {
  const implementation = primitive.implementations[name];
  if ("missing" in implementation) return implementation.missing;
  return (
    whyUnavailable(name) ??
    implementation.unsupported?.({ operation: primitive.name, inputs, attributes }) ??
    (broken.size > 0 ? broken.get(callKind(primitive.name, name, inputs)) : undefined)
  );
}

export const addReason = (reason: string, name: BackendName, why: string): string =>
  reason === PREFERRED ? `${name}: ${why}` : `${reason}; ${name}: ${why}`;

/** Skips a backend that does not support a call. Warns once if the backend is unavailable. */
export function skipBackend(operation: string, name: BackendName, reason: string): void {
  refuseIfStrict(operation, reason);
  const why = whyUnavailable(name);
  if (why !== undefined) warnOnce(`${name} is unavailable: ${why}`);
}

export function refuseIfStrict(operation: string, reason: string, cause?: unknown): void {
  if (!isStrict()) return;
  throw new BackendError(
    operation,
    "strict",
    `strict mode allows no fallback (${reason}). setStrict(false) allows fallbacks; withBackend(…) chooses another ` +
      "backend.",
    { cause },
  );
}

/**
 * Whether another backend may succeed: after failures of the device, of a compilation, or of a device's memory. Wrong
 * arguments fail everywhere, and the memory limit applies to all backends together.
 */
export const isRecoverable = (error: unknown): error is OrchardError =>
  error instanceof KernelCompileError ||
  (error instanceof OutOfMemoryError && error.code !== "memoryLimit") ||
  (error instanceof BackendError && error.code !== "strict");

// Kinds of calls that are not tried again on a backend that could not compile them.
const broken = new Map<string, string>();

const callKind = (operation: string, name: BackendName, inputs: readonly Tensor[]): string =>
  `${operation} ${name} ${inputs.map(({ dtype }) => dtype).join(" ")}`;

/** Warns once that a backend failed, and why. Returns the cause in one line. */
export function reportFailure(
  operation: string,
  name: BackendName,
  inputs: readonly Tensor[],
  error: OrchardError,
): string {
  // Numbers in the message would make every failure a different cause.
  const cause = error instanceof OutOfMemoryError ? "out of memory" : (error.message.split("\n", 1)[0] ?? error.code);
  if (error instanceof KernelCompileError) broken.set(callKind(operation, name, inputs), cause);
  const key = `${operation} ${name} ${cause}`;
  warnOnce(`${operation} could not run on ${name} and falls back: ${error.message}`, key);
  return cause;
}

/** Forgets reported failures and kernels that did not compile, so that they are tried and reported again. */
export function forgetFailures(): void {
  broken.clear();
  forgetWarnings();
}

/** Adds the user's operation to a failure, since allocators do not know it. */
export function withOperation(operation: string, failure: unknown): unknown {
  if (failure instanceof ShapeError && failure.code === "tooManyElements")
    return new ShapeError(operation, failure.code, failure.message.slice(failure.operation.length + 3));
  if (!(failure instanceof OutOfMemoryError) || failure.operation === operation) return failure;
  const cause = failure.cause instanceof OutOfMemoryError ? failure.cause : failure;
  const message = `the result can't be allocated: ${cause.message}`;
  return new OutOfMemoryError(operation, failure.code, message, { cause });
}

/** Converts JavaScript's out-of-memory errors in the reference backend, which computes in JavaScript arrays. */
export function typedMemoryError(operation: string, error: unknown): unknown {
  if (!(error instanceof RangeError) || !/out of memory|array length|array size/i.test(error.message)) return error;
  const message = `JavaScript ran out of memory: ${error.message}`;
  return new OutOfMemoryError(operation, "outOfMemory", message, { cause: error });
}
