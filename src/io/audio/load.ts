/** Loads recordings as tensors. */
import { FileFormatError } from "../../core/errors.ts";
import { aNumber, aPath, either, someBytes } from "../../core/kinds.ts";
import { count } from "../../core/options.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import { tensor } from "../../ops/creation/tensor.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { readWhole } from "../read_whole.ts";
import { decodePackaged, type PackagedFormat } from "./packages.ts";
import { decodeWav, type Fail, isWav, type Sound } from "./wav.ts";

/** A recording. */
export interface Audio {
  /** The samples, between −1 and 1: [channels, samples]. */
  readonly samples: Tensor<"float32">;
  /** Samples per second. */
  readonly sampleRate: number;
}

/** Options of {@link loadAudio}. */
export interface LoadAudioOptions {
  /** The maximum number of samples of all channels: a small file may decode to billions. Default 2³⁰. */
  readonly maxSamples?: number | undefined;
}

const MAX_SAMPLES = 2 ** 30;
const loadParameters = parameters("loadAudio", {
  source: operand(either(aPath, someBytes)),
  maxSamples: named(aNumber(count), MAX_SAMPLES),
});

/**
 * Loads a recording: a WAV file of integers (8, 16, 24 or 32 bits), floats (32 or 64 bits), A-law or μ-law; an MP3 file
 * with the package `mpg123-decoder`, always in stereo; or a FLAC file with the package `@wasm-audio-decoders/flac`.
 * Integers are divided by 2 to the power of their bits − 1.
 *
 * @param source a path, or the bytes of a file
 *
 * @example
 * const { samples, sampleRate } = await io.loadAudio("speech.wav"); // float32 [1, 48000] at 16000
 *
 * @throws {PackageError} `packageMissing`. @throws {FileError} for a file that does not exist or can't be read.
 * @throws {FileFormatError} `unknownFormat`, `unknownEncoding`, `damaged`, `tooManySamples`.
 */
export function loadAudio(source: string | Uint8Array, options?: LoadAudioOptions): Promise<Audio>;
export async function loadAudio(...values: unknown[]): Promise<Audio> {
  const { source, maxSamples } = loadParameters(values);
  return loadAudioFor("loadAudio", typeof source === "string" ? source : Uint8Array.from(source), maxSamples);
}

/** @internal {@link loadAudio} for another operation. */
export async function loadAudioFor(
  operation: string,
  source: string | Uint8Array,
  maxSamples: number = MAX_SAMPLES,
): Promise<Audio> {
  const path = typeof source === "string" ? source : "(bytes)";
  const fail: Fail = (code, message) => new FileFormatError(operation, code, path, message);
  const bytes = typeof source === "string" ? await readWhole(operation, source) : source;
  const check = (samples: number) => {
    if (samples > maxSamples)
      throw fail(
        "tooManySamples",
        `expected at most ${maxSamples} samples, got more; the option maxSamples allows more`,
      );
  };
  const { channels, sampleRate } = await decoded(operation, bytes, { fail, check });
  const [rows, length] = [channels.length, channels[0]?.length ?? 0];
  if (length === 0) throw fail("damaged", "expected at least one sample, got none");
  const all = new Float32Array(rows * length);
  for (const [at, channel] of channels.entries()) all.set(channel.subarray(0, length), at * length);
  return { samples: tensor(all, { shape: [rows, length] }), sampleRate };
}

interface Checks {
  readonly fail: Fail;
  readonly check: (samples: number) => void;
}

async function decoded(operation: string, bytes: Uint8Array, { fail, check }: Checks): Promise<Sound> {
  if (isWav(bytes)) return decodeWav(bytes, fail, check);
  const format = packagedFormat(bytes);
  if (format === undefined) throw fail("unknownFormat", "expected a WAV, FLAC or MP3 file, got another format");
  return decodePackaged(operation, format, bytes, check);
}

/** An MP3 file begins with an ID3 tag, or with a frame: 11 bits of 1, then a layer that is not reserved. */
function packagedFormat(bytes: Uint8Array): PackagedFormat | undefined {
  const begins = (text: string) => [...text].every((letter, at) => bytes[at] === letter.charCodeAt(0));
  if (begins("fLaC")) return "flac";
  const [first = 0, second = 0] = bytes;
  const isFrame = first === 0xff && (second & 0xe0) === 0xe0 && (second & 0x06) !== 0;
  return begins("ID3") || isFrame ? "mp3" : undefined;
}
