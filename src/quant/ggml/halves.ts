/** Reads and writes 16-bit floats and 8-bit exponents in blocks, little-endian and at any byte. */
import { bfloat16ToNumber, numberToBfloat16 } from "../../tensor/bfloat16.ts";

const half = new Float16Array(1);
const bits = new Uint16Array(half.buffer);

/** Returns the float16 at a byte. */
export function halfAt(bytes: Uint8Array, at: number): number {
  bits[0] = bytes[at] | (bytes[at + 1] << 8);
  return half[0];
}

/** Writes the float16 that is nearest to a float32, ties to even. */
export function putHalf(bytes: Uint8Array, at: number, value: number): void {
  half[0] = value;
  putBits(bytes, at, bits[0]);
}

/** Returns the bfloat16 at a byte. */
export const brainAt = (bytes: Uint8Array, at: number): number => bfloat16ToNumber(bytes[at] | (bytes[at + 1] << 8));

const float = new Float32Array(1);
const word = new Uint32Array(float.buffer);

/** Writes the bfloat16 that is nearest to a float32, ties to even. A NaN keeps its sign and upper payload. */
export function putBrain(bytes: Uint8Array, at: number, value: number): void {
  float[0] = value;
  putBits(bytes, at, Number.isNaN(value) ? (word[0] >>> 16) | 64 : numberToBfloat16(value));
}

function putBits(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value & 255;
  bytes[at + 1] = value >> 8;
}

/** Returns half of 2^(`exponent` − 127): the scale of MXFP4 for doubled levels. */
export function halfPower(exponent: number): number {
  word[0] = exponent < 2 ? 0x00200000 << exponent : (exponent - 1) << 23;
  return float[0];
}
