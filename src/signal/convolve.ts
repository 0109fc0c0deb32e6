/** Convolutions and correlations of signals, directly or by Fourier transforms. */

import { underName } from "../backend/dispatch.ts";
import { lastElement } from "../core/collections.ts";
import { ArgumentError, ShapeError } from "../core/errors.ts";
import { choice } from "../core/kinds.ts";
import { type Given, named, operand, optional, parameters } from "../core/parameters.ts";
import { complexLine, realLine, spectrumLine } from "../fft/lines.ts";
import { conj } from "../ops/complex/parts.ts";
import { conv1d } from "../ops/convolution/convolution.ts";
import { toDType } from "../ops/copy/cast.ts";
import { mul } from "../ops/elementwise/arithmetic.ts";
import { promoteOperands } from "../ops/elementwise/operands.ts";
import type { FloatOf } from "../ops/elementwise/types.ts";
import { flip } from "../ops/join/flip.ts";
import { expand } from "../ops/view/expand.ts";
import { reshape } from "../ops/view/reshape.ts";
import { narrow } from "../ops/view/slice.ts";
import { accumulationDType, type DType, isComplex, isFloat } from "../tensor/dtype.ts";
import { aTensor } from "../tensor/kinds.ts";
import type { Promote } from "../tensor/promotion.ts";
import { broadcastShapes } from "../tensor/shape.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { tidy } from "../tensor/tidy.ts";

/**
 * The part of the convolution: `"full"`, n + m − 1 elements; `"same"`, the n elements at its center; or `"valid"`,
 * where the shorter signal lies within the longer one.
 */
export type ConvolveMode = "full" | "same" | "valid";

/** Options of {@link convolve} and {@link correlate}. */
export interface ConvolveOptions {
  /** The part of the result to return. Default `"full"`. */
  mode?: ConvolveMode | undefined;
  /**
   * `"direct"` sums products, for real signals and a second signal of one axis; `"fft"` multiplies spectra; `"auto"`
   * chooses by size. Default `"auto"`.
   */
  method?: "auto" | "direct" | "fft" | undefined;
}

const convolveParametersOf = (operation: string) =>
  parameters(operation, {
    x: operand(aTensor),
    y: operand(aTensor),
    mode: optional(choice("full", "same", "valid"), "full"),
    method: named(choice("auto", "direct", "fft"), "auto"),
  });
type Parsed = ReturnType<ReturnType<typeof convolveParametersOf>>;

/** Up to this length of the shorter signal, sums of products are faster than transforms. */
const DIRECT = 64;

/**
 * Computes the convolution of signals along the last axis: z[k] = Σ x[j] y[k − j]. Long signals are multiplied as
 * spectra.
 *
 * @param x […, n], real or complex; integers become float32
 * @param y […, m], promoted with x to one dtype; the other axes broadcast
 * @returns the last axis as `mode` says
 *
 * @example
 * signal.convolve(tensor([1, 2, 3]), tensor([0, 1, 0.5])); // float32 [0, 1, 2.5, 4, 1.5]
 *
 * @throws {ShapeError} for scalars and empty signals, or if shapes can't be broadcast. @throws {DTypeError} for bools.
 */
export function convolve<D extends DType, E extends DType>(
  x: Tensor<D>,
  y: Tensor<E>,
  ...options: Given<ConvolveOptions, ["mode"]>
): Tensor<FloatOf<Promote<D, E>>>;
export function convolve(...values: unknown[]): Tensor {
  return convolved("convolve", convolveParameters(values), (y) => y);
}
const convolveParameters = convolveParametersOf("convolve");

/**
 * Computes the correlation of signals along the last axis: the convolution of x with the reversed conjugate of y,
 * z[k] = Σ x[j + k − m + 1] y*[j].
 *
 * @param x […, n], real or complex; integers become float32
 * @param y […, m], promoted with x to one dtype; the other axes broadcast
 * @returns the last axis as `mode` says
 *
 * @example
 * signal.correlate(tensor([1, 2, 3]), tensor([0, 1, 0.5])); // float32 [0.5, 2, 3.5, 3, 0]
 *
 * @throws {ShapeError} for scalars and empty signals, or if shapes can't be broadcast. @throws {DTypeError} for bools.
 */
