/** Matrices that tests factorize, and arithmetic on them in float64: row-major, without the library. */
import { randomNumbers } from "./random.ts";

/** A matrix in float64, row-major. */
export interface Matrix {
  readonly rows: number;
  readonly columns: number;
  readonly values: Float64Array;
}

// Loops, because Float64Array.from and map, which call a function for each element, would take most of the tests' time.
export function matrix(rows: number, columns: number, at: (i: number, j: number) => number): Matrix {
  const values = new Float64Array(rows * columns);
  for (let i = 0; i < rows; i++) for (let j = 0; j < columns; j++) values[i * columns + j] = at(i, j);
  return { rows, columns, values };
}

export const identity = (size: number): Matrix => matrix(size, size, (i, j) => Number(i === j));
export function transposed({ rows, columns, values }: Matrix): Matrix {
  const result = new Float64Array(values.length);
  for (let i = 0; i < rows; i++) for (let j = 0; j < columns; j++) result[j * rows + i] = values[i * columns + j];
  return { rows: columns, columns: rows, values: result };
}
export const scaled = (x: Matrix, factor: number): Matrix => ({
  ...x,
  values: x.values.map((value) => value * factor),
});

/** Adds four rows of b at a time to a row of the result, so that this row is read and written once for four. */
export function product(a: Matrix, b: Matrix): Matrix {
  const [{ values: left, columns: depth }, { values: right, columns: width }] = [a, b];
  const values = new Float64Array(a.rows * width);
  for (let i = 0; i < a.rows; i++) {
    const [row, end] = [i * width, (i + 1) * width];
    for (let k = 0; k < depth; k++) {
      const at = i * depth + k;
      const f = left[at];
      if (f === 0) continue; // a factor of 0 adds nothing, even if b is infinite
      let from = k * width;
      if (k + 4 > depth || left[at + 1] === 0 || left[at + 2] === 0 || left[at + 3] === 0) {
        for (let j = row; j < end; j++, from++) values[j] += f * right[from];
        continue;
      }
      const [g, h, m] = [left[at + 1], left[at + 2], left[at + 3]];
      const [second, third, fourth] = [width, 2 * width, 3 * width];
      for (let j = row; j < end; j++, from++)
        values[j] =
          values[j] + f * right[from] + g * right[from + second] + h * right[from + third] + m * right[from + fourth];
      k += 3;
    }
  }
  return { rows: a.rows, columns: width, values };
}

export function difference(a: Matrix, b: Matrix): Matrix {
  const values = a.values.slice();
  for (let index = 0; index < values.length; index++) values[index] -= b.values[index];
  return { ...a, values };
}

/** The largest sum of absolute values in a column; NaN if an element is NaN. */
export function norm1({ rows, columns, values }: Matrix): number {
  let largest = 0;
  const sums = new Float64Array(columns);
  for (let i = 0; i < rows; i++) for (let j = 0; j < columns; j++) sums[j] += Math.abs(values[i * columns + j]);
  for (let j = 0; j < columns; j++) largest = Math.max(largest, sums[j]);
  return largest;
}

/** The matrix with each element rounded to float32. */
export const rounded = (x: Matrix): Matrix => ({ ...x, values: new Float64Array(new Float32Array(x.values)) });

/** An orthogonal matrix: the product of two reflections, (I − a v vᵀ)(I − b w wᵀ) with a = 2 / vᵀv and b = 2 / wᵀw. */
function orthogonal(size: number, seed: number): Matrix {
  const [v, w] = [randomNumbers(size, seed), randomNumbers(size, seed + 1)];
  const dot = (x: Float64Array, y: Float64Array) => x.reduce((sum, value, i) => sum + value * y[i], 0);
  const [a, b] = [2 / (dot(v, v) || 1), 2 / (dot(w, w) || 1)];
  const both = a * b * dot(v, w);
  return matrix(size, size, (i, j) => Number(i === j) - a * v[i] * v[j] - b * w[i] * w[j] + both * v[i] * w[j]);
}

/** U diag(values) Vᵀ with orthogonal U and V. */
function withSingularValues(rows: number, columns: number, value: (k: number) => number, seed: number): Matrix {
  const count = Math.min(rows, columns);
  const values = Float64Array.from({ length: count }, (_, k) => value(k));
  const [left, right] = [orthogonal(rows, seed), orthogonal(columns, seed + 7)];
  return product(
    matrix(rows, count, (i, k) => left.values[i * rows + k] * values[k]),
    matrix(count, columns, (k, j) => right.values[j * columns + k]),
  );
}

type Family = (rows: number, columns: number, seed: number) => Matrix;

const random: Family = (rows, columns, seed) => {
  const values = randomNumbers(rows * columns, seed);
  return { rows, columns, values };
};

/** 10^power for a row or column, of `count`: from 10^-15 to 10^15. */
const grade = (at: number, count: number): number => 10 ** (count < 2 ? 0 : -15 + (30 * at) / (count - 1));

