/**
 * The table that `orchard tune` leaves in the cache folder: one file, written at once, believed only on the machine
 * that it is of.
 */

import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { dirname, join } from "node:path";
import packageFile from "../../../package.json" with { type: "json" };
import { backendNames } from "../../backend/names.ts";
import { orchardCommand } from "../../core/commands.ts";
import { environment } from "../../core/environment.ts";
import { processorLimit } from "../../core/limits.ts";
import { cacheFolder } from "../../core/paths.ts";
import { warnOnce } from "../../core/warn.ts";
import { type CrossoverTable, dimClasses, dtypeClasses, headClasses, shippedTable } from "./crossover.ts";

/** What crossovers depend on. */
export interface MachineIdentity {
  readonly platform: string;
  readonly arch: string;
  readonly processor: string;
  readonly threads: number;
}

/** The file's content. */
export interface TableFile {
  /** Of the package: another version has other kernels. */
  readonly version: string;
  readonly machine: MachineIdentity;
  /** When it was measured, ISO 8601. */
  readonly date: string;
  readonly table: CrossoverTable;
}

/** The table that holds, and where it is from. */
export interface TableInUse {
  readonly table: CrossoverTable;
  /** Of a measured one. */
  readonly date?: string;
  /** Why a file that is there is not used. */
  readonly problem?: string;
}

/** Where the table lies; undefined where `ORCHARD_ATTENTION_TABLE` says that there shall be none. */
export function tablePath(values: Record<string, string | undefined> = process.env): string | undefined {
  const named = environment("ORCHARD_ATTENTION_TABLE", values);
  return named === "none" ? undefined : (named ?? join(cacheFolder(values), "attention.json"));
}

export const thisMachine = (): MachineIdentity => ({
  platform: process.platform,
  arch: process.arch,
  processor: cpus()[0]?.model.trim() ?? "unknown processor",
  threads: processorLimit().count,
});

/**
 * Writes a table of this machine, whole or not at all: a process that reads meanwhile finds the old file or the new
 * one.
 */
export function writeTable(path: string, table: CrossoverTable): void {
  const file: TableFile = {
    version: packageFile.version,
    machine: thisMachine(),
    date: new Date().toISOString(),
    table,
  };
  const draft = `${path}.${process.pid}.draft`;
  mkdirSync(dirname(path), { recursive: true });
  try {
    writeFileSync(draft, `${JSON.stringify(file, null, 2)}\n`, { flush: true });
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}

/** The measured table, or the shipped one where there is none to be believed. Says nothing; see {@link tableInUse}. */
export function readTable(path: string | undefined = tablePath()): TableInUse {
  const text = path && textOf(path);
  if (text === undefined || path === undefined) return { table: shippedTable };
  if (typeof text !== "string") return { table: shippedTable, problem: `${path} can't be read (${text.message})` };
  const parsed = parse(text);
  const why = whyNotOurs(parsed);
  if (why !== undefined) return { table: shippedTable, problem: `${path} ${why}` };
  const { table, date } = parsed as TableFile;
  return { table, date };
}

let inUse: CrossoverTable | undefined;

/**
 * The table that this process routes by. It is read once, so that a process makes one choice; a file that is not used
 * is reported once.
 */
export function tableInUse(): CrossoverTable {
  if (inUse) return inUse;
  const { table, problem } = readTable();
  if (problem)
    warnOnce(`attention's shipped crossovers are used: ${problem}. \`${orchardCommand("tune")}\` measures them anew.`);
  inUse = table;
  return table;
}

function textOf(path: string): string | Error | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return "code" in error && error.code === "ENOENT" ? undefined : error;
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Why a file is not a table of this version and machine. */
function whyNotOurs(file: unknown): string | undefined {
  if (!isRecord(file)) return "is not whole";
  if (file["version"] !== packageFile.version)
    return `is of version ${String(file["version"])}, this is ${packageFile.version}`;
  if (!Bun.deepEquals(file["machine"], thisMachine())) return "is of another machine";
  return typeof file["date"] === "string" && isTable(file["table"]) ? undefined : "is not whole";
}

function isTable(table: unknown): table is CrossoverTable {
  if (!isRecord(table) || !isRecord(table["pairs"])) return false;
  const share = table["scoresShare"];
  const hasShare = typeof share === "number" && share > 0 && share <= 1;
  return hasShare && hasOnly(table["pairs"], backendNames, (of) => isRecord(of) && hasOnly(of, dtypeClasses, isGrid));
}

const hasOnly = (record: Record<string, unknown>, names: readonly string[], holds: (value: unknown) => boolean) =>
  Object.entries(record).every(([name, value]) => names.includes(name) && holds(value));

const isRow = (row: unknown): boolean =>
  Array.isArray(row) &&
  row.length === headClasses.length &&
  row.every((pairs) => Number.isInteger(pairs) && pairs >= 0);

const isGrid = (grid: unknown): boolean =>
  Array.isArray(grid) && grid.length === dimClasses.length && grid.every(isRow);