export function correlate<D extends DType, E extends DType>(
  x: Tensor<D>,
  y: Tensor<E>,
  ...options: Given<ConvolveOptions, ["mode"]>
): Tensor<FloatOf<Promote<D, E>>>;
export function correlate(...values: unknown[]): Tensor {
  return convolved("correlate", correlateParameters(values), (y) => flip(conj(y), -1));
}
const correlateParameters = convolveParametersOf("correlate");

function convolved(operation: string, { mode, method, ...given }: Parsed, turn: (y: Tensor) => Tensor): Tensor {
  const [x, y] = promoteOperands(operation, [given.x, given.y], "numbers");
  for (const each of [x, y])
    if (each.rank === 0 || each.shape.at(-1) === 0)
      throw new ShapeError(operation, "noElements", `expected signals of at least one sample, got ${each.describe()}`);
  const batch = broadcastShapes(operation, x.shape.slice(0, -1), y.shape.slice(0, -1));
  const result = isFloat(x.dtype) || isComplex(x.dtype) ? x.dtype : "float32";
  const [n, m] = [lastElement(x.shape), lastElement(y.shape)];
  const canSum = !isComplex(x.dtype) && y.rank === 1;
  if (method === "direct" && !canSum)
    throw new ArgumentError(
      operation,
      "invalidOption",
      `method "direct" supports real signals and a second signal of one axis, got ${y.describe()}; use "auto" or "fft"`,
    );
  const isDirect = method === "direct" || (method === "auto" && Math.min(n, m) <= DIRECT);
  return underName(operation, () =>
    tidy(() => {
      const wide = [x, y].map((each) => (isComplex(each.dtype) ? each : toDType(each, accumulationDType(each.dtype))));
      const [a, b] = [wide[0], turn(wide[1])];
      const whole = isDirect && canSum ? summed(a, b) : byTransforms(operation, a, b);
      return toDType(cut(expand(whole, [...batch, n + m - 1]), mode, n, m), result);
    }),
  );
}

/**
 * Sums products by a convolution of neural networks, which does not flip its kernel, so the signal is flipped first.
 */
function summed(x: Tensor, y: Tensor): Tensor {
  const m = y.size;
  const rows = reshape(x, [x.size / lastElement(x.shape), 1, lastElement(x.shape)]);
  const result = conv1d(rows, reshape(flip(y, 0), [1, 1, m]), { padding: m - 1 });
  return reshape(result, [...x.shape.slice(0, -1), lastElement(result.shape)]);
}

function byTransforms(operation: string, x: Tensor, y: Tensor): Tensor {
  const size = lastElement(x.shape) + lastElement(y.shape) - 1;
  const length = fastLength(size);
  const line = (each: Tensor, inverse: boolean) => {
    const scale = inverse ? 1 / length : 1;
    return { operation, axis: each.rank - 1, length, inverse, scale };
  };
  const isOfComplex = isComplex(x.dtype);
  const spectrum = (each: Tensor) =>
    isOfComplex ? complexLine(each, line(each, false)) : spectrumLine(each, line(each, false));
  const product = mul(spectrum(x), spectrum(y));
  const whole = isOfComplex ? complexLine(product, line(product, true)) : realLine(product, line(product, true));
  return narrow(whole, whole.rank - 1, 0, size);
}

/** Returns the smallest length of at least `least` with no prime factor above 5, and even. */
function fastLength(least: number): number {
  let best = Number.POSITIVE_INFINITY;
  for (let fives = 1; fives < 2 * least; fives *= 5)
    for (let odd = fives; odd < 2 * least; odd *= 3) {
      const length = odd * 2 ** Math.max(1, Math.ceil(Math.log2(least / odd)));
      best = Math.min(best, length);
    }
  return best;
}

function cut(z: Tensor, mode: ConvolveMode, n: number, m: number): Tensor {
  if (mode === "full") return z;
  const length = mode === "same" ? n : Math.max(n, m) - Math.min(n, m) + 1;
  const start = mode === "same" ? Math.floor((m - 1) / 2) : Math.min(n, m) - 1;
  return narrow(z, z.rank - 1, start, length);
}
