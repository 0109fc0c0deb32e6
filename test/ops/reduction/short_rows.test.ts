/**
 * Reductions of rows around the length up to which the cpu backend computes many rows at once, compared with loops in
 * float64: drawn shapes, axes, layouts and dtypes.
 */
import { expect, test } from "bun:test";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import {
  all,
  amax,
  amin,
  any,
  logsumexp,
  max,
  mean,
  min,
  norm,
  prod,
  sum,
  tensor,
  toDType,
  variance,
} from "../../../src/ops/index.ts";
import { permute } from "../../../src/ops/view/permute.ts";
import { slice } from "../../../src/ops/view/slice.ts";
import type { DType } from "../../../src/tensor/dtype.ts";
import { elementCount } from "../../../src/tensor/shape.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { repeats } from "../../support/repeats.ts";
import { hash, Random } from "../samples.ts";

/** The functions, each with its formula; float results may differ by a rounding of the dtype. */
const reductions: Readonly<Record<string, readonly [(x: Tensor) => Tensor, (row: readonly number[]) => number]>> = {
  sum: [(x) => sum(x, -1), (row) => row.reduce((a, b) => a + b, 0)],
  prod: [(x) => prod(x, -1), (row) => row.reduce((a, b) => a * b, 1)],
  mean: [(x) => mean(x, -1), (row) => row.reduce((a, b) => a + b, 0) / row.length],
  amax: [(x) => amax(x, -1), (row) => Math.max(...row)],
  amin: [(x) => amin(x, -1), (row) => Math.min(...row)],
  max: [(x) => max(x, -1).indices, (row) => row.indexOf(Math.max(...row))],
  min: [(x) => min(x, -1).indices, (row) => row.indexOf(Math.min(...row))],
  all: [(x) => all(x, -1), (row) => Number(row.every((each) => each !== 0))],
  any: [(x) => any(x, -1), (row) => Number(row.some((each) => each !== 0))],
  norm: [(x) => norm(x, 2, { dim: -1 }), (row) => Math.hypot(...row)],
  variance: [(x) => variance(x, -1, { correction: 0 }), varianceOf],
  logsumexp: [(x) => logsumexp(x, -1), (row) => Math.log(row.reduce((a, b) => a + Math.exp(b), 0))],
};

function varianceOf(row: readonly number[]): number {
  const average = row.reduce((a, b) => a + b, 0) / row.length;
  return row.reduce((a, b) => a + (b - average) ** 2, 0) / row.length;
}

const roundings: Readonly<Partial<Record<DType, number>>> = { float32: 2 ** -22, bfloat16: 2 ** -8, float16: 2 ** -10 };
const ofFloats = new Set(["mean", "norm", "variance", "logsumexp"]);

/** Rows of small whole numbers, which every dtype can hold, and a tensor of another layout with the same elements. */
function drawRows(random: Random, dtype: DType): { x: Tensor; rows: number[][] } {
  const length = random.integer(1, random.integer(0, 1) === 0 ? 9 : 140);
  const kept = Array.from({ length: random.integer(1, 3) }, () => random.integer(1, 12));
  const rows = Array.from({ length: elementCount(kept) }, () =>
    Array.from({ length }, () => random.integer(dtype === "bool" || dtype === "uint8" ? 0 : -1, 1)),
  );
  const x = toDType(tensor(rows.flat(), { shape: [...kept, length], dtype: "float32" }), dtype);
  const layout = random.integer(0, 3);
  if (layout === 0) return { x, rows };
  const axes = [...kept.keys()];
  const lain = permute(x, [kept.length, ...axes]).contiguous(); // in memory, rows are columns
  if (layout === 1) return { x: permute(lain, [...axes.map((axis) => axis + 1), 0]), rows };
  const wide = toDType(
    tensor(
      rows.flatMap((row) => [...row, ...row]),
      { shape: [...kept, 2 * length] },
    ),
    dtype,
  );
  if (layout === 2) return { x: slice(wide, { dim: -1, start: length }), rows };
  const spaced = tensor(
    rows.flatMap((row) => row.flatMap((each) => [each, 7])),
    { shape: [...kept, 2 * length] },
  );
  return { x: slice(toDType(spaced, dtype), { dim: -1, step: 2 }), rows };
}

const dtypes: readonly DType[] = ["float32", "float64", "bfloat16", "float16", "int64", "int32", "uint8", "bool"];

test.each(dtypes)("every reduction of drawn short rows of %s is right", (dtype) => {
  const random = new Random(hash(`short rows of ${dtype}`));
  const isFloat = dtype.includes("float");
  for (let round = 0; round < repeats({ usual: 25, all: 400 }); round++) {
    const { x, rows } = withBackend("cpu", () => drawRows(random, dtype));
    for (const [name, [compute, formula]] of Object.entries(reductions)) {
      if ((ofFloats.has(name) && !isFloat) || (dtype === "bool" && /^(amax|amin|max|min)$/.test(name))) continue;
      const result = withStrict(true, () => withBackend("cpu", () => toDType(compute(x), "float64").dataSync()));
      for (const [at, row] of rows.entries()) {
        const expected = formula(row);
        const allowed = (roundings[dtype] ?? 1e-14) * Math.max(1, Math.abs(expected)) * (isFloat ? 1 : 0);
        const off = Math.abs(Number(result[at]) - expected);
        if (!(off <= allowed))
          throw new Error(`${name} of ${x.describe()}, row ${at}: expected ${expected}, got ${result[at]}`);
      }
    }
  }
  expect(random.next()).toBeLessThan(1);
});
