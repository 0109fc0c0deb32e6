/**
 * The packages that decode MP3 and FLAC, based on mpg123 and libFLAC. They are optional, and are loaded when such a
 * file is first read.
 */
import { PackageError } from "../../core/errors.ts";
import type { Sound } from "./wav.ts";

/** The part of the packages that is used. Its types are declared here because they may not be installed. */
interface Decoder {
  readonly ready: Promise<void>;
  decode(bytes: Uint8Array): Decoded | Promise<Decoded>;
  /** Decodes the remaining bytes. Only the FLAC decoder buffers bytes. */
  flush?(): Promise<Decoded>;
  free(): void | Promise<void>;
}

interface Decoded {
  readonly channelData: readonly Float32Array[];
  readonly samplesDecoded: number;
  readonly sampleRate: number;
  /** The bits of a FLAC file's integers. Samples are divided by the largest integer. */
  readonly bitDepth?: number;
}

/** Bundlers accept a missing package only if the code around its import handles the failure. */
const missing = (cause: unknown): never => {
  throw cause;
};

/** The packages by format, with their versions in package.json. */
const packages = {
  mp3: {
    name: "mpg123-decoder",
    version: "1.0.3",
    title: "MP3",
    make: async (): Promise<Decoder> => new (await import("mpg123-decoder").catch(missing)).MPEGDecoder(),
  },
  flac: {
    name: "@wasm-audio-decoders/flac",
    version: "0.2.11",
    title: "FLAC",
    make: async (): Promise<Decoder> => new (await import("@wasm-audio-decoders/flac").catch(missing)).FLACDecoder(),
  },
} as const;

/** A format that a package decodes. */
export type PackagedFormat = keyof typeof packages;

/** Bytes that are decoded at once. A small file may decode to billions of samples, so the sum is checked after each. */
const PART = 4096;

/**
 * Decodes a file with a package. A file without samples gives none.
 *
 * @throws {PackageError} `packageMissing`. @throws the error of `check`, which gets the number of samples so far.
 */
export async function decodePackaged(
  operation: string,
  format: PackagedFormat,
  bytes: Uint8Array,
  check: (samples: number) => void,
): Promise<Sound> {
  const decoder = await made(operation, format);
  try {
    await decoder.ready;
    const parts: Decoded[] = [];
    let samples = 0;
    const add = (part: Decoded | undefined) => {
      if (!part || part.samplesDecoded === 0) return;
      parts.push(part);
      samples += part.samplesDecoded * part.channelData.length;
      check(samples);
    };
    for (let at = 0; at < bytes.length; at += PART) add(await decoder.decode(bytes.subarray(at, at + PART)));
    add(await decoder.flush?.());
    return joined(parts);
  } finally {
    await decoder.free();
  }
}

function joined(parts: readonly Decoded[]): Sound {
  const { channelData = [], sampleRate = 0, bitDepth } = parts[0] ?? {};
  const length = parts.reduce((sum, { samplesDecoded }) => sum + samplesDecoded, 0);
  const scale = bitDepth ? (2 ** (bitDepth - 1) - 1) / 2 ** (bitDepth - 1) : 1; // as in WAV files
  const channels = channelData.map((_, channel) => {
    const samples = new Float32Array(length);
    let at = 0;
    for (const part of parts) {
      const decoded = part.channelData[channel]?.subarray(0, part.samplesDecoded) ?? [];
      samples.set(decoded, at);
      at += part.samplesDecoded;
    }
    return scale === 1 ? samples : samples.map((sample) => sample * scale);
  });
  return { channels, sampleRate };
}

async function made(operation: string, format: PackagedFormat): Promise<Decoder> {
  const { name, version, title, make } = packages[format];
  try {
    return await make();
  } catch (cause) {
    throw new PackageError(
      operation,
      "packageMissing",
      name,
      `expected the package ${name}, which decodes ${title}, to be installed: bun add ${name}@${version}`,
      { cause },
    );
  }
}
