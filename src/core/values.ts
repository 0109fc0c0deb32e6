/**
 * Values of unknown type that the code has checked elsewhere, such as members of a configuration whose schema was
 * checked. Each function `…In` returns its argument.
 *
 * @throws {TypeError} for any other value: a fault of the code, not of a user's arguments
 */

/** Whether a value is a whole number that float64 represents exactly: `Number.isSafeInteger` with a type. */
export const isSafeInteger = (value: unknown): value is number => Number.isSafeInteger(value);

export function numberIn(value: unknown): number {
  if (typeof value !== "number") throw new TypeError(`expected a number, got ${typeof value}`);
  return value;
}

export function stringIn(value: unknown): string {
  if (typeof value !== "string") throw new TypeError(`expected a string, got ${typeof value}`);
  return value;
}

export function listIn(value: unknown): unknown[] {
  if (!Array.isArray(value)) throw new TypeError(`expected an array, got ${typeof value}`);
  return value;
}

export function recordIn(value: unknown): Record<string, unknown> {
  if (!isRecord(value)) throw new TypeError(`expected an object, got ${typeof value}`);
  return value;
}

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;
