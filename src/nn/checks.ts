/** What layers refuse when they are made, before any weight is drawn. */
import { ArgumentError } from "../core/errors.ts";

/** @internal @throws {ArgumentError} unless all are whole numbers of at least 1. */
export function checkCounts(layer: string, counts: Readonly<Record<string, number>>): void {
  for (const [name, value] of Object.entries(counts))
    if (!Number.isSafeInteger(value) || value < 1)
      throw new ArgumentError(layer, "invalidSize", `${name} is a whole number of at least 1, ${String(value)} came`);
}

/** @internal @throws {ArgumentError} unless it is in [0, 1). */
export function checkProbability(layer: string, name: string, value: number): number {
  if (value >= 0 && value < 1) return value;
  throw new ArgumentError(layer, "invalidProbability", `${name} is a probability in [0, 1), ${String(value)} came`);
}
