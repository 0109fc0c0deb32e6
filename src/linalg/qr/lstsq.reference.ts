import type { Implementation } from "../../backend/backend.ts";
import { store } from "../../backend/reference/elements.ts";
import { lastElement } from "../../core/collections.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { matricesOf } from "../matrices.ts";
import { matricesIn, storeMatrices } from "../reference.ts";
import type { LstsqAttributes } from "./primitive.ts";
import { applyReflections, reflect } from "./reflections.reference.ts";

export const lstsqReference: Implementation<LstsqAttributes, [Tensor, Tensor], [Tensor, Tensor, Tensor]> = {
  run({ inputs: [a, b], outputs: [x, rank, info], attributes }) {
    const { rows, columns } = matricesOf(a);
    const width = lastElement(b.shape);
    const others = matricesIn(b);
    const solved = matricesIn(a).map((matrix, at) =>
      solve({ a: matrix, b: others[at], rows, columns, width }, attributes),
    );
    storeMatrices(
      x,
      solved.map((result) => result.x),
    );
    store(
      rank,
      solved.map((result) => result.rank),
    );
    store(
      info,
      solved.map((result) => result.zero),
    );
  },
};

interface System {
  readonly a: Float64Array;
  readonly b: Float64Array;
  readonly rows: number;
  readonly columns: number;
  readonly width: number;
}

interface Solution {
  readonly x: Float64Array;
  readonly rank: number;
  /** The first 0 on the diagonal of a matrix assumed to have full rank, counted from 1; 0 if there is none. */
  readonly zero: number;
}

/**
 * With A P = Q [R₁ R₂; 0 0], where R₁ has the size of the rank, and [R₁ R₂]ᵀ = Z [S; 0]: X = P Z [S⁻ᵀ (Qᵀ B)₁; 0].
 * Without pivoting P is the unit matrix, and the rank is min(m, n).
 */
function solve(system: System, { isPivoted, rcond }: LstsqAttributes): Solution {
  const { a, b, rows, columns, width } = system;
  const order = isPivoted ? pivot(system) : Array.from({ length: columns }, (_, j) => j);
  const permuted = new Float64Array(rows * columns);
  for (let i = 0; i < rows; i++)
    for (let j = 0; j < columns; j++) permuted[i * columns + j] = a[i * columns + order[j]];
  const tau = reflect(permuted, rows, columns);
  applyReflections({ a: permuted, stride: columns, tau }, b, width, true);
  const rank = isPivoted ? rankOf(permuted, columns, tau.length, rcond) : tau.length;
  const turned = new Float64Array(columns * rank);
  for (let i = 0; i < rank; i++) for (let j = i; j < columns; j++) turned[j * rank + i] = permuted[i * columns + j];
  const scales = reflect(turned, columns, rank);
  const x = new Float64Array(columns * width);
  const zero = isPivoted ? 0 : 1 + Array.from({ length: rank }, (_, i) => turned[i * rank + i]).indexOf(0);
  if (zero > 0) return { x, rank, zero };
  for (let i = 0; i < rank; i++)
    for (let j = 0; j < width; j++) {
      let sum = b[i * width + j];
      for (let k = 0; k < i; k++) sum -= turned[k * rank + i] * x[k * width + j];
      x[i * width + j] = sum / turned[i * rank + i];
    }
  applyReflections({ a: turned, stride: rank, tau: scales }, x, width, false);
  const restored = new Float64Array(columns * width);
  for (const [at, column] of order.entries()) restored.set(x.subarray(at * width, (at + 1) * width), column * width);
  return { x: restored, rank, zero };
}

/** The pivot order of columns: each one is the longest remaining column after projecting out the earlier ones. */
function pivot({ a, rows, columns }: System): number[] {
  const left = Array.from({ length: columns }, (_, j) =>
    Float64Array.from({ length: rows }, (_, i) => a[i * columns + j]),
  );
  const order = left.map((_, j) => j);
  for (let k = 0; k < Math.min(rows, columns); k++) {
    const lengths = order.slice(k).map((j) => Math.hypot(...left[j].subarray(k)));
    const longest =
      k + lengths.indexOf(lengths.reduce((most, length) => (length > most ? length : most), Number.NEGATIVE_INFINITY));
    if (longest > k) [order[k], order[longest]] = [order[longest], order[k]];
    eliminate(left, order, k);
  }
  return order;
}

/** Applies reflection k to the columns order[k], order[k + 1], …. */
function eliminate(left: readonly Float64Array[], order: readonly number[], k: number): void {
  const rows = left[0].length - k;
  const part = new Float64Array(rows * (order.length - k));
  const width = order.length - k;
  for (const [at, j] of order.slice(k).entries()) for (let i = 0; i < rows; i++) part[i * width + at] = left[j][k + i];
  const column = Float64Array.from({ length: rows }, (_, i) => part[i * width]);
  const tau = reflect(column, rows, 1);
  applyReflections({ a: column, stride: 1, tau }, part, width, true);
  for (const [at, j] of order.slice(k).entries()) for (let i = 0; i < rows; i++) left[j][k + i] = part[i * width + at];
}

/** The largest size of R₁ whose smallest singular value is at least `rcond` times its largest. */
function rankOf(r: Float64Array, columns: number, count: number, rcond: number): number {
  if (count === 0 || r[0] === 0) return 0;
  let largest: Extreme = { value: Math.abs(r[0]), vector: [1] };
  let smallest = largest;
  for (let k = 1; k < count; k++) {
    const column = Array.from({ length: k + 1 }, (_, i) => r[i * columns + k]);
    largest = grown(largest, column, true);
    smallest = grown(smallest, column, false);
    if (!(largest.value * rcond <= smallest.value)) return k;
  }
  return count;
}

/** An estimate of an extreme singular value, with its left vector. */
interface Extreme {
  readonly value: number;
  readonly vector: readonly number[];
}

/** The extreme singular value of [σ 0; α γ], where α is the product of the vector and the new column above γ. */
function grown({ value, vector }: Extreme, column: readonly number[], isLargest: boolean): Extreme {
  const gamma = lastElement(column);
  const alpha = vector.reduce((sum, element, i) => sum + element * column[i], 0);
  const scale = Math.max(value, Math.abs(alpha), Math.abs(gamma));
  if (!(scale > 0)) return { value: 0, vector: [...vector.map(() => 0), 1] };
  const [s, a, g] = [value / scale, alpha / scale, gamma / scale];
  const angle = Math.atan2(2 * a * g, s * s + a * a - g * g) / 2;
  const [along, across] = [Math.cos(angle), Math.sin(angle)];
  const most = Math.hypot(s * along, a * along + g * across);
  const extended = (factor: number, last: number): number[] => [...vector.map((element) => element * factor), last];
  if (isLargest) return { value: scale * most, vector: extended(along, across) };
  return { value: (scale * s * Math.abs(g)) / most, vector: extended(-across, along) };
}
