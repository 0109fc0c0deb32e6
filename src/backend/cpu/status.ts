import { ArgumentError, BackendError, type OrchardError, OutOfMemoryError } from "../../core/errors.ts";
import { limitOfMemory } from "../../tensor/reserve.ts";
import { Status, type StatusName } from "./abi.ts";
import type { Native } from "./loader.ts";

/** Throws the typed error of a status other than ok. `operation` is the user's operation. */
export function check(native: Native, status: number, operation: string): void {
  if (status !== Status.ok) throw errorOf(native, status, operation);
}

const constructors: Record<StatusName, new (operation: string, code: string, message: string) => OrchardError> = {
  ok: BackendError,
  invalidArgument: ArgumentError,
  outOfMemory: OutOfMemoryError,
  unsupported: BackendError,
  internal: BackendError,
  memoryLimit: OutOfMemoryError,
};
const names = new Map(Object.entries(Status).map(([name, code]) => [code as number, name as StatusName]));

/** Returns the typed error of a failed call, with the dylib's message and the operands' names. */
export function errorOf(
  native: Native,
  status: number,
  operation: string,
  operands: readonly string[] = [],
): OrchardError {
  const name = names.get(status) ?? "internal";
  const text = readText((buffer, capacity) => native.orchard_cpu_last_error(buffer, capacity));
  const named = (label: string, at: string) => (operands[+at] ? `${label} (${operands[+at]})` : label);
  const message = text.replace(/^(?:row \d+: )?operand (\d+)/, named);
  const whole = name === "memoryLimit" ? withSource(message) : message;
  return new constructors[name](operation, name, whole || `status ${status}, without a message`);
}

/** Adds the source of the memory limit, which the dylib does not know. */
function withSource(message: string): string {
  const { count, source } = limitOfMemory();
  return message.endsWith(` ${count}`) ? `${message} (${source})` : message;
}

/** Reads text of any length from a call that writes as much as fits and returns the total length. */
export function readText(call: (buffer: Uint8Array, capacity: number) => number): string {
  let buffer = new Uint8Array(2048);
  let length = call(buffer, buffer.length);
  if (length > buffer.length) {
    buffer = new Uint8Array(length);
    length = call(buffer, buffer.length);
  }
  return new TextDecoder().decode(buffer.subarray(0, length));
}
