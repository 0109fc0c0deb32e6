/** Lengths of the device's transforms, and the tables of Bluestein's algorithm. */
import { getOrMake } from "../core/collections.ts";
import { transformed } from "./definition.ts";

/** The maximum length of a line in threadgroup memory, which has 32 KB. */
export const MOST_ELEMENTS = 4096;

/** Returns the radices of a kernel's passes; none for a length with a prime factor above 7. */
export function radicesOf(length: number): readonly number[] {
  const radices: number[] = [];
  let rest = length;
  for (const radix of [8, 4, 2, 3, 5, 7]) for (; rest % radix === 0 && rest > 1; rest /= radix) radices.push(radix);
  return rest === 1 ? radices : [];
}

/** Returns two factors that fit into threadgroup memory, as close as possible; undefined if there are none. */
export function splitOf(length: number): readonly [number, number] | undefined {
  if (length <= MOST_ELEMENTS) return [length, 1];
  for (let a = Math.floor(Math.sqrt(length)); a * MOST_ELEMENTS >= length; a--)
    if (length % a === 0) return [length / a, a];
  return undefined;
}

/** Returns the smallest power of two, or three or five times one, that holds the convolution of a line with a chirp. */
export function paddedLength(length: number): number {
  const least = 2 * length - 1;
  const next = (first: number) => first * 2 ** Math.max(0, Math.ceil(Math.log2(least / first)));
  return Math.min(...[1, 3, 5, 9, 15].map(next));
}

const tables = new Map<number, Float32Array>();

/**
 * Returns the chirp, e^(-πi j² / n), and the transform of its conjugate, divided by its length, as pairs. They are
 * computed in float64.
 */
export function chirpTable(length: number): Float32Array {
  return getOrMake(tables, length, () => {
    if (tables.size >= MOST_TABLES) tables.delete(tables.keys().next().value!);
    const padded = paddedLength(length);
    const table = new Float32Array(2 * (length + padded));
    const [re, im] = [new Float64Array(padded), new Float64Array(padded)];
    let square = 0;
    for (let j = 0; j < length; j++) {
      const [c, s] = [Math.cos((Math.PI * square) / length), Math.sin((Math.PI * square) / length)];
      table.set([c, -s], 2 * j);
      for (const at of [j, (padded - j) % padded]) [re[at], im[at]] = [c, s];
      square = (square + 2 * j + 1) % (2 * length);
    }
    const spectrum = transformed({ re, im }, -1);
    for (let k = 0; k < padded; k++) table.set([spectrum.re[k] / padded, spectrum.im[k] / padded], 2 * (length + k));
    return table;
  });
}

/** Maximum number of cached tables. */
const MOST_TABLES = 16;
