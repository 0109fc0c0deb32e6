/**
 * The table that `orchard tune` writes to the cache folder: one file, written atomically, used only on the machine that
 * was measured.
 */

import { join } from "node:path";
import { isRecord, type MeasuredFile, readMeasured, thisMachine, writeMeasured } from "../../backend/measured_file.ts";
import { backendNames } from "../../backend/names.ts";
import { orchardCommand } from "../../core/commands.ts";
import { environment } from "../../core/environment.ts";
import { cacheFolder } from "../../core/paths.ts";
import { warnOnce } from "../../core/warn.ts";
import { type CrossoverTable, dimClasses, dtypeClasses, headClasses, shippedTable } from "./crossover.ts";

export { thisMachine };

/** The file's content. */
export type TableFile = MeasuredFile<CrossoverTable>;

/** The table in use and its origin. */
export interface TableInUse {
  readonly table: CrossoverTable;
  /** When a measured table was written. */
  readonly date?: string;
  /** Why an existing file is not used. */
  readonly problem?: string;
}

/** Returns the table's path; undefined if `ORCHARD_ATTENTION_TABLE` is "none". */
export function tablePath(values: Record<string, string | undefined> = process.env): string | undefined {
  const named = environment("ORCHARD_ATTENTION_TABLE", values);
  return named === "none" ? undefined : (named ?? join(cacheFolder(values), "attention.json"));
}

/** Writes this machine's table atomically. */
export const writeTable = (path: string, table: CrossoverTable): void => writeMeasured(path, table);

/** Returns the measured table, or the shipped one if no valid file exists. Does not warn; see {@link tableInUse}. */
export function readTable(path: string | undefined = tablePath()): TableInUse {
  const { table = shippedTable, date, problem } = readMeasured(path, isTable);
  return { table, ...(date === undefined ? {} : { date }), ...(problem === undefined ? {} : { problem }) };
}

let inUse: CrossoverTable | undefined;

/**
 * Returns the table that this process uses. It is read once, so choices do not change within a process. Warns once
 * about a file that can't be used.
 */
export function tableInUse(): CrossoverTable {
  if (inUse) return inUse;
  const { table, problem } = readTable();
  if (problem)
    warnOnce(`attention's shipped crossovers are used: ${problem}. \`${orchardCommand("tune")}\` measures them anew.`);
  inUse = table;
  return table;
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
