import { ContextVariable } from "../core/context.ts";
import { OrchardError } from "../core/errors.ts";
import { aFunction, flag } from "../core/kinds.ts";
import { named, operand, parameters } from "../core/parameters.ts";
import { within } from "../observe/within.ts";
import { isFloat } from "../tensor/dtype.ts";
import type { Tensor } from "../tensor/tensor.ts";

/**
 * An operation made NaN out of operands that had none (`detectAnomaly`), or an infinity out of finite ones where these
 * are searched for.
 */
export class AnomalyError extends OrchardError {
  override readonly name = "AnomalyError";
}

interface Anomaly {
  /** What is searched for, and how operands without it are described. */
  readonly words: readonly [found: string, without: string];
  is(value: number): boolean;
}

const anomalies = {
  nan: { words: ["NaN", "without NaN"], is: Number.isNaN },
  notFinite: { words: ["number that is not finite", "that are finite"], is: (value) => !Number.isFinite(value) },
} as const satisfies Readonly<Record<string, Anomaly>>;

/** Also the error's code. */
export type AnomalyKind = keyof typeof anomalies;

/** @internal What each result is searched for; null: nothing. */
export const searchedFor = new ContextVariable<AnomalyKind | null>(null);

/** Options of {@link detectAnomaly}. */
export interface AnomalyOptions {
  /** Whether infinities are searched for too. Default false. */
  infinity?: boolean | undefined;
}

const anomalyParameters = parameters("detectAnomaly", {
  body: operand(aFunction<() => unknown>()),
  infinity: named(flag, false),
});

/**
 * Runs `body` and searches every result, forward and backward, for NaN: the first operation that makes one out of
 * operands without NaN throws an `AnomalyError` that names it. Slow; for finding the cause.
 *
 * @param options `infinity`: searches for infinities too, and names the first operation that makes one, or NaN, out of
 * finite operands
 *
 * @example
 * detectAnomaly(() => loss.backward()); // an AnomalyError that names the operation which first made a NaN
 */
export function detectAnomaly<Result>(body: () => Result, options?: AnomalyOptions): Result;
export function detectAnomaly(...values: unknown[]): unknown {
  const { body, infinity } = anomalyParameters(values);
  return searchedFor.run(infinity ? "notFinite" : "nan", body);
}

/** @throws {AnomalyError} where an output holds what is searched for and no input does. */
export function checkForAnomaly(
  kind: AnomalyKind,
  operation: string,
  inputs: readonly Tensor[],
  outputs: readonly Tensor[],
): void {
  const { words, is } = anomalies[kind];
  const index = outputs.findIndex((output) => holds(output, is));
  if (index < 0 || inputs.some((input) => holds(input, is))) return;
  const operands = inputs.map((input) => input.describe()).join(", ") || "no operands";
  const [found, without] = words;
  throw new AnomalyError(
    `${within.get()}${operation}`,
    kind,
    `it made the first ${found}, in result ${index} (${outputs[index]!.describe()}), from ${operands} ${without}`,
  );
}

function holds(tensor: Tensor, is: Anomaly["is"]): boolean {
  if (!isFloat(tensor.dtype)) return false;
  return searchedFor.run(null, () => (tensor.dataSync() as Float32Array).some(is));
}