/** General matrices, of any shape. */
export const families: Readonly<Record<string, Family>> = {
  random,
  "graded rows": (rows, columns, seed) => {
    const { values } = random(rows, columns, seed);
    return matrix(rows, columns, (i, j) => values[i * columns + j] * grade(i, rows));
  },
  "graded columns": (rows, columns, seed) => {
    const { values } = random(rows, columns, seed);
    return matrix(rows, columns, (i, j) => values[i * columns + j] * grade(j, columns));
  },
  "rank-deficient": (rows, columns, seed) => {
    const rank = Math.ceil(Math.min(rows, columns) / 2);
    return product(random(rows, rank, seed), random(rank, columns, seed + 1));
  },
  "clustered values": (rows, columns, seed) => withSingularValues(rows, columns, (k) => 1 + k * 1e-6, seed),
  "repeated values": (rows, columns, seed) => withSingularValues(rows, columns, (k) => (k % 2 ? 2 : 1), seed),
  "geometric values": (rows, columns, seed) => withSingularValues(rows, columns, (k) => 2 ** -k, seed),
  hilbert: (rows, columns) => matrix(rows, columns, (i, j) => 1 / (i + j + 1)),
  vandermonde: (rows, columns) => matrix(rows, columns, (i, j) => ((i + 1) / rows) ** j),
  orthogonal: (rows, columns, seed) => withSingularValues(rows, columns, () => 1, seed),
  diagonal: (rows, columns) => matrix(rows, columns, (i, j) => (i === j ? (i % 3) - 1 : 0)),
  "near overflow": (rows, columns, seed) => scaled(random(rows, columns, seed), 1e30),
  "near underflow": (rows, columns, seed) => scaled(random(rows, columns, seed), 1e-30),
  companion: (rows, columns) => matrix(rows, columns, (i, j) => (i === 0 ? -(j + 1) : Number(i === j + 1))),
  wilkinson: (rows, columns) =>
    matrix(rows, columns, (i, j) => (i === j ? Math.abs((rows - 1) / 2 - i) : Number(Math.abs(i - j) === 1))),
  zero: (rows, columns) => matrix(rows, columns, () => 0),
};

const gram = (x: Matrix, shift: number): Matrix => {
  const square = product(x, transposed(x));
  return matrix(x.rows, x.rows, (i, j) => square.values[i * x.rows + j] + (i === j ? shift : 0));
};
const congruent = (x: Matrix, scale: (i: number) => number): Matrix =>
  matrix(x.rows, x.rows, (i, j) => x.values[i * x.rows + j] * scale(i) * scale(j));

const symmetricPart = (x: Matrix): Matrix =>
  matrix(x.rows, x.rows, (i, j) => (x.values[i * x.rows + j] + x.values[j * x.rows + i]) / 2);
const withEigenvalues = (size: number, value: (k: number) => number, seed: number): Matrix => {
  const vectors = orthogonal(size, seed);
  const lengths = matrix(size, size, (i, j) => vectors.values[i * size + j] * value(j));
  return symmetricPart(product(lengths, transposed(vectors)));
};

/** Symmetric positive definite matrices. */
export const definiteFamilies: Readonly<Record<string, (size: number, seed: number) => Matrix>> = {
  random: (size, seed) => gram(random(size, size, seed), 1),
  graded: (size, seed) => congruent(gram(random(size, size, seed), size), (i) => Math.sqrt(grade(i, size))),
  clustered: (size, seed) =>
    gram(
      withSingularValues(size, size, (k) => 1 + k * 1e-6, seed),
      0,
    ),
  lehmer: (size) => matrix(size, size, (i, j) => (Math.min(i, j) + 1) / (Math.max(i, j) + 1)),
  "minimum of indices": (size) => matrix(size, size, (i, j) => Math.min(i, j) + 1),
  diagonal: (size) => matrix(size, size, (i, j) => (i === j ? i + 1 : 0)),
  "near overflow": (size, seed) => scaled(gram(random(size, size, seed), 1), 1e30),
  "near underflow": (size, seed) => scaled(gram(random(size, size, seed), 1), 1e-30),
};

/** Symmetric matrices. */
export const symmetricFamilies: Readonly<Record<string, (size: number, seed: number) => Matrix>> = {
  ...Object.fromEntries(
    ["random", "rank-deficient", "clustered values", "repeated values", "geometric values"].map((name) => [
      name,
      (size: number, seed: number) => symmetricPart(families[name](size, size, seed)),
    ]),
  ),
  "repeated eigenvalues": (size, seed) => withEigenvalues(size, (k) => (k % 3) - 1, seed),
  "clustered eigenvalues": (size, seed) => withEigenvalues(size, (k) => 1 + k * 1e-6, seed),
  "geometric eigenvalues": (size, seed) => withEigenvalues(size, (k) => (-2) ** -k, seed),
  reflection: (size, seed) => withEigenvalues(size, (k) => (k === 0 ? -1 : 1), seed),
  graded: (size, seed) => congruent(symmetricPart(random(size, size, seed)), (i) => grade(i, size)),
  "graded downwards": (size, seed) =>
    congruent(symmetricPart(random(size, size, seed)), (i) => grade(size - 1 - i, size)),
  hilbert: (size) => families.hilbert(size, size, 0),
  diagonal: (size) => families.diagonal(size, size, 0),
  wilkinson: (size) => families.wilkinson(size, size, 0),
  clement: (size) =>
    matrix(size, size, (i, j) => (Math.abs(i - j) === 1 ? Math.sqrt(Math.max(i, j) * (size - Math.max(i, j))) : 0)),
  arrow: (size) => matrix(size, size, (i, j) => (i === j ? i + 1 : Number(i === 0 || j === 0))),
  ones: (size) => matrix(size, size, () => 1),
  "near overflow": (size, seed) => scaled(symmetricPart(random(size, size, seed)), 1e30),
  "near underflow": (size, seed) => scaled(symmetricPart(random(size, size, seed)), 1e-30),
  zero: (size) => matrix(size, size, () => 0),
  ...Object.fromEntries(Object.entries(definiteFamilies).map(([name, make]) => [`definite ${name}`, make])),
};
