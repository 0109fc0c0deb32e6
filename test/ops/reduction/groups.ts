/** Lists of the elements of a reduction, or of a slice along an axis, for oracles. */
import type { Block } from "../samples.ts";
import { exactly, type Round } from "../table.ts";

export interface Reduced {
  readonly dim?: number | readonly number[] | undefined;
  readonly keepdim?: boolean | undefined;
}

/** The axes that options select, as non-negative numbers; all without `dim`. */
export function axesOf({ dim }: Reduced, rank: number): number[] {
  const dims = dim === undefined || (Array.isArray(dim) && dim.length === 0) ? [...Array(rank).keys()] : [dim].flat();
  return dims.map((axis) => (axis < 0 ? axis + Math.max(rank, 1) : (axis as number)));
}

export function reducedShape({ shape }: Block, options: Reduced): number[] {
  const axes = axesOf(options, shape.length);
  return shape.flatMap((size, axis) => (axes.includes(axis) ? (options.keepdim ? [1] : []) : [size]));
}

/** The elements of each result, both in row-major order. */
export function groupsOf({ shape, values }: Block, options: Reduced): number[][] {
  const axes = new Set(axesOf(options, shape.length));
  const kept = shape.filter((_, axis) => !axes.has(axis));
  const groups: number[][] = Array.from({ length: kept.reduce((product, size) => product * size, 1) }, () => []);
  for (let index = 0; index < values.length; index++) {
    let [rest, stride, result] = [index, 1, 0];
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      const size = shape[axis];
      if (!axes.has(axis)) {
        result += (rest % size) * stride;
        stride *= size;
      }
      rest = Math.floor(rest / size);
    }
    groups[result].push(values[index]);
  }
  return groups;
}

/** A sum: compensated for an oracle (Neumaier, 1974), sequential for the plain computation. */
export function total(values: readonly number[], round: Round): number {
  if (round !== exactly) return values.reduce((sum, value) => round(sum + value), 0);
  let sum = 0;
  let lost = 0;
  for (const value of values) {
    const next = sum + value;
    lost += Math.abs(sum) >= Math.abs(value) ? sum - next + value : value - next + sum;
    sum = next;
  }
  return Number.isFinite(sum) ? sum + lost : sum;
}

/** Replaces each slice along an axis by another one of the same length. */
export function mapSlices(
  shape: readonly number[],
  values: readonly number[][],
  dim: number,
  map: (...slices: number[][]) => number[],
): number[] {
  const axis = dim < 0 ? dim + Math.max(shape.length, 1) : dim;
  const length = shape[axis] ?? 1;
  const step = shape.slice(axis + 1).reduce((product, size) => product * size, 1);
  const result = new Array<number>(values[0].length);
  for (let start = 0; start < result.length; start++) {
    if (Math.floor(start / step) % length !== 0) continue;
    const slice = map(...values.map((own) => Array.from({ length }, (_, k) => own[start + k * step])));
    for (const [k, value] of slice.entries()) result[start + k * step] = value;
  }
  return result;
}
