/** Weights of small models, which Python computes too, and the comparison with its results. */
import { crc32 } from "node:zlib";
import { type Tensor, tensor } from "../../../src/index.ts";

/** The weight that `weight` of configs.py creates: h / 2³² − 1/2 for a hash h of the name and the index. */
export function hashed(name: string, shape: readonly number[], offset: number): Tensor {
  const count = shape.reduce((product, size) => product * size, 1);
  const hash = crc32(name);
  const values = Float32Array.from({ length: count }, (_, index) => {
    let h = Math.imul(index + hash, 0x9e3779b1);
    h = Math.imul(h ^ (h >>> 15), 0x85ebca77);
    h ^= h >>> 13;
    return (h >>> 0) / 2 ** 32 - 0.5 + offset;
  });
  return tensor(values, { shape: [...shape] });
}

/** Returns the numbers that the function `weight` of configs.py returns: plus 1 for norms. */
export const weight = (name: string, shape: readonly number[]): Tensor =>
  hashed(name, shape, shape.length === 1 && name.endsWith("weight") ? 1 : 0);

/** The largest difference, relative to the largest number. */
export function errorOf(got: Tensor, want: Tensor): number {
  const [a, b] = [got, want].map((x) => Array.from(x.dataSync(), Number)) as [number[], number[]];
  if (a.length !== b.length) return Infinity;
  let [error, largest] = [0, 0];
  for (const [at, value] of b.entries()) {
    error = Math.max(error, Math.abs(value - a[at]));
    largest = Math.max(largest, Math.abs(value));
  }
  return Number.isNaN(error) ? Infinity : error / largest;
}
