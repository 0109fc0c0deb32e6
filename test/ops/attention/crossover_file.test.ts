/** The file of measured crossovers: written completely or not at all, and used only where it was measured. */
import { beforeEach, expect, test } from "bun:test";
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import packageFile from "../../../package.json";
import { packageRoot } from "../../../src/core/paths.ts";
import { type CrossoverTable, dimClasses, headClasses, shippedTable } from "../../../src/ops/attention/crossover.ts";
import {
  readTable,
  type TableFile,
  tablePath,
  thisMachine,
  writeTable,
} from "../../../src/ops/attention/crossover_file.ts";
import { testFolder } from "../../support/folder.ts";
import { bunWords } from "../../support/program.ts";

const { path: root } = testFolder("crossovers");

const path = join(root, "deep", "folder", "attention.json");
beforeEach(() => rmSync(join(root, "deep"), { recursive: true, force: true }));

/** In every class of float32 on the cpu, unfused attention is faster up to this many queries · keys. */
const tableOf = (pairs: number): CrossoverTable => ({
  pairs: { cpu: { float32: dimClasses.map(() => headClasses.map(() => pairs)) } },
  scoresShare: 0.5,
});

function writeChanged(change: (file: Record<string, unknown>) => unknown): void {
  writeTable(path, tableOf(64));
  const changed = change(JSON.parse(readFileSync(path, "utf8")));
  writeFileSync(path, typeof changed === "string" ? changed : JSON.stringify(changed));
}

test("a written table is read back, with its date", () => {
  const before = new Date().toISOString();
  writeTable(path, tableOf(4096));
  const { table, date, problem } = readTable(path);
  expect(table).toEqual(tableOf(4096));
  expect(problem).toBeUndefined();
  expect(date! >= before && date! <= new Date().toISOString()).toBe(true);
  const file: TableFile = JSON.parse(readFileSync(path, "utf8"));
  expect([file.version, file.machine]).toEqual([packageFile.version, thisMachine()]);
});

test("without a file the shipped table is used, and there is no problem", () => {
  expect(readTable(path)).toEqual({ table: shippedTable });
  expect(readTable(undefined)).toEqual({ table: shippedTable });
});

const foreign: readonly [string, (file: Record<string, unknown>) => unknown, string][] = [
  ["half a file", (file) => JSON.stringify(file).slice(0, 100), "is incomplete"],
  ["nothing in it", () => "", "is incomplete"],
  ["a list", () => [1], "is incomplete"],
  [
    "another version",
    (file) => ({ ...file, version: "0.0.9" }),
    `was written by version 0.0.9, this is ${packageFile.version}`,
  ],
  ["no version", ({ version: _, ...file }) => file, "was written by version undefined"],
  ["another processor", (file) => ({ ...file, machine: { ...thisMachine(), processor: "Abacus" } }), "another machine"],
  ["other threads", (file) => ({ ...file, machine: { ...thisMachine(), threads: 999 } }), "another machine"],
  ["no machine", ({ machine: _, ...file }) => file, "another machine"],
  ["no date", ({ date: _, ...file }) => file, "is incomplete"],
  ["no table", ({ table: _, ...file }) => file, "is incomplete"],
  ["a share of 0", (file) => ({ ...file, table: { ...tableOf(1), scoresShare: 0 } }), "is incomplete"],
  ["a negative number", (file) => ({ ...file, table: tableOf(-1) }), "is incomplete"],
  ["a fraction", (file) => ({ ...file, table: tableOf(0.5) }), "is incomplete"],
  [
    "a row too few",
    (file) => ({ ...file, table: { pairs: { cpu: { float32: [[1, 1, 1]] } }, scoresShare: 1 } }),
    "incomplete",
  ],
  ["an unknown backend", (file) => ({ ...file, table: { pairs: { tpu: {} }, scoresShare: 1 } }), "is incomplete"],
  [
    "an unknown dtype",
    (file) => ({ ...file, table: { pairs: { cpu: { int8: [] } }, scoresShare: 1 } }),
    "is incomplete",
  ],
];

test.each(foreign)("%s: the shipped table is used, and the problem names the file", (_, change, why) => {
  writeChanged(change);
  const { table, problem, date } = readTable(path);
  expect([table, date]).toEqual([shippedTable, undefined]);
  expect(problem).toStartWith(path);
  expect(problem).toContain(why);
});

test("if the table's path is a folder, the shipped table is used and the problem is reported, without an error", () => {
  mkdirSync(path, { recursive: true });
  expect(readTable(path)).toEqual({ table: shippedTable, problem: expect.stringContaining(`${path} can't be read`) });
});

