/** Batches of factorizations that are too long for one command buffer: several dispatches, and the same bits. */
import { afterEach, describe, expect, test } from "bun:test";
import { metalContext } from "../../src/backend/metal/context.ts";
import { withBackend, withStrict } from "../../src/backend/policy.ts";
import { whyUnavailable } from "../../src/backend/registry.ts";
import * as linalg from "../../src/linalg/index.ts";
import { tensor } from "../../src/ops/creation/tensor.ts";
import { transpose } from "../../src/ops/view/permute.ts";
import { reshape } from "../../src/ops/view/reshape.ts";
import { Tensor } from "../../src/tensor/tensor.ts";
import { randomNumbers } from "./random.ts";

/**
 * The number of matrices. A fifth of them is enough to keep the cores of a GPU busy; a dispatch with fewer threadgroups
 * counts as more work.
 */
const BATCH = 320;
const defaultWork = 2 ** 36;

/** Random matrices; symmetric and positive definite ones with `isDefinite`. */
function drawn(rows: number, columns: number, { seed = 1, isDefinite = false, batch = BATCH } = {}): Tensor {
  const values = Float32Array.from(randomNumbers(batch * rows * columns, seed));
  if (isDefinite)
    for (let at = 0; at < values.length; at++) {
      const [row, column] = [Math.floor(at / columns) % rows, at % columns];
      if (column < row) values[at] = values[at - (at % (rows * columns)) + column * columns + row];
      if (column === row) values[at] = rows + Math.abs(values[at]);
    }
  return reshape(tensor(values), [batch, rows, columns]);
}

const size = 6;
const general = () => drawn(size, size);
const definite = () => drawn(size, size, { isDefinite: true });
const tall = () => drawn(11, 5);
const sides = () => drawn(size, 3, { seed: 2 });

/** Each of these is one dispatch for the whole batch. */
const operations: Readonly<Record<string, () => unknown>> = {
  cholesky: () => linalg.cholesky(definite()),
  "cholesky of a transposed matrix": () => linalg.cholesky(transpose(definite(), -2, -1)),
  "cholesky of a matrix of a threadgroup": () => linalg.cholesky(drawn(40, 40, { isDefinite: true, batch: 45 })),
  choleskyEx: () => linalg.choleskyEx(definite()),
  luFactor: () => linalg.luFactorEx(general()),
  solve: () => linalg.solve(general(), sides()),
  inv: () => linalg.invEx(general()),
  qr: () => linalg.qr(tall()),
  "qr, complete": () => linalg.qr(tall(), { mode: "complete" }),
  geqrf: () => linalg.geqrf(tall()),
  eigh: () => linalg.eigh(definite()),
  eigvalsh: () => linalg.eigvalsh(definite(), { UPLO: "U" }),
  svd: () => linalg.svd(tall()),
  svdvals: () => linalg.svdvals(tall()),
  lstsq: () => linalg.lstsq(tall(), drawn(11, 2, { seed: 3 })),
  solveTriangular: () => linalg.solveTriangular(definite(), sides(), { upper: true }),
};

const composed: Readonly<Record<string, () => unknown>> = {
  householderProduct: () => {
    const { a, tau } = linalg.geqrf(tall()) as unknown as { a: Tensor; tau: Tensor };
    return linalg.householderProduct(a, tau);
  },
};

const bytesIn = (result: unknown): Uint8Array[] =>
  (result instanceof Tensor ? [result] : Object.values(result as object))
    .filter((part): part is Tensor => part instanceof Tensor)
    .map((part) => {
      const data = part.dataSync() as Float32Array;
      return new Uint8Array(data.buffer, data.byteOffset, data.byteLength).slice();
    });

/** Runs in a separate context, whose command buffers have at most this much work. */
function run(body: () => unknown, batchWork: number) {
  metalContext().close();
  const context = metalContext();
  context.configure("batch_work", batchWork);
  const results = withBackend("metal", () => withStrict(true, () => bytesIn(body())));
  const { largestWork, commandBuffers, dispatches } = context.statistics();
  return { results, largestWork, commandBuffers, dispatches };
}

afterEach(() => metalContext().close()); // the next context does not have this test's settings

describe.skipIf(whyUnavailable("metal") !== undefined)("batches that are too long for a command buffer", () => {
  test.each(Object.entries({ ...operations, ...composed }))("%s of a long batch is correct", (_, body) => {
    const whole = run(body, defaultWork);
    const cut = run(body, Math.ceil(whole.largestWork / 5));
    expect(cut.results).toEqual(whole.results);
    expect(cut.results.length).toBeGreaterThan(0);
    expect(cut.dispatches).toBeGreaterThanOrEqual(whole.dispatches + 4);
    expect(cut.commandBuffers).toBeGreaterThanOrEqual(whole.commandBuffers + 4);
    expect(cut.largestWork).toBeLessThanOrEqual(whole.largestWork / 2); // an allowance for the other steps of the call
  });
});
