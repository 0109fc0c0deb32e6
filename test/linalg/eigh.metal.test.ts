/** The kernels of eigh: under the checker, on the device's numeric variants, and their memory traffic. */
import { describe, expect, test } from "bun:test";
import { eigh, eigvalsh } from "../../src/linalg/eigh/eigh.ts";
import { contiguous } from "../../src/ops/copy/copy.ts";
import { eye } from "../../src/ops/creation/eye.ts";
import { zeros } from "../../src/ops/creation/full.ts";
import { stack } from "../../src/ops/join/cat.ts";
import { expand } from "../../src/ops/view/expand.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { errorOf } from "../support/errors.ts";
import { bunWords } from "../support/program.ts";
import { usually } from "../support/repeats.ts";
import { residualOf } from "./eigenvectors.ts";
import { matrix, rounded, symmetricFamilies } from "./matrices.ts";
import { on, places, THRESHOLD, toMatrix, toTensor } from "./run.ts";
import { watched } from "./traffic.ts";

/** One dispatch, with the bytes that it moved. */
function moved(body: () => unknown): { read: number; written: number } {
  const { dispatches, read, written } = watched(body);
  expect(dispatches).toBe(1);
  return { read, written };
}

const batchOf = (count: number, size: number): Tensor => {
  const families = Object.values(symmetricFamilies);
  const matrices = Array.from({ length: count }, (_, at) => families[at % families.length](size, at));
  return on("metal", true, () => stack(matrices.map((own) => toTensor(rounded(own), "float32"))));
};

describe.skipIf(!places.some(({ backend }) => backend === "metal"))("eigh on metal moves each element once", () => {
  test.each([1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64])("at size %d, each element is moved once", (size) => {
    for (const count of size > 33 ? [2] : [1, size > 8 ? 3 : 40]) {
      const a = batchOf(count, size);
      const triangle = (count * size * (size + 1)) / 2;
      const [values, vectors] = [count * size, count * size * size];
      for (const UPLO of ["L", "U"] as const) {
        expect(moved(() => eigh(a, { UPLO }))).toEqual({
          read: 4 * triangle,
          written: 4 * (values + vectors + count),
        });
        expect(moved(() => eigvalsh(a, { UPLO }))).toEqual({ read: 4 * triangle, written: 4 * (values + count) });
      }
    }
  });

  test("larger matrices take as many dispatches for a batch as for one", () => {
    const dispatchesOf = (a: Tensor, run: (x: Tensor) => unknown): number => watched(() => run(a)).dispatches;
    const plain = (count: number, size: number): Tensor =>
      on("metal", true, () => contiguous(expand(eye(size), [count, size, size])));
    expect(dispatchesOf(batchOf(1, 65), eigh)).toBe(dispatchesOf(plain(3, 65), eigh));
    expect(dispatchesOf(batchOf(1, 65), eigvalsh)).toBe(2 + 2 * 16 * 3);
    expect(dispatchesOf(plain(1, 129), eigvalsh)).toBe(2 + 2 * 16 * 5);
  });

  test("a matrix of 500 rows, made of 2 x 2 blocks, has the known eigenvalues", () => {
    // Rows i and n - 1 - i form a block [d c; c d] with eigenvalues d - c and d + c, and vectors of ±√½.
    const size = 500;
    const other = (i: number): number => size - 1 - i;
    const middle = (i: number): number => Math.min(i, other(i)) % 7;
    const own = matrix(size, size, (i, j) => (i === j ? middle(i) : j === other(i) ? 1 + (Math.min(i, j) % 3) : 0));
    const known = Array.from({ length: size / 2 }, (_, i) => [(i % 7) - 1 - (i % 3), (i % 7) + 1 + (i % 3)]).flat();
    on("metal", true, () => {
      const { eigenvalues, eigenvectors } = eigh(toTensor(own, "float32"));
      const found = [...eigenvalues.dataSync()].map(Number);
      for (const [k, value] of known.toSorted((a, b) => a - b).entries()) expect(found[k]).toBeCloseTo(value, 4);
      const vectors = toMatrix(eigenvectors);
      const residual = residualOf(own, { values: found, vectors }, "float32", "eigh, 500 rows");
      expect(residual).toBeLessThan(THRESHOLD);
    });
  });

  test("more than 512 rows go to cpu, and the reason is stated", () => {
    const error = errorOf(() => on("metal", true, () => eigh(zeros([513, 513]))));
    expect(error?.message).toMatch(/at most 512 rows, got 513/);
  });

  const variants = [
    { ORCHARD_METAL_CONTRACT: "1" },
    { ORCHARD_METAL_DENORMALS: "flush" },
    { ORCHARD_METAL_FAST: "1" },
    { ORCHARD_METAL_CONTRACT: "1", ORCHARD_METAL_DENORMALS: "flush", ORCHARD_METAL_FAST: "1" },
  ];
  test.each(usually(variants, (_, at) => at === variants.length - 1))(
    "eigh is accurate with the settings %j",
    async (changes) => {
      const program = `
      import { eigh } from "${import.meta.dir}/../../src/linalg/eigh/eigh.ts";
      import { rounded, symmetricFamilies } from "${import.meta.dir}/matrices.ts";
      import { residualOf } from "${import.meta.dir}/eigenvectors.ts";
      import { on, toMatrix, toTensor } from "${import.meta.dir}/run.ts";
      for (const [family, make] of Object.entries(symmetricFamilies))
        for (const size of [3, 8, 17, 33, 66]) {
          const a = rounded(make(size, 4));
          on("metal", true, () => {
            const { eigenvalues, eigenvectors } = eigh(toTensor(a, "float32"));
            const result = { values: [...eigenvalues.dataSync()], vectors: toMatrix(eigenvectors) };
            console.log(residualOf(a, result, "float32", ""), family, size);
          });
        }`;
      const child = Bun.spawn([...bunWords, "-e", program], {
        env: { ...process.env, ...changes },
        stderr: "inherit",
      });
      const lines = (await new Response(child.stdout).text()).trim().split("\n");
      expect(lines.length).toBe(5 * Object.keys(symmetricFamilies).length);
      expect(lines.filter((line) => !(Number.parseFloat(line) < THRESHOLD))).toEqual([]);
    },
  );
});
