/** Features of a recording: of all of it, or of as much as has arrived. */
import { noGrad } from "../../autograd/modes.ts";
import { tensor } from "../../ops/creation/tensor.ts";
import { pad } from "../../ops/join/pad.ts";
import { narrow } from "../../ops/view/slice.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { HALF_FFT, HOP, logMelFeatures, logMelOf, normalizedLogMel, SAMPLE_RATE } from "./features.ts";

/** The features that a {@link Session} reads. */
export interface Recording extends Disposable {
  /** The number of frames of 10 ms. */
  readonly frames: number;
  /** In seconds. */
  readonly duration: number;
  /** Returns the features of some frames, [melBins, count]. */
  read(first: number, count: number): Tensor;
}

/**
 * Returns the features of a whole recording.
 *
 * @param samples at 16 kHz, [samples] @param windowFrames the frames of silence that follow the recording, so that its
 * last frames are not reflections
 */
export function wholeRecording(samples: Tensor, melBins: number, windowFrames: number): Recording {
  const features = tidy(() => noGrad(() => logMelFeatures(pad(samples, [0, windowFrames * HOP]), { nMels: melBins })));
  return {
    frames: Math.floor(samples.size / HOP),
    duration: samples.size / SAMPLE_RATE,
    read: (first, count) => narrow(features, 1, first, count),
    [Symbol.dispose]: () => features.dispose(),
  };
}

/** A recording whose samples arrive in pieces. Features are normalized by the loudest frame so far. */
export class LiveRecording implements Recording {
  /** The samples from `#first` on, and free space for more. */
  #samples = new Float32Array(2 ** 20);
  #first = 0;
  #count = 0;
  #isComplete = false;
  #loudest = Number.NEGATIVE_INFINITY;

  constructor(private readonly melBins: number) {}

  get frames(): number {
    return Math.floor((this.#first + this.#count) / HOP);
  }

  get duration(): number {
    return (this.#first + this.#count) / SAMPLE_RATE;
  }

  add(samples: Float32Array): void {
    if (this.#count + samples.length > this.#samples.length) {
      const larger = new Float32Array(2 * (this.#count + samples.length));
      larger.set(this.#samples.subarray(0, this.#count));
      this.#samples = larger;
    }
    this.#samples.set(samples, this.#count);
    this.#count += samples.length;
  }

  /** Ends the recording: silence follows the samples. */
  complete(): void {
    this.#isComplete = true;
  }

  /** Whether some frames have arrived, with the samples around them. */
  has(first: number, count: number): boolean {
    return this.#isComplete || this.#first + this.#count >= (first + count) * HOP + HALF_FFT;
  }

  /** Frames before `first` are not read again. */
  read(first: number, count: number): Tensor {
    this.forget(first * HOP - HALF_FFT);
    const begin = first * HOP - HALF_FFT;
    const values = Float32Array.from({ length: (count - 1) * HOP + 2 * HALF_FFT }, (_, at) => {
      const position = Math.abs(begin + at) - this.#first; // the samples are reflected at the start
      return position < this.#count ? this.#samples[position] : 0;
    });
    return tidy(() =>
      noGrad(() => {
        const logs = logMelOf(tensor(values, { shape: [1, values.length] }), count, this.melBins);
        for (const value of logs.dataSync()) this.#loudest = Math.max(this.#loudest, Number(value));
        return normalizedLogMel(logs, tensor(this.#loudest));
      }),
    );
  }

  private forget(before: number): void {
    const extra = Math.min(before - HALF_FFT - this.#first, this.#count);
    if (extra <= 0) return;
    this.#samples.copyWithin(0, extra, this.#count);
    this.#first += extra;
    this.#count -= extra;
  }

  [Symbol.dispose](): void {
    this.#samples = new Float32Array(0);
  }
}
