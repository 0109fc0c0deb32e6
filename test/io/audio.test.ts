/** Recordings: WAV files of Python's writers, FLAC and MP3 files, and rejected files. */
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { FileFormatError, io } from "../../src/index.ts";
import { fixture } from "../nn/speech/oracle.ts";
import { testFolder } from "../support/folder.ts";

const folder = testFolder("audio");

async function loaded(source: string | Uint8Array) {
  const { samples, sampleRate } = await io.loadAudio(source);
  const [count, length] = samples.shape;
  const values = Array.from(samples.dataSync(), Number);
  return {
    sampleRate,
    channels: Array.from({ length: count }, (_, at) => values.slice(at * length, (at + 1) * length)),
  };
}

/** A WAV file with chunks before the samples. */
function wav(format: readonly number[], data: Uint8Array, { size = data.length, odd = false } = {}): Uint8Array {
  const [tag, channels, rate, bits] = format as [number, number, number, number];
  const head = Buffer.alloc(36);
  head.write("RIFF");
  head.write("WAVEfmt ", 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(tag, 20);
  head.writeUInt16LE(channels, 22);
  head.writeUInt32LE(rate, 24);
  head.writeUInt16LE(bits, 34);
  const extra = odd ? Buffer.from("LIST\x03\0\0\0abc\0", "latin1") : Buffer.alloc(0);
  const start = Buffer.from("data\0\0\0\0", "latin1");
  start.writeUInt32LE(size, 4);
  return Buffer.concat([head, extra, start, data]);
}

test("WAV files that Python wrote are read", async () => {
  for (const { kind, rate, file, channels } of fixture.recordings) {
    const got = await loaded(Buffer.from(file, "base64"));
    expect({ kind, ...got }).toEqual({ kind, sampleRate: rate, channels });
  }
});

test("A-law and mu-law match Python's audioop", async () => {
  const codes = Uint8Array.from({ length: 256 }, (_, code) => code);
  for (const [tag, name] of [
    [6, "aLaw"],
    [7, "muLaw"],
  ] as const) {
    const { channels } = await loaded(wav([tag, 1, 8000, 8], codes));
    expect(channels[0].map((sample) => sample * 2 ** 15)).toEqual(fixture.companded[name]);
  }
});

test("WAV files with chunks of odd length, or with a size beyond their end, are read", async () => {
  const data = Uint8Array.of(0, 64, 0, 192, 0, 32);
  const wanted = { sampleRate: 16_000, channels: [[0.5, -0.5, 0.25]] };
  expect(await loaded(wav([1, 1, 16_000, 16], data, { odd: true }))).toEqual(wanted);
  expect(await loaded(wav([1, 1, 16_000, 16], data, { size: 0xffffffff }))).toEqual(wanted);
  const path = folder.file("stereo.wav");
  writeFileSync(path, wav([1, 2, 16_000, 16], data));
  expect(await loaded(path)).toEqual({ sampleRate: 16_000, channels: [[0.5], [-0.5]] });
});

describe("damaged audio files are rejected", () => {
  const data = Uint8Array.of(0, 64);
  test.each([
    ["unknownFormat", Buffer.from("OggS rest of the file")],
    ["unknownEncoding", wav([2, 1, 16_000, 4], data)],
    ["damaged", wav([1, 0, 16_000, 16], data)],
    ["damaged", wav([1, 1, 0, 16], data)],
    ["damaged", wav([1, 1, 2 ** 20 + 1, 16], data)],
    ["damaged", wav([1, 1, 16_000, 16], new Uint8Array(0))],
    ["damaged", wav([1, 1, 16_000, 16], data).subarray(0, 36)],
    ["damaged", wav([1, 1, 16_000, 16], data).subarray(0, 20)],
  ])("%s is rejected", async (code, bytes) => {
    const error = await io.loadAudio(bytes).catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(FileFormatError);
    expect((error as FileFormatError).code).toBe(code);
  });
});

test("MP3 frames of silence are decoded to zeros", async () => {
  // MPEG-1 layer III, 128 kbit/s, 44.1 kHz: 417 bytes a frame, with empty side information
  const frame = Buffer.alloc(417);
  frame.set([0xff, 0xfb, 0x90, 0xc4]);
  const { sampleRate, channels } = await loaded(Buffer.concat(Array(6).fill(frame)));
  expect([sampleRate, channels.length]).toEqual([44_100, 2]);
  expect(channels[0].length).toBeGreaterThan(1152);
  expect(channels.flat().every((sample) => sample === 0)).toBeTrue();
});

test("a constant FLAC frame of each channel is decoded", async () => {
  const { sampleRate, channels } = await loaded(flac([0.25, -0.5], 192));
  expect(sampleRate).toBe(16_000);
  expect(channels).toEqual([Array(192).fill(0.25), Array(192).fill(-0.5)]);
});

test("a file with more samples than maxSamples is rejected", async () => {
  const silence = Buffer.alloc(6 * 417);
  for (let at = 0; at < silence.length; at += 417) silence.set([0xff, 0xfb, 0x90, 0xc4], at);
  const files: [Uint8Array, number][] = [
    [wav([1, 2, 16_000, 16], new Uint8Array(40)), 20],
    [flac([0.25, -0.5], 192), 384],
    [silence, 2 * 6912],
  ];
  for (const [file, samples] of files) {
    expect((await io.loadAudio(file, { maxSamples: samples })).samples.size).toBe(samples);
    expect(io.loadAudio(file, { maxSamples: samples - 1 })).rejects.toThrow(`expected at most ${samples - 1} samples`);
  }
});

/** A FLAC file of one frame with constant subframes at 16 kHz and 16 bits: RFC 9639. */
function flac(levels: readonly number[], samples: number): Buffer {
  const information = Buffer.alloc(34);
  information.writeUInt16BE(samples, 0);
  information.writeUInt16BE(samples, 2);
  const fields = (16_000n << 44n) | (BigInt(levels.length - 1) << 41n) | (15n << 36n) | BigInt(samples);
  information.writeBigUInt64BE(fields, 10);
  // sync; 192 samples, 16 kHz; independent channels, 16 bits; frame 0
  const header = Buffer.from([0xff, 0xf8, 0x15, ((levels.length - 1) << 4) | 0x08, 0]);
  const constants = levels.map((level) => {
    const subframe = Buffer.alloc(3);
    subframe.writeInt16BE(level * 2 ** 15, 1);
    return subframe;
  });
  const frame = Buffer.concat([header, Buffer.of(crc(header, 0x07, 8)), ...constants]);
  const check = Buffer.alloc(2);
  check.writeUInt16BE(crc(frame, 0x8005, 16));
  return Buffer.concat([Buffer.from("fLaC"), Buffer.of(0x80, 0, 0, 34), information, frame, check]);
}

function crc(bytes: Uint8Array, polynomial: number, width: number): number {
  let sum = 0;
  for (const byte of bytes) {
    sum ^= byte << (width - 8);
    for (let bit = 0; bit < 8; bit++) sum = sum & (1 << (width - 1)) ? (sum << 1) ^ polynomial : sum << 1;
    sum &= 2 ** width - 1;
  }
  return sum;
}
