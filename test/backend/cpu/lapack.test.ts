/** LAPACK in the cpu backend's BLAS: where it is found, where it is used, and concurrent calls. */
import { afterAll, describe, expect, test } from "bun:test";
import { findCompiler } from "../../../scripts/cpu/compiler.ts";
import { configure, cpuLibrary, defaultBlas } from "../../../src/backend/cpu/loader.ts";
import { cpuInfo } from "../../../src/backend/cpu/report.ts";
import { withBackend } from "../../../src/backend/policy.ts";
import { packageRoot } from "../../../src/core/paths.ts";
import { choleskyEx } from "../../../src/linalg/cholesky/cholesky.ts";
import { stack } from "../../../src/ops/join/cat.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { definiteFamilies, difference, norm1, product, transposed } from "../../linalg/matrices.ts";
import { ratio, THRESHOLD, toTensor } from "../../linalg/run.ts";
import { testFolder } from "../../support/folder.ts";
import { bunWords } from "../../support/program.ts";

const { native } = cpuLibrary();
const libraries = defaultBlas().join("\n");
configure(native, "blas", libraries);
configure(native, "products", "blas"); // with these settings, `cholesky` calls LAPACK
const { blas, lapack, threads } = cpuInfo(native);
const useDefaults = () => {
  configure(native, "blas", libraries);
  configure(native, "threads", String(threads));
};
afterAll(() => {
  useDefaults();
  configure(native, "products", "table");
});

const size = 130;
const matrices = Array.from({ length: 24 }, (_, seed) => definiteFamilies.random(size, seed + 1));

/** The bits of the factors that the cpu backend computes. */
function factors(a: Tensor): Float64Array {
  return withBackend("cpu", () => Float64Array.from(choleskyEx(a).factor.dataSync() as Float64Array));
}

function expectFactors(all: Float64Array, count: number): void {
  for (let at = 0; at < count; at++) {
    const l = { rows: size, columns: size, values: all.slice(at * size * size, (at + 1) * size * size) };
    const residual = norm1(difference(matrices[at], product(l, transposed(l))));
    expect(ratio(residual, size * norm1(matrices[at]), "float64")).toBeLessThan(THRESHOLD);
  }
}

describe("LAPACK of the cpu backend", () => {
  test("comes with OpenBLAS and Accelerate, and not without a BLAS", () => {
    if (blas === null) expect(lapack).toBeNull();
    else if (blas.name !== "BLAS") expect(lapack).toMatch(/^(OpenBLAS|Accelerate), LAPACK 3\.\d+\.\d+$/);
    configure(native, "blas", "none");
    expect([cpuInfo(native).blas, cpuInfo(native).lapack]).toEqual([null, null]);
    useDefaults();
  });

  test("is used if it is available, and results without it are correct too", () => {
    const a = toTensor(matrices[0], "float64");
    const own = factors(a);
    configure(native, "blas", "none");
    const without = factors(a);
    useDefaults();
    for (const way of [own, without]) expectFactors(way, 1);
    // both are correct, but sum in different orders
    expect(own.some((value, at) => value !== without[at])).toBe(lapack !== null);
  });

  test("ORCHARD_BLAS=none selects the dylib's linear algebra", () => {
    const program = `
      import { cpuLibrary } from "./src/backend/cpu/loader.ts";
      import { cpuInfo } from "./src/backend/cpu/report.ts";
      import { eye, linalg, mul, withBackend } from "./src/index.ts";
      const l = withBackend("cpu", () => linalg.cholesky(mul(eye(200), 9)).sum().item());
      console.log(JSON.stringify([l, cpuInfo(cpuLibrary().native).lapack]));`;
    const { stdout, stderr } = Bun.spawnSync([...bunWords, "-e", program], {
      cwd: packageRoot,
      env: { ...process.env, ORCHARD_BLAS: "none" },
    });
    expect([stdout.toString(), stderr.toString()]).toEqual(["[600,null]\n", ""]);
  });

  test("concurrent matrices of a batch have the same results as on one thread", () => {
    const all = stack(matrices.map((matrix) => toTensor(matrix, "float64")));
    configure(native, "threads", "1");
    const one = factors(all);
    expectFactors(one, matrices.length);
    for (const count of ["2", "8"]) {
      configure(native, "threads", count);
      for (let round = 0; round < 5; round++) expect(factors(all)).toEqual(one);
    }
    useDefaults();
  });

  test("one matrix on all threads has the same result each time", () => {
    const large = toTensor(definiteFamilies.random(300, 5), "float64");
    const once = factors(large);
    for (let round = 0; round < 5; round++) expect(factors(large)).toEqual(once);
  });
});

describe("a BLAS may lack LAPACK", () => {
  const folder = testFolder("lapack");

  /** Compiles a library that has a BLAS's products and the functions in `source`. */
  async function library(name: string, source: string): Promise<string> {
    const path = folder.file(`${name}.so`);
    const { command } = await findCompiler();
    const code = `extern "C" { void cblas_sgemm() {} void cblas_dgemm() {} ${source} }`;
    const arguments_ = ["-x", "c++", "-shared", "-fPIC", "-o", path, "-"];
    const { exitCode, stderr } = Bun.spawnSync([...command, ...arguments_], { stdin: new TextEncoder().encode(code) });
    expect([exitCode, stderr.toString()]).toEqual([0, ""]);
    return path;
  }

  const routines = [
    "potrf",
    "potrs",
    "potri",
    "trsm",
    "trtrs",
    "trtri",
    "getrf",
    "getrs",
    "getri",
    "sytrf",
    "sytrs",
    "geqrf",

    "geqp3",
    "orgqr",
    "ormqr",
    "gelqf",
    "orglq",
    "ormlq",
    "syevd",
    "sytrd",
    "stedc",
    "gesdd",
    "gesvd",
    "gelsd",
    "gelsy",
  ];
  const defined = (names: readonly string[]): string =>
    names.flatMap((name) => [`void s${name}_() {}`, `void d${name}_() {}`]).join(" ");
  const version = (integer: string): string =>
    `void ilaver_(${integer} *a, ${integer} *b, ${integer} *c) { *a = 3; *b = 4; *c = 5; }`;

  test.each([
    ["without LAPACK", "", null, "has no dpotrf"],
    ["with a part of LAPACK", defined(routines.slice(0, -1)) + version("int"), null, "has no dgelsy"],
    ["that gives no version", defined(routines), null, "has no LAPACK with integers of 32 bits"],
    ["of 64-bit integers", defined(routines) + version("long"), null, "has no LAPACK with integers of 32 bits"],
    ["with all of LAPACK", defined(routines) + version("int"), "BLAS, LAPACK 3.4.5", undefined],
  ])("a BLAS %s provides products, and LAPACK if it is complete", async (name, source, expected, problem) => {
    const path = await library(name.replaceAll(" ", "-"), source);
    configure(native, "blas", path);
    const info = cpuInfo(native);
    useDefaults();
    expect([info.blas?.path, info.lapack, info.blasProblems]).toEqual([
      path,
      expected,
      problem ? [`${path} ${problem}`] : [],
    ]);
  });
});
