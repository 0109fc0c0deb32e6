import {
  ArgumentError,
  BackendError,
  DisposedError,
  KernelCompileError,
  type OrchardError,
  OutOfMemoryError,
} from "../../core/errors.ts";
import { type StatusName, statusNames } from "./abi.ts";
import type { Native } from "./loader.ts";

/** Throws the typed error of a status other than ok. `operation` is the user's operation. */
export function check(native: Native, status: number, operation: string): void {
  if (status !== 0) throw errorOf(native, status, operation);
}

/** Returns the typed error of a failed call, with the dylib's message. */
export function errorOf(native: Native, status: number, operation: string): OrchardError {
  const name = statusNames[status];
  const message = lastError(native) || `status ${status}, without a message`;
  if (name === undefined || name === "ok") return new BackendError(operation, "internal", message);
  return constructors[name](operation, name, message);
}

const constructors: Record<
  Exclude<StatusName, "ok">,
  (operation: string, code: string, message: string) => OrchardError
> = {
  invalidArgument: (...parts) => new ArgumentError(...parts),
  staleHandle: (...parts) => new DisposedError(...parts),
  wrongKind: (...parts) => new ArgumentError(...parts),
  compileFailed: (...parts) => new KernelCompileError(...parts),
  functionNotFound: (...parts) => new KernelCompileError(...parts),
  constantMissing: (...parts) => new KernelCompileError(...parts),
  bindingMissing: (...parts) => new ArgumentError(...parts),
  limitExceeded: (...parts) => new ArgumentError(...parts),
  outOfMemory: (...parts) => new OutOfMemoryError(...parts),
  deviceFailed: (...parts) => new BackendError(...parts),
  timeout: (...parts) => new BackendError(...parts),
  closed: (...parts) => new DisposedError(...parts),
  unsupported: (...parts) => new BackendError(...parts),
  io: (...parts) => new BackendError(...parts),
  internal: (...parts) => new BackendError(...parts),
};

/** A call that returns text: `(buffer, capacity, length) => status`. */
export type TextCall = (buffer: Uint8Array, capacity: number, length: BigUint64Array) => number;

const LIMIT_EXCEEDED = statusNames.indexOf("limitExceeded");
const decoder = new TextDecoder();

/** Reads text of any length, retrying with a larger buffer if needed. */
export function readText(native: Native, operation: string, call: TextCall): string {
  const length = new BigUint64Array(1);
  for (let buffer = new Uint8Array(4096); ; buffer = new Uint8Array(Number(length[0]) + 4096)) {
    const status = call(buffer, buffer.length, length);
    const whole = Number(length[0]);
    if (status === 0) return decoder.decode(buffer.subarray(0, whole));
    if (status !== LIMIT_EXCEEDED || whole <= buffer.length) throw errorOf(native, status, operation);
  }
}

function lastError(native: Native): string {
  const length = new BigUint64Array(1);
  let buffer = new Uint8Array(2048);
  native.orchard_last_error(buffer, buffer.length, length);
  if (Number(length[0]) > buffer.length) {
    buffer = new Uint8Array(Number(length[0]));
    native.orchard_last_error(buffer, buffer.length, length);
  }
  return decoder.decode(buffer.subarray(0, Number(length[0])));
}
