import type { Implementation } from "../../backend/backend.ts";
import { store } from "../../backend/reference/elements.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { matricesOf } from "../matrices.ts";
import { matricesIn, storeMatrices } from "../reference.ts";
import { type SvdAttributes, SvdInfo, svdOutputs } from "./primitive.ts";

/**
 * One-sided Jacobi: rotates the rows of W, which is A if A is wide and Aᵀ otherwise, until every pair is orthogonal.
 * Then G W = Σ Z with rows of length 1 in Z, so W = Gᵀ Σ Z. Source: P. P. M. de Rijk, "A one-sided Jacobi algorithm for
 * computing the singular value decomposition on a vector computer", 1989.
 */
export const svdReference: Implementation<SvdAttributes, [Tensor]> = {
  run({ inputs: [a], outputs, attributes }) {
    const { u, s, vh, info } = svdOutputs(outputs, attributes);
    const { rows, columns } = matricesOf(a);
    const isSingle = a.dtype === "float32";
    const found = matricesIn(a).map((values) => factorize(values, rows, columns, isSingle, attributes.full));
    store(
      info,
      found.map((each) => each.info),
    );
    store(
      s,
      found.flatMap((each) => [...each.s]),
    );
    if (!u || !vh) return;
    storeMatrices(
      u,
      found.map((each) => each.u),
    );
    storeMatrices(
      vh,
      found.map((each) => each.vh),
    );
  },
};

interface Found {
  readonly u: Float64Array;
  readonly s: Float64Array;
  readonly vh: Float64Array;
  readonly info: number;
}

const SWEEP_LIMIT = 60;
/** A squared row norm below this has lost all precision, since the largest element of the scaled matrix is about 1. */
const NEGLIGIBLE_SQUARE = 1e-280;

type Rows = readonly Float64Array[];

function factorize(a: Float64Array, rows: number, columns: number, isSingle: boolean, isFull: boolean): Found {
  const [small, large] = [Math.min(rows, columns), Math.max(rows, columns)];
  const nothing = (info: number): Found => {
    const [left, right] = isFull ? [rows, columns] : [small, small];
    const filled = (count: number) => new Float64Array(count).fill(Number.NaN);
    return { u: filled(rows * left), s: filled(small), vh: filled(right * columns), info };
  };
  if (!a.every(Number.isFinite)) return nothing(SvdInfo.notFinite);
  const isTall = rows >= columns;
  const scale = powerOfTwo(a.reduce((largest, value) => Math.max(largest, Math.abs(value)), 0));
  const w = Array.from({ length: small }, (_, i) =>
    Float64Array.from({ length: large }, (_, j) => a[isTall ? j * columns + i : i * columns + j] / scale),
  );
  const g = identity(small);
  const tolerance = isSingle ? 2 ** -36 : 2 ** -52 * Math.max(4, Math.sqrt(large));
  if (!orthogonalise(w, g, tolerance)) return nothing(SvdInfo.notConverged);
  const norms = w.map((row) => Math.sqrt(dot(row, row)));
  const order = [...norms.keys()].sort((i, j) => norms[j] - norms[i] || i - j);
  const wide = completed(
    order.map((i) => w[i].map((value) => value / norms[i])),
    order.filter((i) => norms[i] ** 2 > NEGLIGIBLE_SQUARE).length,
    isFull ? large : small,
    large,
  );
  const narrow = order.map((i) => g[i]);
  for (const [at, row] of wide.entries()) orient(isTall ? [row, narrow[at]] : [narrow[at], row], isSingle);
  const [u, v] = isTall ? [wide, narrow] : [narrow, wide];
  return {
    u: Float64Array.from({ length: rows * u.length }, (_, at) => u[at % u.length][Math.floor(at / u.length)]),
    s: Float64Array.from(order, (i) => norms[i] * scale),
    vh: Float64Array.from(v.flatMap((row) => [...row])),
    info: SvdInfo.done,
  };
}

const powerOfTwo = (value: number): number =>
  value === 0 ? 1 : 2 ** Math.min(1022, Math.max(-1022, Math.floor(Math.log2(value))));

const identity = (size: number): Float64Array[] =>
  Array.from({ length: size }, (_, i) => Float64Array.from({ length: size }, (_, j) => Number(i === j)));

function dot(x: Float64Array, y: Float64Array, from = 0): number {
  let sum = 0;
  for (let i = from; i < x.length; i++) sum += x[i] * y[i];
  return sum;
}

