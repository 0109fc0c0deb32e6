import { ambient, withAmbient } from "../core/context.ts";

/**
 * Runs `body` without recording: nothing that is made in it requires a gradient. Holds across the awaits of an asynchronous body.
 *
 * @example
 * const accuracy = noGrad(() => evaluate(model));
 */
export const noGrad = <Result>(body: () => Result): Result => withAmbient({ gradEnabled: false }, body);

/** Runs `body` with recording, inside a {@link noGrad} too. */
export const enableGrad = <Result>(body: () => Result): Result => withAmbient({ gradEnabled: true }, body);

/** Whether operations are recorded now. */
export const isGradEnabled = (): boolean => ambient().gradEnabled;

/**
 * Runs `body` and searches every result, forward and backward, for NaN: the first operation that makes one out of
 * operands without NaN throws an `AnomalyError` that names it. Slow; for finding the cause.
 *
 * @param options `infinity`: searches for infinities too, and names the first operation that makes one, or NaN, out of finite operands
 *
 * @example
 * detectAnomaly(() => loss.backward()); // an AnomalyError that names the operation which first made a NaN
 */
export const detectAnomaly = <Result>(body: () => Result, { infinity = false } = {}): Result =>
  withAmbient({ anomaly: infinity ? "notFinite" : "nan" }, body);
