/** Arguments of short-time Fourier transforms, and the frames of a signal. */
import { ArgumentError, ShapeError } from "../core/errors.ts";
import { aNumber } from "../core/kinds.ts";
import { count } from "../core/options.ts";
import { tupleOf } from "../core/tuples.ts";
import { toDType } from "../ops/copy/cast.ts";
import { contiguous } from "../ops/copy/copy.ts";
import { ones } from "../ops/creation/full.ts";
import { pad } from "../ops/join/pad.ts";
import { asStrided } from "../ops/view/as_strided.ts";
import type { DType } from "../tensor/dtype.ts";
import type { Tensor } from "../tensor/tensor.ts";

export const aCount = aNumber(count);

/** The lengths of frames, with their defaults, and the window. */
export interface FrameOptions {
  readonly nFft: number;
  readonly hopLength: number | undefined;
  readonly winLength: number | undefined;
  readonly window: Tensor | undefined;
}

/** The resolved arguments: the window has `nFft` elements. */
export interface Frames {
  readonly nFft: number;
  readonly hop: number;
  readonly window: Tensor;
}

/** Centers the window in a frame. @throws {ArgumentError} if the lengths do not fit. @throws {ShapeError} */
export function framesOf(
  operation: string,
  { nFft, hopLength, winLength, window }: FrameOptions,
  dtype: DType,
): Frames {
  const hop = hopLength ?? Math.max(1, Math.floor(nFft / 4));
  const length = winLength ?? window?.size ?? nFft;
  if (length > nFft)
    throw new ArgumentError(operation, "invalidOption", `expected winLength of at most nFft ${nFft}, got ${length}`);
  if (window && (window.rank !== 1 || window.size !== length))
    throw new ShapeError(operation, "shapesDiffer", `expected a window [${length}], got ${window.describe()}`);
  const given = window ? toDType(window, dtype) : ones([length], { dtype });
  const before = Math.floor((nFft - length) / 2);
  return { nFft, hop, window: length === nFft ? given : pad(given, [before, nFft - length - before]) };
}

/** Returns the number of frames of a signal. */
export const frameCount = (length: number, { nFft, hop }: Frames): number => Math.floor((length - nFft) / hop) + 1;

/** Returns the frames of signals, [batch, length], as [batch, frames, nFft]: a view. */
export function framed(operation: string, x: Tensor, frames: Frames): Tensor {
  const [batch, length] = tupleOf(x.shape, 2);
  if (length < frames.nFft)
    throw new ShapeError(
      operation,
      "tooShort",
      `expected at least nFft ${frames.nFft} samples, got ${length}; pad the signal, or pass a smaller nFft`,
    );
  return asStrided(contiguous(x), [batch, frameCount(length, frames), frames.nFft], [length, frames.hop, 1]);
}
