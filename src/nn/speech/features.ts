/** Log-mel features of speech. */

import { noGrad } from "../../autograd/modes.ts";
import { lastElement } from "../../core/collections.ts";
import { DTypeError, ShapeError } from "../../core/errors.ts";
import { aNumber } from "../../core/kinds.ts";
import { count } from "../../core/options.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { add, mul } from "../../ops/elementwise/arithmetic.ts";
import { clamp } from "../../ops/elementwise/clamp.ts";
import { log10 } from "../../ops/elementwise/logarithm.ts";
import { cat } from "../../ops/join/cat.ts";
import { pad } from "../../ops/join/pad.ts";
import { matmul } from "../../ops/matmul/matmul.ts";
import { amax } from "../../ops/reduction/extrema.ts";
import { reshape } from "../../ops/view/reshape.ts";
import { narrow } from "../../ops/view/slice.ts";
import { withFloat64 } from "../../signal/float64.ts";
import { melFilterbank, spectrogram } from "../../signal/mel.ts";
import { isFloat } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";

/** @internal Samples per second that speech models expect. */
export const SAMPLE_RATE = 16_000;
/** @internal The distance between frames in samples: 10 ms. */
export const HOP = 160;
const N_FFT = 400;
/** @internal Half of the samples of a frame, which is centered. */
export const HALF_FFT = N_FFT / 2;
/** Number of frames that are transformed at once: 60 s of audio. This bounds memory for long audio. */
const CHUNK = 6000;

/** Options of {@link logMelFeatures}. */
export interface LogMelOptions {
  /** The number of mel filters: 128 for Whisper's large-v3, else 80. Default 80. */
  readonly nMels?: number | undefined;
}

const readCall = parameters("logMelFeatures", { samples: operand(aTensor), nMels: named(aNumber(count), 80) });

/**
 * Computes the log-mel features of audio at 16 kHz, as OpenAI's Whisper does: with the power S of each mel filter in
 * frames of 25 ms every 10 ms,
 *
 *     L = log₁₀ max(S, 10⁻¹⁰)
 *     features = (max(L, max L − 8) + 4) / 4
 *
 * They are computed in float64, on the CPU if the backend is `metal`.
 *
 * @param samples floats [samples] or [batch, samples], in −1 … 1; at least 201 samples
 * @returns float32 [nMels, frames] or [batch, nMels, frames], where frames = ⌊samples / 160⌋
 *
 * @example
 * nn.logMelFeatures(zeros([16000])).shape; // [80, 100]
 *
 * @throws {ShapeError} for another rank, or too few samples. @throws {DTypeError} for samples that are not floats.
 */
export function logMelFeatures(samples: Tensor, options?: LogMelOptions): Tensor<"float32">;
export function logMelFeatures(...values: unknown[]): Tensor {
  const { samples, nMels } = readCall(values);
  check(samples);
  return noGrad(() => withFloat64(() => featuresOf(samples, nMels)));
}

function featuresOf(samples: Tensor, nMels: number): Tensor {
  return tidy(() => {
    const [batch, length] = samples.rank === 1 ? [1, samples.size] : tupleOf(samples.shape, 2);
    const half = N_FFT / 2;
    const padded = pad(reshape(samples, [batch, length]), [half, half], { mode: "reflect" });
    const filters = melFilterbank(SAMPLE_RATE, N_FFT, { nMels, dtype: "float64" });
    const frames = Math.floor(length / HOP);
    const parts: Tensor[] = [];
    for (let first = 0; first < frames; first += CHUNK)
      parts.push(logMel(padded, first, Math.min(CHUNK, frames - first), filters));
    const all = parts.length === 1 ? parts[0] : cat(parts, { dim: 2 });
    const result = normalizedLogMel(all, amax(all, { dim: [1, 2], keepdim: true }));
    return samples.rank === 1 ? reshape(result, [nMels, frames]) : result;
  });
}

/** @internal Returns (max(logs, loudest − 8) + 4) / 4. */
export const normalizedLogMel = (logs: Tensor, loudest: Tensor): Tensor =>
  mul(add(clamp(logs, { min: add(loudest, -8) }), 4), 0.25);

/**
 * @internal Returns the log-mel powers of frames, [nMels, count].
 *
 * @param padded samples and half a frame on both sides, [1, samples]
 */
export const logMelOf = (padded: Tensor, count: number, nMels: number): Tensor =>
  withFloat64(() => {
    const filters = melFilterbank(SAMPLE_RATE, N_FFT, { nMels, dtype: "float64" });
    return reshape(logMel(padded, 0, count, filters), [nMels, count]);
  });

/** Returns log₁₀ of the filters' powers in some frames: float32 [batch, nMels, count]. */
function logMel(padded: Tensor, first: number, count: number, filters: Tensor): Tensor {
  return tidy(() => {
    const part = toDType(narrow(padded, 1, first * HOP, (count - 1) * HOP + N_FFT), "float64");
    const powers = spectrogram(part, { nFft: N_FFT, hopLength: HOP, center: false });
    return toDType(log10(clamp(matmul(filters, powers), { min: 1e-10 })), "float32");
  });
}

function check(samples: Tensor): void {
  if (!isFloat(samples.dtype))
    throw new DTypeError("logMelFeatures", "notFloat", `expected samples to be floats, got ${samples.describe()}`);
  if ((samples.rank === 1 || samples.rank === 2) && lastElement(samples.shape) > N_FFT / 2 && samples.size > 0) return;
  throw new ShapeError(
    "logMelFeatures",
    "wrongShape",
    `expected [samples] or [batch, samples] with at least ${N_FFT / 2 + 1} samples, got ${samples.describe()}`,
  );
}
