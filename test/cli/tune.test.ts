/**
 * `orchard tune`: its conclusions from measurements, and the command in a process with a temporary cache folder. No
 * test depends on speed.
 */
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { formatLinalgTable, formatTable } from "../../src/cli/tune.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { largeOperations, shippedTable } from "../../src/linalg/crossover.ts";
import { leastSizeFrom, tuneLinalg } from "../../src/linalg/tune.ts";
import { type CrossoverTable, defaultScoresShare, dimClasses, headClasses } from "../../src/ops/attention/crossover.ts";
import { readTable, type TableFile } from "../../src/ops/attention/crossover_file.ts";
import { crossoverFrom, type TuneStep, tune, tunedBackends } from "../../src/ops/attention/tune.ts";
import { testFolder } from "../support/folder.ts";
import { bunWords } from "../support/program.ts";

const { path: root } = testFolder("tune");

/** Speed-ups of the unfused path by length. */
const bound = (speedups: Readonly<Record<number, number>>): number =>
  crossoverFrom(Object.entries(speedups).map(([length, speedup]) => ({ length: Number(length), speedup })));

test("a crossover is the size up to which the total gain of the unfused path is largest", () => {
  expect(bound({ 8: 1.5, 16: 1.2, 32: 0.8, 64: 0.3 })).toBe(16 * 16);
  expect(bound({ 8: 0.9, 16: 0.8 })).toBe(0);
  expect(bound({ 8: 1, 16: 1 })).toBe(0); // without a gain there is no crossover
  expect(bound({ 8: 1.3, 16: 1.3, 32: 1.3 })).toBe(32 * 32);
  expect(bound({ 8: 0.95, 16: 1.4, 32: 0.5 })).toBe(16 * 16); // a small loss before a gain
  expect(bound({ 8: 0.6, 16: 1.4, 32: 0.5 })).toBe(0); // a loss that outweighs the gain: 0.6 · 1.4 < 1
  expect(bound({ 8: 0.4, 16: 0.4, 32: 50 })).toBe(0); // an outlier counts as 2
  expect(bound({})).toBe(0);
});

test("every class of every backend is measured, logged and put into the table", () => {
  const steps: TuneStep[] = [];
  const lengths = [1, 2];
  const table = tune(["cpu"], { lengths, rounds: 1, milliseconds: 0 }, (step) => steps.push(step));
  expect(table.scoresShare).toBe(defaultScoresShare);
  expect(Object.keys(table.pairs)).toEqual(["cpu"]);
  const { cpu } = table.pairs;
  expect(Object.keys(cpu!).toSorted()).toEqual(["float32", "float64", "narrow"]);
  const possible = [0, ...lengths.map((length) => length * length)];
  for (const grid of Object.values(cpu!)) {
    expect(grid.map(({ length }) => length)).toEqual(dimClasses.map(() => headClasses.length));
    for (const pairs of grid.flat()) expect(possible).toContain(pairs);
  }
  const count = 3 * dimClasses.length * headClasses.length;
  expect(steps.map(({ done }) => done)).toEqual(Array.from({ length: count }, (_, at) => at + 1));
  expect(new Set(steps.map(({ dtype, dim, heads }) => `${dtype} ${dim} ${heads}`)).size).toBe(count);
  for (const { measured, steps: all } of steps) {
    expect(all).toBe(count);
    expect(measured.map(({ length }) => length)).toEqual(lengths);
    for (const { fused, unfused, speedup } of measured)
      for (const number of [fused, unfused, speedup]) expect(number > 0 && Number.isFinite(number)).toBe(true);
  }
});

test("the software device's speed is not measured", () => {
  expect(tunedBackends().includes("metal")).toBe(process.platform === "darwin");
});

test("the table is formatted as text", () => {
  const grid = dimClasses.map((dim) => headClasses.map((heads) => dim * heads));
  const table: CrossoverTable = { pairs: { cpu: { float32: grid } }, scoresShare: 1 };
  expect(formatTable(table).split("\n").slice(2)).toEqual([
    "cpu float32, batch · heads:      1+      4+     16+",
    "  dim up to 32            32     128     512",
    "  dim up to 64            64     256    1024",
    "  dim up to 128          128     512    2048",
    "  dim up to 256          256    1024    4096",
  ]);
});

/** The command with a temporary cache folder. */
function orchard(cache: string, words: readonly string[], environment: Record<string, string> = {}) {
  const { ORCHARD_ATTENTION_TABLE: _, ORCHARD_LINALG_TABLE: __, ...others } = process.env;
  const { stdout, stderr, exitCode } = Bun.spawnSync([...bunWords, "src/cli/orchard.ts", ...words], {
    cwd: packageRoot,
    env: { ...others, XDG_CACHE_HOME: cache, ...environment },
  });
  return { out: stdout.toString(), err: stderr.toString(), exitCode };
}

const doctorOf = (cache: string) =>
  orchard(cache, ["doctor"])
    .out.split("\n")
    .find((line) => / attention /.test(line));

