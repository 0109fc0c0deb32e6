/** Checks of layer options, made before any weight is initialized. */
import { ArgumentError } from "../core/errors.ts";

/** @internal @throws {ArgumentError} unless all are whole numbers of at least 1. */
export function checkCounts(layer: string, counts: Readonly<Record<string, number>>): void {
  for (const [name, value] of Object.entries(counts))
    if (!Number.isSafeInteger(value) || value < 1)
      throw new ArgumentError(
        layer,
        "invalidSize",
        `expected ${name} to be a whole number of at least 1, got ${String(value)}`,
      );
}

/** @internal @throws {ArgumentError} unless it is in [0, 1). */
export function checkProbability(layer: string, name: string, value: number): number {
  if (value >= 0 && value < 1) return value;
  throw new ArgumentError(
    layer,
    "invalidProbability",
    `expected ${name} to be a probability in [0, 1), got ${String(value)}`,
  );
}
