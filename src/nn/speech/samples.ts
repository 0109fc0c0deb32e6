/** Reads the recordings of a call of `transcribe` or `classifyAudio`. */
import { noGrad } from "../../autograd/modes.ts";
import { ArgumentError, DTypeError, ShapeError } from "../../core/errors.ts";
import { aNumber, aPath, either } from "../../core/kinds.ts";
import type { NumberRule } from "../../core/options.ts";
import type { Kind } from "../../core/parameters.ts";
import { type Audio, loadAudioFor } from "../../io/audio/load.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { clone } from "../../ops/copy/copy.ts";
import { mean } from "../../ops/reduction/mean.ts";
import { resampled } from "../../signal/resample.ts";
import { isFloat } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { SAMPLE_RATE } from "./features.ts";

/** A recording: a path, the result of `io.loadAudio`, or a tensor of floats [samples] or [channels, samples]. */
export type AudioInput = string | Audio | Tensor;

/** Speech is recorded at 8 kHz or more. If a damaged header says 1 Hz, resampling to 16 kHz takes gigabytes. */
const speechRate: NumberRule = {
  holds: (rate) => Number.isSafeInteger(rate) && rate >= 1000 && rate <= 2 ** 24,
  expected: "a whole number from 1000 to 16777216",
};
/** @internal */
export const aSpeechRate = aNumber(speechRate);

const anAudio: Kind<Audio> = {
  expected: "the result of loadAudio",
  parse(value) {
    const { samples, sampleRate } = (value ?? {}) as Partial<Audio>;
    return Tensor.isTensor(samples) && typeof sampleRate === "number" ? (value as Audio) : undefined;
  },
};
/** @internal */
export const anInput: Kind<AudioInput> = either(aPath, aTensor, anAudio);

/** @internal Returns the samples at 16 kHz: float32 [samples]. */
export async function samplesOf(input: AudioInput, rate: number, operation = "transcribe"): Promise<Tensor> {
  const given = typeof input === "string" ? await loadAudioFor(operation, input) : input;
  const { samples, sampleRate } = Tensor.isTensor(given) ? { samples: given, sampleRate: rate } : given;
  if (!speechRate.holds(sampleRate))
    throw new ArgumentError(
      operation,
      "wrongRate",
      `the audio has ${sampleRate} samples per second; expected ${speechRate.expected}`,
    );
  if (!isFloat(samples.dtype))
    throw new DTypeError(operation, "notFloat", `expected samples to be floats, got ${samples.describe()}`);
  if (samples.rank !== 1 && samples.rank !== 2)
    throw new ShapeError(
      operation,
      "wrongShape",
      `expected audio to be [samples] or [channels, samples], got ${samples.describe()}`,
    );
  return noGrad(() =>
    tidy(() => {
      const mono = samples.rank === 2 ? mean(toDType(samples, "float32"), { dim: 0 }) : toDType(samples, "float32");
      return clone(resampled(operation, mono as Tensor, sampleRate, SAMPLE_RATE));
    }),
  );
}
