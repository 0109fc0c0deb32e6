/** The positions and labels of ticks on the axes of charts. */
import { BYTE_UNITS } from "../../../core/format.ts";

/** 1, 2 and 5 times each power of ten from 10^least to 10^most. */
const roundNumbers = (least: number, most: number): number[] =>
  Array.from({ length: most - least + 1 }, (_, index) => least + index).flatMap((power) =>
    [1, 2, 5].map((digit) => Number(`${digit}e${power}`)),
  );

/** The possible distances of ticks. uPlot chooses one that leaves enough room. */
export const distances = {
  /** Whole numbers. */
  steps: roundNumbers(0, 9),
  numbers: roundNumbers(-9, 12),
  /** 1, 2, 5, 10, …, 500 of each unit, where 1024 of a unit make the next one. */
  bytes: BYTE_UNITS.flatMap((_, power) => roundNumbers(0, 2).map((number) => number * 1024 ** power)),
} as const;

/**
 *  Formats a value with as many decimals as the distance: 0.5 and 1.0, but 5 and 10. @param distance 1, 2 or 5 times a
 *  power of ten
 */
export const withDecimals = (value: number, distance: number): string =>
  value.toFixed(Math.max(0, -Math.floor(Math.log10(distance) + 1e-9)));

/** Formats bytes. @example bytesAt(3 * 2 ** 20); // "3 MB" */
export function bytesAt(bytes: number): string {
  const power = Math.min(BYTE_UNITS.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  return `${bytes / 1024 ** power} ${BYTE_UNITS[power]}`;
}
