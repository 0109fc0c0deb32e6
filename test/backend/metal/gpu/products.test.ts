/**
 * Compares products with their definition in float64. cuBLASLt is replaced by a stand-in that checks the calls and
 * multiplies on the host. The software device runs the kernels that take the same parameters.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { codepaths, resetCodepaths } from "../../../../src/backend/codepaths.ts";
import { metalContext } from "../../../../src/backend/metal/context.ts";
import { withProductLibrary } from "../../../../src/backend/metal/product_library.ts";
import { withBackend, withStrict } from "../../../../src/backend/policy.ts";
import { environmentFlag } from "../../../../src/core/environment.ts";
import { checkFindings } from "../../../ops/run.ts";
import { layouts } from "../../../ops/samples.ts";
import { repeats } from "../../../support/repeats.ts";
import { seed } from "../../../support/some.ts";
import { denseLayouts, drawProduct, problemsOf } from "./drawn_products.ts";
import { type Outcome, prepare, runOnStandin } from "./standin.ts";

const isTested = process.platform === "linux" && !environmentFlag("ORCHARD_SKIP_METAL");
const folder = mkdtempSync(join(tmpdir(), "orchard-products-"));
afterAll(() => rmSync(folder, { recursive: true }));
beforeAll(async () => {
  if (isTested) await prepare(folder);
});

const count = repeats({ usual: 30, all: 600 });
/** Products of programs that show which code runs. */
const few = repeats({ usual: 6, all: 600 });
const library = join(folder, "libcuda.so.1");

const run = (variables: Record<string, string>, draws = few): Outcome =>
  runOnStandin(folder, "products.ts", variables, [`${seed}`, `${draws}`]);

const reasonsOf = ({ results }: Outcome): string[] => [
  ...new Set((results["codepaths"] as [string, string][]).map(([, reason]) => reason)),
];

describe.skipIf(!isTested)("products by cuBLASLt agree with their definition", () => {
  test(`${count} drawn products agree with their definition, seed ${seed}`, () => {
    const outcome = run({ ORCHARD_CUBLAS: library }, count);
    expect(outcome.log.filter((line) => line.startsWith("violation"))).toEqual([]);
    expect(outcome.errors).toBe("");
    expect(outcome.results["differences"]).toEqual([]);
    expect(reasonsOf(outcome).sort()).toEqual(["cuBLASLt 13.4.1", "preferred"]);
    expect(outcome.log.filter((line) => line.startsWith("launch"))).toEqual([]);
    const calls = outcome.log.filter((line) => line.startsWith("cublasLtMatmul "));
    expect(calls.length).toBeGreaterThanOrEqual(count);
    expect(calls.some((line) => line.endsWith(" bias"))).toBe(true);
  });

  test("the kernel runs if the library rejects a product", () => {
    const variables = { ORCHARD_CUBLAS: library, STANDIN_ANY: "1" };
    for (const fail of ["cublasLtMatmulAlgoGetHeuristic:15", "cublasLtMatmul:15"]) {
      const { log, errors } = run({ ...variables, STANDIN_FAIL: fail });
      expect(log.filter((line) => line.startsWith("violation"))).toEqual([]);
      expect(errors).toBe("");
      expect(log.filter((line) => line.startsWith("launch")).length).toBeGreaterThanOrEqual(few);
    }
  });

  test("an error of the library is typed, and names the function", () => {
    const { log, errors } = run({ ORCHARD_CUBLAS: library, STANDIN_FAIL: "cublasLtMatmul:13" });
    expect(log.filter((line) => line.startsWith("violation"))).toEqual([]);
    expect(errors).toContain("cublasLtMatmul on Stand-in 0: CUBLAS_STATUS_OTHER");
  });

  test.each([
    ["none", "Orchard's kernel: ORCHARD_CUBLAS is none"],
    ["/none/libcublasLt.so.13", "Orchard's kernel: /none/libcublasLt.so.13: "],
  ])("with ORCHARD_CUBLAS=%s, Orchard's kernels run, and the codepath says why", (name, reason) => {
    const outcome = run({ ORCHARD_CUBLAS: name, STANDIN_ANY: "1" });
    expect(reasonsOf(outcome).some((each) => each.startsWith(reason))).toBe(true);
    expect(outcome.log.filter((line) => line.startsWith("cublas"))).toEqual([]);
  });
});

describe.skipIf(!isTested || !metalContext().isSoftware)("kernels of products agree with their definition", () => {
  const context = metalContext();
  beforeAll(() => context.configure("check", true));
  afterAll(() => context.configure("check", false));

  test(`kernels agree with the definition, and other layouts run on the usual kernels, seed ${seed}`, () => {
    resetCodepaths();
    const differences = Array.from({ length: count }, (_, at) => {
      const placed = at % 2 === 0 ? denseLayouts : layouts.filter((layout) => layout !== "expanded");
      return withStrict(true, () =>
        withBackend("metal", () => withProductLibrary(true, () => problemsOf(drawProduct(seed * 1000 + at, placed)))),
      );
    });
    expect(differences.flat()).toEqual([]);
    const reasons = codepaths().map(({ reason }) => reason);
    expect(reasons).toContain("set by withProductLibrary");
    expect(reasons.some((reason) => reason.startsWith("Orchard's kernel: "))).toBe(true);
    checkFindings({ name: "library products" });
  });
});
