/**
 * The table that `orchard tune` leaves in the cache folder: one file, written at once, believed only on the machine
 * that it is of.
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

/** Writes a table of this machine, whole or not at all. */
export const writeTable = (path: string, table: CrossoverTable): void => writeMeasured(path, table);

/** The measured table, or the shipped one where there is none to be believed. Says nothing; see {@link tableInUse}. */
export function readTable(path: string | undefined = tablePath()): TableInUse {
  const { table = shippedTable, date, problem } = readMeasured(path, isTable);
  return { table, ...(date === undefined ? {} : { date }), ...(problem === undefined ? {} : { problem }) };
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