test("a failed write leaves the old file unchanged, and no other file", () => {
  writeTable(path, tableOf(64));
  const before = readFileSync(path, "utf8");
  // The first write fails before the temporary file is created, the second when it is renamed: a folder has that name.
  const unreadable: CrossoverTable = {
    pairs: {},
    get scoresShare(): number {
      throw new Error("unavailable");
    },
  };
  expect(() => writeTable(path, unreadable)).toThrow("unavailable");
  expect(readFileSync(path, "utf8")).toBe(before);
  expect(readdirSync(join(path, ".."))).toEqual(["attention.json"]);
  const blocked = join(root, "deep", "blocked.json");
  mkdirSync(join(blocked, "full"), { recursive: true });
  expect(() => writeTable(blocked, tableOf(64))).toThrow();
  expect(readdirSync(join(root, "deep")).toSorted()).toEqual(["blocked.json", "folder"]);
});

test("a reader of the old file is not disturbed: the file is replaced, not written over", () => {
  writeTable(path, tableOf(64));
  const before = readFileSync(path, "utf8");
  const open = openSync(path, "r");
  writeTable(path, tableOf(65_536));
  expect(readFileSync(open, "utf8")).toBe(before);
  closeSync(open);
  expect(readTable(path).table).toEqual(tableOf(65_536));
});

test("the variable names the table's file, or says that there is none", () => {
  expect(tablePath({ XDG_CACHE_HOME: "/c" })).toBe("/c/orchard/attention.json");
  expect(tablePath({ XDG_CACHE_HOME: "/c", ORCHARD_ATTENTION_TABLE: "/t.json" })).toBe("/t.json");
  expect(tablePath({ XDG_CACHE_HOME: "/c", ORCHARD_ATTENTION_TABLE: "none" })).toBeUndefined();
});

/**
 * Runs a process that calls attention twice, with an action in between. Returns the reason, whether a kernel ran, and
 * the warnings.
 */
function attend(environment: Record<string, string>, between = "") {
  const program = `
    import { codepaths, flashAttention, withBackend, zeros } from "./src/index.ts";
    const q = zeros([1, 1, 8, 8]);
    withBackend("cpu", () => flashAttention(q, q, q));
    ${between};
    withBackend("cpu", () => flashAttention(q, q, q));
    const ways = codepaths().filter(({ operation }) => operation === "flashAttention");
    console.log(ways.map(({ reason }) => reason).join(" and "));
    console.log(codepaths().some(({ operation }) => operation === "attentionForward"));`;
  const { ORCHARD_ATTENTION_TABLE: _, ...others } = process.env;
  const env = { ...others, ...environment };
  const { stdout, stderr } = Bun.spawnSync([...bunWords, "-e", program], { cwd: packageRoot, env });
  const [reason, ranKernel] = stdout.toString().split("\n");
  return { reason, ranKernel, warnings: stderr.toString().trim().split("\n").filter(Boolean) };
}

test("a process routes by the measured table", () => {
  writeTable(path, tableOf(64));
  const measured = "the measured crossover for float32, dim up to 32, batch · heads from 1";
  expect(attend({ ORCHARD_ATTENTION_TABLE: path })).toEqual({
    reason: `unfused: at most 64 scores a head, ${measured}`,
    ranKernel: "false",
    warnings: [],
  });
  writeTable(path, tableOf(63));
  expect(attend({ ORCHARD_ATTENTION_TABLE: path })).toEqual({
    reason: `fused: over 63 scores a head, ${measured}`,
    ranKernel: "true",
    warnings: [],
  });
});

test("a process reads the table once: later changes of the file have no effect", () => {
  writeTable(path, tableOf(64));
  const removal = `(await import("node:fs")).rmSync(${JSON.stringify(path)})`;
  expect(attend({ ORCHARD_ATTENTION_TABLE: path }, removal).reason).toMatch(/^unfused: [^:]*$/);
  expect(existsSync(path)).toBe(false);
});

test("a process warns once about a file that it does not use", () => {
  const { reason: shipped } = attend({ ORCHARD_ATTENTION_TABLE: "none" });
  expect(shipped).toStartWith("fused: faster at every length measured");
  writeChanged((file) => ({ ...file, version: "0.0.9" }));
  const { reason, warnings } = attend({ ORCHARD_ATTENTION_TABLE: path });
  expect(reason).toBe(shipped);
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toContain(`${path} was written by version 0.0.9`);
  expect(warnings[0]).toContain("`bun src/cli/orchard.ts tune` measures them anew");
});