test("orchard tune measures and writes a table that is then used, and --reset removes it", () => {
  const cache = join(root, "cache");
  const path = join(cache, "orchard", "attention.json");
  expect(doctorOf(cache)).toMatch(
    /✓ attention +shipped crossovers; `bun src\/cli\/orchard\.ts tune` measures this machine$/,
  );
  const { out, err, exitCode } = orchard(cache, ["tune", "--quick"]);
  expect(exitCode).toBe(0);
  const withMetal = tunedBackends().includes("metal");
  const steps = err
    .trim()
    .split("\n")
    .filter((line) => line.startsWith("["));
  expect(err.includes("cholesky; metal / cpu by size: 128: ")).toBe(withMetal);
  expect(steps.length).toBeGreaterThan(1);
  steps.forEach((line, at) => {
    expect(line).toMatch(
      /^\[ *\d+\/\d+\] (cpu|metal) \w+, dim \d+, \d+ heads?; fused \/ unfused by length: 8: \d+\.\d\d, 32: /,
    );
    expect(line).toStartWith(`[${String(at + 1).padStart(String(steps.length).length)}/${steps.length}]`);
  });
  expect(readdirSync(join(cache, "orchard"))).toEqual(
    withMetal ? ["attention.json", "linalg.json"] : ["attention.json"],
  );
  const { table, date, problem } = readTable(path);
  expect(problem).toBeUndefined();
  expect(out).toStartWith(`${formatTable(table)}\n\nwritten to ${path}\n`);
  expect(doctorOf(cache)).toEndWith(`crossovers measured ${date}, ${path}`);
  expect(orchard(cache, ["tune", "--reset"])).toEqual({ out: expect.stringContaining(path), err: "", exitCode: 0 });
  expect(existsSync(path)).toBe(false);
  expect(orchard(cache, ["tune", "--reset"]).exitCode).toBe(0); // nothing to remove is not an error
});

test("the doctor says why a table is not used, and how to fix it", () => {
  const cache = join(root, "foreign");
  mkdirSync(join(cache, "orchard"), { recursive: true });
  const path = join(cache, "orchard", "attention.json");
  const file: Partial<TableFile> = { version: "0.0.9" };
  writeFileSync(path, JSON.stringify(file));
  const { out } = orchard(cache, ["doctor"]);
  expect(out).toMatch(
    /· attention +shipped crossovers: .*attention\.json was written by version 0\.0\.9, .*\n +fix: \S/,
  );
  expect(out).toContain("fix: bun src/cli/orchard.ts tune\n");
  expect(readFileSync(path, "utf8")).toBe(JSON.stringify(file)); // reading changes nothing
});

test("the table has the sizes from which metal is faster for one large matrix", () => {
  const measured = (times: Readonly<Record<number, number>>) =>
    Object.entries(times).map(([size, metal]) => ({ size: Number(size), metal, cpu: 1 }));
  expect(leastSizeFrom(measured({ 128: 2, 256: 0.9, 512: 0.5 }))).toBe(256);
  // metal is faster at every size from there on
  expect(leastSizeFrom(measured({ 128: 0.9, 256: 1.1, 512: 0.5 }))).toBe(512);
  expect(leastSizeFrom(measured({ 128: 0.9, 256: 0.8 }))).toBe(128);
  expect(leastSizeFrom(measured({ 128: 0.9, 256: 1 }))).toBeNull();
  const reported: unknown[] = [];
  const table = tuneLinalg({ sizes: [70, 80], rounds: 1 }, (...report) => reported.push(report), ["cpu", "cpu"]);
  expect(Object.keys(table.metalFrom)).toEqual([...largeOperations]);
  const sample = { size: expect.any(Number), metal: expect.any(Number), cpu: expect.any(Number) };
  expect(reported).toEqual(largeOperations.map((operation) => [operation, [sample, sample]]));
  expect(formatLinalgTable({ metalFrom: { ...shippedTable.metalFrom, cholesky: 512, eigh: null } })).toBe(
    [
      "cholesky of one matrix: on metal from 512 rows",
      ...["solveTriangular", "lu", "qr"].map((name) => `${name} of one matrix: on metal from 1024 rows`),
      "eigh of one matrix: on cpu",
      "svd of one matrix: on metal from 1024 rows",
    ].join("\n"),
  );
});

test("if a table is disabled or can't be written, `orchard tune` says so", () => {
  const none = orchard(root, ["tune", "--quick"], { ORCHARD_ATTENTION_TABLE: "none" });
  expect(none).toEqual({ out: "", err: expect.stringContaining("ORCHARD_ATTENTION_TABLE is none"), exitCode: 1 });
  const linalg = orchard(root, ["tune", "--quick"], { ORCHARD_LINALG_TABLE: "none" });
  expect(linalg).toEqual({ out: "", err: expect.stringContaining("ORCHARD_LINALG_TABLE is none"), exitCode: 1 });
  const file = join(root, "file");
  writeFileSync(file, "");
  const blocked = orchard(root, ["tune", "--quick"], { ORCHARD_ATTENTION_TABLE: join(file, "table.json") });
  expect([blocked.out, blocked.exitCode]).toEqual(["", 1]);
  expect(blocked.err).toContain(file);
  expect(blocked.err).not.toContain("fused / unfused"); // the error occurs before anything is measured
});
