/** Decodes WAV files: integers of 8 to 32 bits, floats, A-law and μ-law. */

/** Samples between −1 and 1, one array for each channel. */
export interface Sound {
  readonly channels: readonly Float32Array[];
  readonly sampleRate: number;
}

/** Throws a typed error. */
export type Fail = (code: string, message: string) => Error;

/** The encoding of the samples. */
interface Encoding {
  readonly bytes: number;
  readonly read: (view: DataView, at: number) => number;
}

const MOST_CHANNELS = 256;
/** A higher rate than any recorder has. The filters that convert to another rate grow with the rate. */
const MOST_RATE = 2 ** 20;

/** The encodings by format and bits. 1: integers, 3: floats, 6: A-law, 7: μ-law. */
const encodings: Readonly<Record<string, Encoding>> = {
  "1 8": { bytes: 1, read: (view, at) => (view.getUint8(at) - 128) / 2 ** 7 },
  "1 16": { bytes: 2, read: (view, at) => view.getInt16(at, true) / 2 ** 15 },
  "1 24": { bytes: 3, read: (view, at) => (view.getUint16(at, true) + 2 ** 16 * view.getInt8(at + 2)) / 2 ** 23 },
  "1 32": { bytes: 4, read: (view, at) => view.getInt32(at, true) / 2 ** 31 },
  "3 32": { bytes: 4, read: (view, at) => view.getFloat32(at, true) },
  "3 64": { bytes: 8, read: (view, at) => view.getFloat64(at, true) },
  "6 8": { bytes: 1, read: (view, at) => aLaw(view.getUint8(at)) },
  "7 8": { bytes: 1, read: (view, at) => muLaw(view.getUint8(at)) },
};

/** ITU-T G.711: the even bits are inverted; a sign, 3 bits of an exponent, 4 of a mantissa. */
function aLaw(byte: number): number {
  const code = byte ^ 0x55;
  const [exponent, mantissa] = [(code >> 4) & 7, code & 15];
  const size = exponent === 0 ? 16 * mantissa + 8 : (16 * mantissa + 264) << (exponent - 1);
  return (code & 0x80 ? size : -size) / 2 ** 15;
}

/** ITU-T G.711: all bits are inverted; a sign, 3 bits of an exponent, 4 of a mantissa. */
function muLaw(byte: number): number {
  const code = ~byte & 0xff;
  const size = ((8 * (code & 15) + 132) << ((code >> 4) & 7)) - 132;
  return (code & 0x80 ? 0 - size : size) / 2 ** 15;
}

const idAt = (view: DataView, at: number): string =>
  String.fromCharCode(...[0, 1, 2, 3].map((offset) => view.getUint8(at + offset)));

export const isWav = (bytes: Uint8Array): boolean => {
  if (bytes.length < 12) return false;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  return idAt(view, 0) === "RIFF" && idAt(view, 8) === "WAVE";
};

/** Decodes a file. A truncated last chunk is decoded up to its end, because interrupted recorders write such files. */
export function decodeWav(bytes: Uint8Array, fail: Fail, check: (samples: number) => void): Sound {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const chunks = chunksOf(view);
  const format = chunks.get("fmt ");
  const data = chunks.get("data");
  if (!format || format.size < 16) throw fail("damaged", "expected a chunk fmt of at least 16 bytes");
  if (!data) throw fail("damaged", "expected a chunk `data`, got none");
  const { at } = format;
  const tag = view.getUint16(at, true);
  // WAVE_FORMAT_EXTENSIBLE: the format is at the start of an identifier
  const kind = tag === 0xfffe && format.size >= 26 ? view.getUint16(at + 24, true) : tag;
  const [count, sampleRate, bits] = [
    view.getUint16(at + 2, true),
    view.getUint32(at + 4, true),
    view.getUint16(at + 14, true),
  ];
  const encoding = encodings[`${kind} ${bits}`];
  if (!encoding)
    throw fail(
      "unknownEncoding",
      `expected integers of 8, 16, 24 or 32 bits, floats, A-law or mu-law, got format ${kind} with ${bits} bits`,
    );
  if (count < 1 || count > MOST_CHANNELS)
    throw fail("damaged", `expected 1 to ${MOST_CHANNELS} channels, got ${count}`);
  if (sampleRate < 1 || sampleRate > MOST_RATE)
    throw fail("damaged", `expected a sample rate from 1 to ${MOST_RATE}, got ${sampleRate}`);
  check(Math.floor(data.size / encoding.bytes));
  return { channels: samplesOf(view, data, count, encoding), sampleRate };
}

function samplesOf(view: DataView, { at, size }: Chunk, count: number, { bytes, read }: Encoding): Float32Array[] {
  const frames = Math.floor(size / (bytes * count));
  const channels = Array.from({ length: count }, () => new Float32Array(frames));
  for (const [channel, samples] of channels.entries())
    for (let frame = 0; frame < frames; frame++) samples[frame] = read(view, at + bytes * (frame * count + channel));
  return channels;
}

interface Chunk {
  readonly at: number;
  readonly size: number;
}

/** Returns the first chunk of each name. */
function chunksOf(view: DataView): Map<string, Chunk> {
  const chunks = new Map<string, Chunk>();
  for (let at = 12; at + 8 <= view.byteLength; ) {
    const [id, stated] = [idAt(view, at), view.getUint32(at + 4, true)];
    const size = Math.min(stated, view.byteLength - at - 8);
    if (!chunks.has(id)) chunks.set(id, { at: at + 8, size });
    at += 8 + stated + (stated % 2);
  }
  return chunks;
}
