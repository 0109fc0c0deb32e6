/**
 * Operations that cpu computes in one or two native calls, so that small tensors cost little: drawn sizes, dtypes and
 * layouts, compared with formulas in float64.
 */
import { expect, test } from "bun:test";
import * as o from "../../src/index.ts";
import { type DType, type Tensor, tensor, toDType, withBackend } from "../../src/index.ts";
import { elementCount } from "../../src/tensor/shape.ts";
import {
  draws,
  expectNear,
  type Float,
  floats,
  numbers,
  onCpu,
  range,
  rowsOf,
  total,
  wideFloats,
} from "./drawn_calls.ts";

const { random, drawn, pick, sized } = draws(7301);

onCpu("kron of matrices", () => {
  const dtype = pick(floats);
  const [m, n, p, q] = [sized(9), sized(9), sized(9), sized(40)];
  const [a, b] = [drawn([m, n], dtype), drawn(pick([[p, q], [q]]), dtype)];
  const [left, right] = [rowsOf(numbers(a), n), rowsOf(numbers(b), q)];
  const expected = left.flatMap((row) => right.flatMap((other) => row.flatMap((x) => other.map((y) => x * y))));
  const found = o.kron(a, b);
  expect(found.shape).toEqual([m * right.length, n * q]);
  expectNear(found, expected, dtype, "kron");
});

onCpu("renorm along each axis", () => {
  const dtype = pick(floats);
  const shape = pick([
    [sized(40), sized(150)],
    [sized(6), sized(9), sized(90)],
  ]);
  const axis = random.integer(0, shape.length - 1);
  const [p, most] = [pick([1, 2, 3, Infinity]), pick([0, 0.5, 2])];
  const x = drawn(shape, dtype);
  const [count, inner] = [shape[axis], elementCount(shape.slice(axis + 1))];
  const values = numbers(x);
  const sliceOf = (at: number): number => Math.floor(at / inner) % count;
  const norms = range(count).map((slice) => {
    const all = values.flatMap((value, at) => (sliceOf(at) === slice ? [Math.abs(value)] : []));
    return p === Infinity ? Math.max(...all) : total(all.map((value) => value ** p)) ** (1 / p);
  });
  const factors = norms.map((norm) => (norm > most ? most / (norm + 1e-7) : 1));
  const expected = values.map((value, at) => value * factors[sliceOf(at)]);
  expectNear(o.renorm(x, p, axis, most), expected, dtype, `renorm ${shape} along ${axis}, p ${p}`);
});

onCpu("renorm of NaN", () => {
  const found = numbers(
    o.renorm(
      tensor([
        [Number.NaN, 1],
        [3, 4],
      ]),
      pick([2, Infinity]),
      0,
      1,
    ),
  );
  expect(found[0]).toBeNaN();
  expect(found[3]).toBeGreaterThan(0.7);
});

onCpu("put and indexPut with negative indices, and their gradients", () => {
  const dtype = pick(["float32", "bfloat16", "int64"] as const);
  const [rows, columns, count] = [sized(30), sized(12), sized(20)];
  const whole = () => random.integer(-50, 50);
  const x = drawn([rows, columns], dtype, whole);
  const source = drawn([count], dtype, whole);
  const places = range(count).map(() => random.integer(-rows * columns, rows * columns - 1));
  const index = toDType(tensor(places), pick(["int64", "int32"] as const)) as Tensor<"int64">;
  const [values, news] = [numbers(x), numbers(source)];
  const accumulate = random.next() < 0.5;
  for (const [at, place] of places.entries()) {
    const from = place < 0 ? place + values.length : place;
    values[from] = accumulate ? values[from] + news[at] : news[at];
  }
  const close = accumulate && dtype === "bfloat16" ? numbers(toDType(tensor(values), "bfloat16")) : values;
  expect(numbers(o.put(x, index, source as never, { accumulate }))).toEqual(close);
  const slices = range(count).map(() => random.integer(-rows, rows - 1));
  const given = drawn([count, columns], dtype, whole);
  const lines = rowsOf(numbers(x), columns);
  for (const [at, slice] of slices.entries())
    lines[slice < 0 ? slice + rows : slice] = rowsOf(numbers(given), columns)[at];
  const put = o.indexPut(x, [toDType(tensor(slices), "int64") as Tensor<"int64">], given as never);
  expect(numbers(put)).toEqual(lines.flat());
});

test("indices out of range are named", () =>
  withBackend("cpu", () => {
    expect(() => o.put(o.zeros([3]), tensor([0n, -4n]), o.zeros([2]))).toThrow("indices of -3 to 2, got -4 at [1]");
    const call = () => o.indexPut(o.zeros([2, 3]), [tensor([1n, 2n])], o.zeros([2, 3]));
    expect(call).toThrow("indices of -2 to 1, got 2 at [1]");
  }));

