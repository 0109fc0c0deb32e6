import { describe, expect, test } from "bun:test";
import { copyFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  configure,
  cpuLibrary,
  cpuLibraryCandidates,
  forcesBlas,
  loadCpuLibrary,
} from "../../../src/backend/cpu/loader.ts";
import { cpuInfo } from "../../../src/backend/cpu/report.ts";
import { BackendError } from "../../../src/core/errors.ts";
import { packageRoot } from "../../../src/core/paths.ts";
import { testFolder } from "../../support/folder.ts";
import { bunWords } from "../../support/program.ts";

const { path: folder } = testFolder("cpu-loader");
const failure = (path: string): BackendError => {
  try {
    loadCpuLibrary([{ origin: "ORCHARD_CPU_LIBRARY", path }]);
  } catch (error) {
    if (error instanceof BackendError) return error;
    throw error;
  }
  throw new Error(`${path} was loaded`);
};

/** The report of a separate process, with settings in its environment. */
function infoWith(environment: Record<string, string>) {
  const program = `
    import { cpuLibrary } from "./src/backend/cpu/loader.ts";
    import { cpuInfo } from "./src/backend/cpu/report.ts";
    console.log(JSON.stringify(cpuInfo(cpuLibrary().native)));`;
  const { stdout, stderr } = Bun.spawnSync([...bunWords, "-e", program], {
    cwd: packageRoot,
    env: { ...process.env, ...environment },
  });
  return { info: stdout.length > 0 ? JSON.parse(stdout.toString()) : undefined, problem: stderr.toString() };
}

describe("the cpu backend's dylib is found, and its version is checked", () => {
  test("ORCHARD_CPU_LIBRARY, if set, is the only path that is tried", () => {
    expect(cpuLibraryCandidates({ ORCHARD_CPU_LIBRARY: "/some/lib.so" })).toEqual([
      { origin: "ORCHARD_CPU_LIBRARY", path: "/some/lib.so" },
    ]);
    expect(cpuLibraryCandidates({}).at(-1)?.origin).toBe("bundled");
  });

  test("the error for a missing dylib names it and the command that builds it", () => {
    const error = failure(join(folder, "missing.so"));
    expect([error.code, error.message]).toEqual([
      "libraryMissing",
      expect.stringMatching(/^\[cpu\] .*missing\.so.*bun run build/),
    ]);
  });

  test("a file that is not a library and a truncated library are rejected", () => {
    const text = join(folder, "text.so");
    writeFileSync(text, "not a library");
    expect(failure(text).code).toBe("libraryUnusable");
    const short = join(folder, "short.so");
    copyFileSync(cpuLibrary().path, short);
    truncateSync(short, 5000);
    expect(failure(short).code).toBe("libraryUnusable");
  });

  test("the dylib requires only the machine's C library", () => {
    if (process.platform !== "linux") return expect(cpuLibrary().path).toEndWith(".dylib");
    const { stdout } = Bun.spawnSync(["ldd", "-r", cpuLibrary().path]);
    const names = stdout
      .toString()
      .split("\n")
      .map((line) => line.trim().split(/[\s(]/)[0]?.replace(/^.*\//, ""))
      .filter(Boolean);
    const own = /^(linux-vdso|lib(c|m|dl|pthread)|ld-linux.*)\.so/;
    expect(names.filter((name) => !own.test(name ?? ""))).toEqual([]);
    expect(names).toContain("libc.so.6");
  });
});

describe("settings of the dylib are checked", () => {
  const { native } = cpuLibrary();

  test("the report names an instruction set that the processor supports", () => {
    const { isa, isas, threads } = cpuInfo(native);
    expect(isas).toContain(isa);
    expect(threads).toBeGreaterThan(0);
  });

  test("each instruction set can be selected, and the error for an unknown one lists the known ones", () => {
    const { isa: before, isas } = cpuInfo(native);
    for (const isa of isas) {
      configure(native, "isa", isa);
      expect(cpuInfo(native).isa).toBe(isa);
    }
    configure(native, "isa", before);
    expect(() => configure(native, "isa", "mmx")).toThrow(/instruction set "mmx".*auto/);
    expect(() => configure(native, "color", "red")).toThrow(/no setting "color".*isa, threads, blas, products/);
    expect(() => configure(native, "products", "mine")).toThrow('products takes table, own or blas; it is "mine"');
    for (const threads of ["0", "-1", "two", "2.5", ""])
      expect(() => configure(native, "threads", threads)).toThrow("threads takes a whole number");
  });

  test("settings of the environment are applied, and the error for an invalid one names its variable", () => {
    const plainest = cpuInfo(native).isas[0] ?? "";
    const environment = { ORCHARD_CPU_ISA: plainest, ORCHARD_CPU_THREADS: "3", ORCHARD_BLAS: "none" };
    expect(infoWith(environment).info).toMatchObject({ isa: plainest, threads: 3, blas: null });
    expect(infoWith({ ORCHARD_CPU_THREADS: "many" }).problem).toContain("[ORCHARD_CPU_THREADS] threads takes");
  });

  test("a BLAS that is set computes every product on macOS, and none on Linux", () => {
    const named = ["Accelerate", "/some/blas.so", "none", undefined];
    expect(named.map((name) => forcesBlas(name, "darwin"))).toEqual([true, true, false, false]);
    expect(named.map((name) => forcesBlas(name, "linux"))).toEqual([false, false, false, false]);
  });

  test("a BLAS that can't be loaded is skipped with a reason", () => {
    const { info } = infoWith({ ORCHARD_BLAS: "/no/such/blas.so" });
    expect(info.blas).toBeNull();
    expect(info.blasProblems).toEqual([expect.stringContaining("/no/such/blas.so can't be loaded")]);
  });
});
