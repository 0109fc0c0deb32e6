/** Loads recordings as tensors. */
import { FileFormatError } from "../../core/errors.ts";
import { aPath, either, someBytes } from "../../core/kinds.ts";
import { operand, parameters } from "../../core/parameters.ts";
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

const loadParameters = parameters("loadAudio", { source: operand(either(aPath, someBytes)) });

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
 * @throws {FileFormatError} `unknownFormat`, `unknownEncoding`, `damaged`.
 */
export function loadAudio(source: string | Uint8Array): Promise<Audio>;
export async function loadAudio(...values: unknown[]): Promise<Audio> {
  const { source } = loadParameters(values);
  return loadAudioFor("loadAudio", typeof source === "string" ? source : Uint8Array.from(source));
}

/** @internal {@link loadAudio} for another operation. */
export async function loadAudioFor(operation: string, source: string | Uint8Array): Promise<Audio> {
  const path = typeof source === "string" ? source : "(bytes)";
  const fail: Fail = (code, message) => new FileFormatError(operation, code, path, message);
  const bytes = typeof source === "string" ? await readWhole(operation, source) : source;
  const { channels, sampleRate } = await decoded(operation, bytes, fail);
  const [count, length] = [channels.length, channels[0]?.length ?? 0];
  if (length === 0) throw fail("damaged", "expected at least one sample, got none");
  const all = new Float32Array(count * length);
  for (const [at, channel] of channels.entries()) all.set(channel.subarray(0, length), at * length);
  return { samples: tensor(all, { shape: [count, length] }), sampleRate };
}

async function decoded(operation: string, bytes: Uint8Array, fail: Fail): Promise<Sound> {
  if (isWav(bytes)) return decodeWav(bytes, fail);
  const format = packagedFormat(bytes);
  if (format === undefined) throw fail("unknownFormat", "expected a WAV, FLAC or MP3 file, got another format");
  return decodePackaged(operation, format, bytes);
}

/** An MP3 file begins with an ID3 tag, or with a frame: 11 bits of 1, then a layer that is not reserved. */
function packagedFormat(bytes: Uint8Array): PackagedFormat | undefined {
  const begins = (text: string) => [...text].every((letter, at) => bytes[at] === letter.charCodeAt(0));
  if (begins("fLaC")) return "flac";
  const [first = 0, second = 0] = bytes;
  const isFrame = first === 0xff && (second & 0xe0) === 0xe0 && (second & 0x06) !== 0;
  return begins("ID3") || isFrame ? "mp3" : undefined;
}