test("the gradients of put reach the elements that negative indices select", () =>
  withBackend("cpu", () => {
    const [x, source] = [o.ones([4]), o.ones([2])];
    for (const leaf of [x, source]) leaf.requiresGrad = true;
    const scales = tensor([1, 2, 3, 4]);
    for (const accumulate of [false, true]) {
      const found = o.grad([o.put(x, tensor([-1n, 1n]), source, { accumulate })], [x, source], {
        gradOutputs: [scales],
      });
      expect(found.map(numbers)).toEqual([accumulate ? [1, 2, 3, 4] : [1, 0, 3, 0], [4, 2]]);
    }
  }));

/** Random matrices with a strong diagonal in another order, so that rows are swapped. */
function matrices(batch: number, rows: number, columns: number, dtype: DType): Tensor {
  const shifted = random.integer(0, rows - 1);
  const list = range(batch * rows * columns).map((at) => {
    const [i, j] = [Math.floor(at / columns) % rows, at % columns];
    return (random.next() - 0.5) / Math.max(rows, columns) + ((i + shifted) % rows === j ? 2 : 0);
  });
  return toDType(tensor(list, { shape: [batch, rows, columns] }), dtype) as Tensor;
}

type Matrix = readonly (readonly number[])[];
const product = (a: Matrix, b: Matrix): number[][] =>
  a.map((row) => b[0].map((_, j) => total(row.map((value, k) => value * b[k][j]))));

onCpu("lu: P L U is the matrix, and its parts are triangular", () => {
  const dtype = pick(wideFloats);
  const [batch, rows, columns] = [sized(4), sized(20), sized(20)];
  const a = matrices(batch, rows, columns, dtype);
  const { p, l, u } = o.linalg.lu(a);
  const size = Math.min(rows, columns);
  for (const at of range(batch)) {
    const part = (x: Tensor, width: number): number[][] => rowsOf(numbers(o.select(x, 0, at)), width);
    const [left, right] = [part(l, size), part(u, columns)];
    for (const [i, row] of left.entries())
      for (const [j, value] of row.entries()) if (j >= i) expect(value).toBe(i === j ? 1 : 0);
    for (const [i, row] of right.entries()) for (const j of range(Math.min(i, columns))) expect(row[j]).toBe(0);
    const expected = product(part(p, rows), product(left, right)).flat();
    expectNear(o.select(a, 0, at), expected, dtype, "lu");
  }
  const plain = o.linalg.lu(o.matmul(a, a.transpose(-1, -2)), { pivot: false });
  expect(plain.p.shape).toEqual([0]);
});

/** The determinant, by elimination with row pivots. */
function determinantOf(matrix: Matrix): number {
  const rows = matrix.map((row) => [...row]);
  let found = 1;
  for (const k of range(rows.length)) {
    const pivot = range(rows.length)
      .slice(k)
      .reduce((best, i) => (Math.abs(rows[i][k]) > Math.abs(rows[best][k]) ? i : best), k);
    if (rows[pivot][k] === 0) return 0;
    if (pivot !== k) found = -found;
    [rows[k], rows[pivot]] = [rows[pivot], rows[k]];
    found *= rows[k][k];
    for (const i of range(rows.length).slice(k + 1)) {
      const factor = rows[i][k] / rows[k][k];
      rows[i] = rows[i].map((value, j) => value - factor * rows[k][j]);
    }
  }
  return found;
}

onCpu("det, slogdet and logdet", () => {
  const dtype = pick(wideFloats);
  const [batch, n] = [sized(5), sized(12)];
  const a = matrices(batch, n, n, dtype);
  const expected = range(batch).map((at) => determinantOf(rowsOf(numbers(o.select(a, 0, at)), n)));
  const logarithms = expected.map((value) => Math.log(Math.abs(value)));
  expectNear(o.linalg.det(a), expected, dtype, "det");
  const { sign, logabsdet } = o.linalg.slogdet(a);
  expectNear(sign, expected.map(Math.sign), dtype, "sign");
  expectNear(logabsdet, logarithms, dtype, "logabsdet");
  const defined = expected.map((value, at) => (value < 0 ? Number.NaN : logarithms[at]));
  expectNear(o.linalg.logdet(a), defined, dtype, "logdet");
  const singular = o.linalg.slogdet(o.zeros([2, 2], { dtype }));
  expect([singular.sign.item(), singular.logabsdet.item()]).toEqual([0, -Infinity]);
  expect(o.linalg.det(o.zeros([0, 0], { dtype })).item()).toBe(1);
});

/** Σ Aᵏ / k!, of the matrix divided by 2ˢ, squared s times. */
function exponentialOf(a: Matrix): number[][] {
  const squarings = 12;
  const scaled = a.map((row) => row.map((value) => value / 2 ** squarings));
  const identity = a.map((row, i): number[] => row.map((_, j) => (i === j ? 1 : 0)));
  let [term, sum] = [identity, identity];
  for (const k of range(12)) {
    term = product(term, scaled).map((row) => row.map((value) => value / (k + 1)));
    sum = sum.map((row, i) => row.map((value, j) => value + term[i][j]));
  }
  for (let step = 0; step < squarings; step++) sum = product(sum, sum);
  return sum;
}

