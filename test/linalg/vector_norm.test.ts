/** Euclidean norms in float64 of elements whose squares overflow or underflow, in batches of mixed magnitudes. */
import { expect, test } from "bun:test";
import { linalg, sum, type Tensor, tensor, withBackend } from "../../src/index.ts";
import { tested } from "../ops/run.ts";
import { Random } from "../ops/samples.ts";

/** Σ x² without overflow: divided by the largest element first. */
function normOf(row: readonly number[]): number {
  const largest = Math.max(...row.map(Math.abs));
  return largest === 0 ? 0 : largest * Math.sqrt(row.reduce((total, x) => total + (x / largest) ** 2, 0));
}

const listOf = (x: Tensor): number[] => [...(x.dataSync() as Float64Array)];

test.each(tested.filter((name) => name !== "metal"))("norms of drawn magnitudes are accurate, on %s", (backend) => {
  const random = new Random(11);
  for (let round = 0; round < 40; round++) {
    const [rows, length] = [random.integer(1, 5), random.integer(1, 9)];
    const isMixed = random.integer(0, 1) === 1;
    const common = random.integer(-300, 300);
    const x = Array.from({ length: rows }, () => {
      const scale = 10 ** (isMixed ? random.integer(-300, 300) : common);
      return Array.from({ length }, () => (random.integer(0, 9) === 0 ? 0 : 2 * random.next() - 1) * scale);
    });
    withBackend(backend, () => {
      const given = tensor(x, { dtype: "float64", requiresGrad: true });
      const found = linalg.vectorNorm(given, { dim: 1 });
      for (const [at, value] of listOf(found).entries()) {
        const expected = normOf(x[at]);
        expect(Math.abs(value - expected)).toBeLessThanOrEqual(1e-14 * expected);
      }
      sum(found).backward();
      for (const [at, value] of listOf(given.grad!).entries()) {
        const row = x[Math.floor(at / length)];
        const expected = normOf(row) === 0 ? 0 : row[at % length] / normOf(row);
        expect(Math.abs(value - expected)).toBeLessThanOrEqual(1e-13);
      }
    });
  }
});
