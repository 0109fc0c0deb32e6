import { ContextVariable } from "../core/context.ts";
import { OrchardError } from "../core/errors.ts";
import { aFunction, flag } from "../core/kinds.ts";
import { named, operand, parameters } from "../core/parameters.ts";
import { within } from "../observe/within.ts";
import { isFloat } from "../tensor/dtype.ts";
import type { Tensor } from "../tensor/tensor.ts";

/**
 * An operation returned NaN from operands without NaN (`detectAnomaly`), or, with the option `infinity`, an infinity
 * from finite operands.
 */
export class AnomalyError extends OrchardError {
  override readonly name = "AnomalyError";
}

interface Anomaly {
  /** Parts of messages: the name of the anomaly, and a phrase for operands without it. */
  readonly words: readonly [found: string, without: string];
  is(value: number): boolean;
}

const anomalies = {
  nan: { words: ["NaN", "without NaN"], is: Number.isNaN },
  notFinite: { words: ["infinity or NaN", "that are finite"], is: (value) => !Number.isFinite(value) },
} as const satisfies Readonly<Record<string, Anomaly>>;

/** The kind of anomaly, which is also the error's code. */
export type AnomalyKind = keyof typeof anomalies;

/** @internal The anomaly to search for in each result; null: none. */
export const searchedFor = new ContextVariable<AnomalyKind | null>(null);

/** Options of {@link detectAnomaly}. */
export interface AnomalyOptions {
  /** Whether to search for infinities too. Default false. */
  infinity?: boolean | undefined;
}

const anomalyParameters = parameters("detectAnomaly", {
  body: operand(aFunction<() => unknown>()),
  infinity: named(flag, false),
});

/**
 * Runs `body` and checks every result of the forward and backward pass for NaN. The first operation that returns NaN
 * from operands without NaN throws an `AnomalyError` that names it. Slow; meant for debugging. PyTorch:
 * `torch.autograd.detect_anomaly`.
 *
 * @param options `infinity`: also reports the first operation that returns an infinity or NaN from finite operands
 *
 * @example
 * detectAnomaly(() => loss.backward()); // an AnomalyError that names the operation that first returned NaN
 */
export function detectAnomaly<Result>(body: () => Result, options?: AnomalyOptions): Result;
export function detectAnomaly(...values: unknown[]): unknown {
  const { body, infinity } = anomalyParameters(values);
  return searchedFor.run(infinity ? "notFinite" : "nan", body);
}

/** Checks a call. @throws {AnomalyError} if an output has the anomaly and no input does. */
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
    `it returned the first ${found}, in result ${index} (${outputs[index].describe()}), from ${operands} ${without}`,
  );
}

function holds(tensor: Tensor, is: Anomaly["is"]): boolean {
  if (!isFloat(tensor.dtype)) return false;
  return searchedFor.run(null, () => (tensor.dataSync() as Float32Array).some(is));
}