onCpu("matrixExp of small matrices of every degree", () => {
  const dtype = pick(wideFloats);
  const [batch, n] = [sized(4), sized(20)];
  const scales = range(batch).map(() => 10 ** (random.next() * 10 - 9) / n);
  let at = 0;
  const a = drawn([batch, n, n], dtype, () => (random.next() - 0.5) * scales[Math.floor(at++ / (n * n))]);
  const matrixOf = (x: Tensor, batchAt: number): number[][] => rowsOf(numbers(o.select(x, 0, batchAt)), n);
  const found = o.linalg.matrixExp(a);
  const slack = dtype === "float64" ? 2 ** -36 : 2 ** -16; // of the largest element, since squarings add errors
  for (const each of range(batch)) {
    const [got, expected] = [matrixOf(found, each).flat(), exponentialOf(matrixOf(a, each)).flat()];
    const most = Math.max(...expected.map(Math.abs));
    const off = Math.max(...got.map((value, place) => Math.abs(value - expected[place])));
    expect([scales[each], off / most < slack, off / most]).toEqual([scales[each], true, off / most]);
  }
});

test("matrixExp of infinity is NaN", () =>
  withBackend("cpu", () => {
    const found = numbers(
      o.linalg.matrixExp(
        tensor([
          [Infinity, 0],
          [0, 1],
        ]),
      ),
    );
    expect(found.some(Number.isNaN)).toBeTrue();
  }));

onCpu("vander", () => {
  const dtype = pick([...floats, "int64", "int32"] as const);
  const [rows, columns] = [sized(30), 1 + sized(9)];
  const isWhole = dtype.startsWith("int");
  const x = drawn([rows], dtype, () => (isWhole ? random.integer(-9, 9) : random.next() * 2 - 1));
  const found = o.linalg.vander(x as Tensor<Float>, { n: columns });
  expect<string>(found.dtype).toBe(isWhole ? "int64" : dtype);
  const expected = numbers(x).flatMap((value) => range(columns).map((power) => value ** power));
  expectNear(found, expected, isWhole ? "float64" : (dtype as Float), "vander");
});

onCpu("cov and corrcoef", () => {
  const dtype = pick(floats);
  const [variables, n] = [sized(20), 1 + sized(60)];
  const x = drawn([variables, n], dtype);
  const lines = rowsOf(numbers(x), n).map((row) => row.map((value) => value - total(row) / n));
  const sums = lines.map((a) => lines.map((b) => total(a.map((value, k) => value * b[k]))));
  const correction = pick([0, 1, n]);
  const divided = sums.flat().map((value) => value / (n - correction));
  if (correction < n) expectNear(o.cov(x, { correction }), divided, dtype, "cov");
  else expect(numbers(o.cov(x, { correction })).every((value) => !Number.isFinite(value))).toBeTrue();
  const correlations = sums.flatMap((row, i) => row.map((value, j) => value / Math.sqrt(sums[i][i] * sums[j][j])));
  expectNear(o.corrcoef(x), correlations, dtype, "corrcoef");
});

onCpu("crossEntropy's mean and its gradient", () => {
  const dtype = pick(floats);
  const [rows, classes] = [sized(60), sized(30)];
  const logits = drawn([rows, classes], dtype);
  const targets = range(rows).map(() => random.integer(0, classes - 1));
  const ignoreIndex = pick([-100, targets[0]]);
  const lines = rowsOf(numbers(logits), classes);
  const losses = lines.map((row, at) =>
    targets[at] === ignoreIndex ? [] : [Math.log(total(row.map(Math.exp))) - row[targets[at]]],
  );
  const counted = losses.flat();
  const index = toDType(tensor(targets), "int64") as Tensor<"int64">;
  const variable = logits.detach();
  variable.requiresGrad = true;
  const value = o.crossEntropy(variable, index, { ignoreIndex });
  expectNear(value, [total(counted) / counted.length], dtype, "crossEntropy");
  expectNear(o.crossEntropy(logits, index, { ignoreIndex }), numbers(value), dtype, "without a gradient");
  expectNear(o.crossEntropy(logits, index, { ignoreIndex, reduction: "sum" }), [total(counted)], dtype, "sum");
  const factors = range(classes).map(() => random.integer(1, 4));
  const weight = toDType(tensor(factors), dtype) as Tensor;
  const weighted = losses.flatMap((loss, at) => loss.map((each) => each * factors[targets[at]]));
  const divisor = total(losses.flatMap((loss, at) => loss.map(() => factors[targets[at]])));
  const mean = total(weighted) / divisor;
  expectNear(o.crossEntropy(logits, index, { ignoreIndex, weight }), [mean], dtype, "weighted");
  if (counted.length === 0) return;
  const [gradient] = o.grad([value], [variable]);
  const expected = lines.flatMap((row, at) => {
    const sum = total(row.map(Math.exp));
    const isCounted = targets[at] !== ignoreIndex;
    return row.map((x, j) => (isCounted ? (Math.exp(x) / sum - (j === targets[at] ? 1 : 0)) / counted.length : 0));
  });
  expectNear(gradient, expected, dtype, "gradient");
});
