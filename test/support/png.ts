/** PNG files with given pixels, made without the package that reads them. */
import { deflateSync } from "node:zlib";

/** The number of channels of a color type: gray, RGB, gray with alpha, RGBA. */
const colorTypes: Readonly<Record<number, number>> = { 1: 0, 2: 4, 3: 2, 4: 6 };

/** One chunk: its length, name, data and checksum. */
export function chunk(name: string, data: Uint8Array): Uint8Array {
  const whole = new Uint8Array(12 + data.length);
  const view = new DataView(whole.buffer);
  view.setUint32(0, data.length);
  whole.set(new TextEncoder().encode(name), 4);
  whole.set(data, 8);
  view.setUint32(8 + data.length, Bun.hash.crc32(whole.subarray(4, 8 + data.length)));
  return whole;
}

const SIGNATURE = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a);

export interface PngOptions {
  readonly width: number;
  readonly height: number;
  /** The number of channels, from 1 to 4. */
  readonly channels: number;
  readonly bits?: 8 | 16;
  /** An EXIF orientation, from 1 to 8. */
  readonly orientation?: number;
}

/** A PNG file with these bytes as its pixels, row by row. */
export function png(pixels: Uint8Array, { width, height, channels, bits = 8, orientation }: PngOptions): Uint8Array {
  const header = new DataView(new ArrayBuffer(13));
  header.setUint32(0, width);
  header.setUint32(4, height);
  header.setUint8(8, bits);
  header.setUint8(9, colorTypes[channels]);
  const row = (width * channels * bits) / 8;
  const rows = Array.from({ length: height }, (_, at) => [0, ...pixels.subarray(at * row, (at + 1) * row)]).flat();
  return Buffer.concat([
    SIGNATURE,
    chunk("IHDR", new Uint8Array(header.buffer)),
    ...(orientation === undefined ? [] : [chunk("eXIf", exif(orientation))]),
    chunk("IDAT", deflateSync(Uint8Array.from(rows))),
    chunk("IEND", new Uint8Array()),
  ]);
}

/** TIFF's header and one entry: tag 0x0112, a number of 16 bits. */
const exif = (orientation: number): Uint8Array =>
  Uint8Array.of(0x4d, 0x4d, 0, 0x2a, 0, 0, 0, 8, 0, 1, 0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0, 0, 0, 0, 0);

/** A PNG file that claims this many pixels, without data for them. */
export function hollowPng(width: number, height: number): Uint8Array {
  const whole = png(new Uint8Array(3), { width: 1, height: 1, channels: 3 });
  const header = new DataView(whole.buffer, whole.byteOffset, whole.byteLength);
  header.setUint32(16, width);
  header.setUint32(20, height);
  header.setUint32(29, Bun.hash.crc32(whole.subarray(12, 29)));
  return whole;
}
