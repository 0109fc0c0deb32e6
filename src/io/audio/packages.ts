/**
 * The packages that decode MP3 and FLAC, based on mpg123 and libFLAC. They are optional, and are loaded when such a
 * file is first read.
 */
import { PackageError } from "../../core/errors.ts";
import type { Sound } from "./wav.ts";

/** The part of the packages that is used. Its types are declared here because they may not be installed. */
interface Decoder {
  readonly ready: Promise<void>;
  decode?(bytes: Uint8Array): Decoded;
  decodeFile?(bytes: Uint8Array): Promise<Decoded>;
  free(): void | Promise<void>;
}

interface Decoded {
  readonly channelData: readonly Float32Array[];
  readonly samplesDecoded: number;
  readonly sampleRate: number;
  /** Of FLAC: the samples are integers of so many bits, divided by the largest one. */
  readonly bitDepth?: number;
}

/** The packages by format, with their versions in package.json. */
const packages = {
  mp3: {
    ...{ name: "mpg123-decoder", version: "1.0.3", title: "MP3" },
    make: async (): Promise<Decoder> => new (await import("mpg123-decoder")).MPEGDecoder() as unknown as Decoder,
  },
  flac: {
    ...{ name: "@wasm-audio-decoders/flac", version: "0.2.11", title: "FLAC" },
    make: async (): Promise<Decoder> =>
      new (await import("@wasm-audio-decoders/flac")).FLACDecoder() as unknown as Decoder,
  },
} as const;

/** A format that a package decodes. */
export type PackagedFormat = keyof typeof packages;

/**
 * Decodes a file with a package. A file without samples gives none.
 *
 * @throws {PackageError} `packageMissing`
 */
export async function decodePackaged(operation: string, format: PackagedFormat, bytes: Uint8Array): Promise<Sound> {
  const decoder = await made(operation, format);
  try {
    await decoder.ready;
    const decoded = decoder.decodeFile ? await decoder.decodeFile(bytes) : decoder.decode!(bytes);
    const { channelData, sampleRate, bitDepth } = decoded;
    if (!bitDepth) return { channels: channelData, sampleRate };
    const scale = (2 ** (bitDepth - 1) - 1) / 2 ** (bitDepth - 1); // as in WAV files
    return { channels: channelData.map((samples) => samples.map((sample) => sample * scale)), sampleRate };
  } finally {
    await decoder.free();
  }
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
