/** Changes the sample rate of signals. */
import { lastElement } from "../core/collections.ts";
import { ArgumentError, DTypeError, ShapeError } from "../core/errors.ts";
import { aNumber } from "../core/kinds.ts";
import { operand, parameters } from "../core/parameters.ts";
import { toDType } from "../ops/copy/cast.ts";
import { tensor } from "../ops/creation/tensor.ts";
import { isFloat } from "../tensor/dtype.ts";
import { aTensor } from "../tensor/kinds.ts";
import { reserve } from "../tensor/reserve.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { withFloat64 } from "./float64.ts";
import { kaiserWindow } from "./windows.ts";

/** Periods of the lower rate on each side of a filter's center. */
const PERIODS = 10;
/** The shape of the filter's Kaiser window. */
const BETA = 5;

const aRate = aNumber({
  holds: (rate) => Number.isSafeInteger(rate) && rate >= 1 && rate <= 2 ** 24,
  expected: "a whole number from 1 to 16777216",
});

const readCall = parameters("resample", { x: operand(aTensor), from: operand(aRate), to: operand(aRate) });

/**
 * Resamples signals to another rate by a windowed sinc filter:
 *
 *     y[m] = Σₖ h[m · down − k · up] x[k],   up / down = to / from in lowest terms
 *
 * with the low-pass filter h, sinc(n / r) times a Kaiser window of shape 5 over |n| ≤ 10 r, r = max(up, down), scaled
 * to the sum up. It computes in float64, like `scipy.signal.resample_poly`, and records no gradients.
 *
 * @param x floats […, samples]
 * @param from the rate of x in samples per second
 * @param to the rate of the result
 * @returns […, ⌈samples · to / from⌉] in x's dtype
 *
 * @example
 * signal.resample(zeros([2, 44100]), 44100, 16000).shape; // [2, 16000]
 *
 * @throws {ShapeError} for a scalar. @throws {DTypeError} if x is not a float. @throws {ArgumentError} for rates that
 * are not whole numbers from 1 to 2²⁴, or x that requires a gradient.
 */
export function resample<T extends Tensor>(x: T, from: number, to: number): T;
export function resample(...values: unknown[]): Tensor {
  const { x, from, to } = readCall(values);
  return resampled("resample", x, from, to);
}

/** @internal {@link resample} for another operation. */
export function resampled(operation: string, x: Tensor, from: number, to: number): Tensor {
  if (!isFloat(x.dtype)) throw new DTypeError(operation, "notFloat", `expected floats, got ${x.describe()}`);
  if (x.rank === 0)
    throw new ShapeError(operation, "wrongRank", `expected at least one axis of samples, got ${x.describe()}`);
  if (x.requiresGrad) throw new ArgumentError(operation, "noGradient", "resampling has no gradient; pass x.detach()");
  const divisor = greatestDivisor(from, to);
  const [up, down] = [to / divisor, from / divisor];
  if (up === down) return x;
  return withFloat64(() => converted(x, up, down));
}

function converted(x: Tensor, up: number, down: number): Tensor {
  const length = lastElement(x.shape);
  const count = Math.ceil((length * up) / down);
  const rows = length === 0 ? 0 : x.size / length;
  reserve(8 * rows * (count + length));
  const signals = toDType(x, "float64").dataSync();
  const out = new Float64Array(rows * count);
  const filter = filterOf(up, down);
  for (let row = 0; row < rows; row++)
    filtered(signals.subarray(row * length, (row + 1) * length), out.subarray(row * count), {
      filter,
      up,
      down,
      count,
    });
  return toDType(tensor(out, { shape: [...x.shape.slice(0, -1), count] }), x.dtype);
}

function greatestDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestDivisor(b, a % b);
}

/** The coefficients h[−half] … h[half]. */
function filterOf(up: number, down: number): Float64Array {
  const rate = Math.max(up, down);
  const half = PERIODS * rate;
  const window = kaiserWindow(2 * half + 1, { periodic: false, beta: BETA, dtype: "float64" }).dataSync();
  const filter = Float64Array.from(window, (weight, at) => weight * sinc((at - half) / rate));
  const sum = filter.reduce((total, value) => total + value, 0);
  return filter.map((value) => (value * up) / sum);
}

const sinc = (x: number): number => (x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x));

interface Filtering {
  readonly filter: Float64Array;
  readonly up: number;
  readonly down: number;
  readonly count: number;
}

/** Only coefficients at samples of x are computed (polyphase): n = m · down − k · up from −half to half. */
function filtered(x: Float64Array, out: Float64Array, { filter, up, down, count }: Filtering): void {
  const half = (filter.length - 1) / 2;
  for (let m = 0; m < count; m++) {
    const center = m * down;
    const first = Math.max(0, Math.ceil((center - half) / up));
    const last = Math.min(x.length - 1, Math.floor((center + half) / up));
    let sum = 0;
    for (let k = first; k <= last; k++) sum += filter[center - k * up + half] * x[k];
    out[m] = sum;
  }
}