/** Rotates the rows of W and of G until a sweep over all pairs of rows of W finds each pair orthogonal. */
function orthogonalise(w: Float64Array[], g: Float64Array[], tolerance: number): boolean {
  for (let sweep = 0; sweep < SWEEP_LIMIT; sweep++) {
    const squares = Float64Array.from(w, (row) => dot(row, row));
    let isRotated = false;
    for (let i = 0; i + 1 < w.length; i++) {
      const pivot = squares.reduce((best, value, at) => (at > i && value > squares[best] ? at : best), i);
      for (const list of [w, g, squares]) [list[i], list[pivot]] = [list[pivot], list[i]];
      for (let j = i + 1; j < w.length; j++) {
        if (!(squares[i] > NEGLIGIBLE_SQUARE && squares[j] > NEGLIGIBLE_SQUARE)) continue;
        const product = dot(w[i], w[j]);
        if (Math.abs(product) <= tolerance * Math.sqrt(squares[i]) * Math.sqrt(squares[j])) continue;
        const rotation = rotationOf(squares[i], squares[j], product);
        for (const rows of [w, g]) rotate(rows[i], rows[j], rotation);
        for (const row of [i, j]) squares[row] = dot(w[row], w[row]);
        isRotated = true;
      }
    }
    if (!isRotated) return true;
  }
  return false;
}

/**
 * An angle, as its sine s and the tangent of its half. The cosine is then c = 1 − s tan(angle / 2), which preserves
 * lengths for small angles; a rounded c would make all rows longer with each sweep.
 */
interface Rotation {
  readonly sine: number;
  readonly halfTangent: number;
}

/** The smaller angle that makes two rows orthogonal, from their squared norms and their dot product. */
function rotationOf(first: number, second: number, product: number): Rotation {
  const zeta = (second - first) / (2 * product);
  const size = Math.abs(zeta);
  const tangent = (zeta < 0 ? -1 : 1) * (size > 1e8 ? 0.5 / size : 1 / (size + Math.sqrt(1 + size * size)));
  const cosine = 1 / Math.sqrt(1 + tangent * tangent);
  const sine = cosine * tangent;
  return { sine, halfTangent: sine / (1 + cosine) };
}

/** Replaces x, y by c x − s y, s x + c y. */
function rotate(x: Float64Array, y: Float64Array, { sine, halfTangent }: Rotation): void {
  for (let i = 0; i < x.length; i++) {
    const [value, other] = [x[i], y[i]];
    x[i] = value - sine * (other + halfTangent * value);
    y[i] = other + sine * (value - halfTangent * other);
  }
}

/** Extends the first `rank` rows, which are orthonormal, to `count` orthonormal rows. */
function completed(rows: Rows, rank: number, count: number, length: number): Float64Array[] {
  const known = rows.slice(0, rank);
  const reflections: Float64Array[] = [];
  if (rank < count)
    for (const [at, row] of known.entries()) {
      const image = row.slice();
      for (const v of reflections) reflect(v, image);
      const size = Math.sqrt(dot(image, image, at));
      image.fill(0, 0, at);
      image[at] += image[at] < 0 ? -size : size;
      reflections.push(image);
    }
  const others = Array.from({ length: count - rank }, (_, at) => {
    const row = new Float64Array(length);
    row[rank + at] = 1;
    for (const v of reflections.toReversed()) reflect(v, row);
    return row;
  });
  return [...known, ...others];
}

/** Replaces x by x − 2 v (v·x) / (v·v). */
function reflect(v: Float64Array, x: Float64Array): void {
  const factor = (2 * dot(v, x)) / dot(v, v);
  for (let i = 0; i < x.length; i++) x[i] -= factor * v[i];
}

/** Flips the signs of a pair of vectors so that the first one's element of largest absolute value is positive. */
function orient(pair: readonly (Float64Array | undefined)[], isSingle: boolean): void {
  const vectors = pair.filter((vector) => vector !== undefined);
  const sizes = vectors[0].map((value) => Math.abs(isSingle ? Math.fround(value) : value));
  const first = sizes.indexOf(sizes.reduce((largest, value) => Math.max(largest, value), 0));
  if (vectors[0][first] < 0) for (const vector of vectors) for (const i of vector.keys()) vector[i] = -vector[i];
}
