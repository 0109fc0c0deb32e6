/** Where large matrices are computed: by a table of crossovers, which codepaths() shows. */
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { codepaths, resetCodepaths } from "../../src/backend/codepaths.ts";
import { whyUnavailable } from "../../src/backend/registry.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { cholesky } from "../../src/linalg/cholesky/cholesky.ts";
import { type LinalgTable, shippedTable } from "../../src/linalg/crossover.ts";
import { linalgTablePath, readLinalgTable, writeLinalgTable } from "../../src/linalg/crossover_file.ts";
import { eigh } from "../../src/linalg/eigh/eigh.ts";
import { luFactor } from "../../src/linalg/lu/factor.ts";
import { solve } from "../../src/linalg/lu/solve.ts";
import { geqrf } from "../../src/linalg/qr/geqrf.ts";
import { qr } from "../../src/linalg/qr/qr.ts";
import { isWorthMetal } from "../../src/linalg/route.ts";
import { svd } from "../../src/linalg/svd/svd.ts";
import { solveTriangular } from "../../src/linalg/triangular/triangular.ts";
import { eye } from "../../src/ops/creation/eye.ts";
import { zeros } from "../../src/ops/creation/full.ts";
import { add } from "../../src/ops/elementwise/arithmetic.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { testFolder } from "../support/folder.ts";
import { bunWords } from "../support/program.ts";
import { on } from "./run.ts";

const folder = testFolder("linalg-table");
const solveWithOne = (a: Tensor): Tensor => solve(a, zeros([a.shape[0], 1]));

describe.if(whyUnavailable("metal") === undefined)("the choice between metal and cpu", () => {
  const pathsOf = (isStrict: boolean, size: number): string[] => {
    resetCodepaths();
    on("metal", isStrict, () => solveTriangular(cholesky(eye(size)), zeros([size, 2]), { upper: false }));
    return codepaths()
      .filter(({ operation }) => operation === "cholesky" || operation === "solveTriangular")
      .map(({ operation, backend, reason }) => `${operation}: ${backend} (${reason})`)
      .sort();
  };

  test("one large matrix runs on cpu, and codepaths() says why; small ones and strict mode run on metal", () => {
    const why = (operation: string) => `metal: ${operation} is faster on cpu for one matrix of this size`;
    expect(pathsOf(false, 65)).toEqual([
      `cholesky: cpu (${why("cholesky")})`,
      `solveTriangular: cpu (${why("solveTriangular")})`,
    ]);
    const onMetal = ["cholesky: metal (preferred)", "solveTriangular: metal (preferred)"];
    expect(pathsOf(false, 64)).toEqual(onMetal);
    expect(pathsOf(true, 65)).toEqual(onMetal);
  });

  test("other factorizations run on cpu too, from their minimum size on", () => {
    const backendsOf = (size: number): Record<string, string> => {
      resetCodepaths();
      const a = on("metal", false, () => add(eye(size), 1));
      on("metal", false, () => {
        for (const compute of [luFactor, solveWithOne, qr, geqrf, eigh, svd]) void compute(a);
      });
      const names = ["luFactor", "solve", "qr", "geqrf", "eigh", "svd"];
      return Object.fromEntries(
        codepaths().flatMap(({ operation, backend }) => (names.includes(operation) ? [[operation, backend]] : [])),
      );
    };
    const all = (backend: string) => ({
      luFactor: backend,
      solve: backend,
      qr: backend,
      geqrf: backend,
      eigh: backend,
      svd: backend,
    });
    expect(backendsOf(60)).toEqual(all("metal"));
    expect(backendsOf(97)).toEqual(all("cpu"));
  });

  test("a measured table decides the backend", () => {
    const path = folder.file("measured.json");
    writeLinalgTable(path, { metalFrom: { ...shippedTable.metalFrom, cholesky: 65, solveTriangular: null } });
    const program = `
      import { codepaths, eye, linalg, withBackend, zeros } from "./src/index.ts";
      withBackend("metal", () => linalg.solveTriangular(linalg.cholesky(eye(65)), zeros([65, 2]), { upper: false }));
      const where = codepaths().filter(({ operation }) => /cholesky|solveTri/.test(operation));
      console.log(where.map(({ operation, backend }) => operation + " " + backend).sort().join(", "));`;
    const { stdout } = Bun.spawnSync([...bunWords, "-e", program], {
      cwd: packageRoot,
      env: { ...process.env, ORCHARD_LINALG_TABLE: path },
    });
    expect(stdout.toString()).toBe("cholesky metal, solveTriangular cpu\n");
  });
});

test("a batch of matrices counts as one larger matrix", () => {
  const table: LinalgTable = { metalFrom: { ...shippedTable.metalFrom, cholesky: 1000, solveTriangular: null } };
  expect(isWorthMetal(table, "cholesky", 1000 * 100 ** 3)).toBe(true);
  expect(isWorthMetal(table, "cholesky", 999 * 100 ** 3)).toBe(false);
  expect(isWorthMetal(table, "solveTriangular", 1e300)).toBe(false);
});

test("a table is read back as written, and an invalid one is ignored", () => {
  const path = folder.file("table.json");
  expect(readLinalgTable(path)).toEqual({ table: shippedTable, date: undefined, problem: undefined });
  const table: LinalgTable = { metalFrom: { ...shippedTable.metalFrom, cholesky: 700, eigh: null } };
  writeLinalgTable(path, table);
  expect(readLinalgTable(path)).toMatchObject({ table, date: expect.any(String), problem: undefined });
  const { qr: _, ...without } = shippedTable.metalFrom;
  for (const wrong of [without, { ...without, qr: 0 }, { ...without, qr: "1" }, { ...without, ldl: 5 }]) {
    writeLinalgTable(path, { metalFrom: wrong } as unknown as LinalgTable);
    expect(readLinalgTable(path)).toMatchObject({ table: shippedTable, problem: `${path} is incomplete` });
  }
  writeFileSync(path, "{");
  expect(readLinalgTable(path).problem).toBe(`${path} is incomplete`);
  expect(linalgTablePath({ ORCHARD_LINALG_TABLE: "none" })).toBeUndefined();
  expect(linalgTablePath({ XDG_CACHE_HOME: "/somewhere" })).toBe("/somewhere/orchard/linalg.json");
});
