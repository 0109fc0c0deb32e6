/** The table of crossovers that `orchard tune` leaves in the cache folder. */
import { join } from "node:path";
import { isRecord, readMeasured, writeMeasured } from "../backend/measured_file.ts";
import { orchardCommand } from "../core/commands.ts";
import { environment } from "../core/environment.ts";
import { cacheFolder } from "../core/paths.ts";
import { warnOnce } from "../core/warn.ts";
import { type LinalgTable, largeOperations, shippedTable } from "./crossover.ts";

/** The table that holds, when it was measured, and why a file that is there is not used. */
export interface LinalgTableInUse {
  readonly table: LinalgTable;
  readonly date?: string | undefined;
  readonly problem?: string | undefined;
}

/** Where the table lies; undefined where `ORCHARD_LINALG_TABLE` says that there shall be none. */
export function linalgTablePath(values: Record<string, string | undefined> = process.env): string | undefined {
  const named = environment("ORCHARD_LINALG_TABLE", values);
  return named === "none" ? undefined : (named ?? join(cacheFolder(values), "linalg.json"));
}

export const writeLinalgTable = (path: string, table: LinalgTable): void => writeMeasured(path, table);

/** The measured table, or the shipped one where there is none to be believed. */
export function readLinalgTable(path: string | undefined = linalgTablePath()): LinalgTableInUse {
  const { table = shippedTable, date, problem } = readMeasured(path, isTable);
  return { table, date, problem };
}

let inUse: LinalgTable | undefined;

/** The table that this process routes by, read once; a file that is not used is reported once. */
export function linalgTableInUse(): LinalgTable {
  if (inUse) return inUse;
  const { table, problem } = readLinalgTable();
  if (problem)
    warnOnce(`linalg's shipped crossovers are used: ${problem}. \`${orchardCommand("tune")}\` measures them anew.`);
  inUse = table;
  return table;
}

function isTable(table: unknown): table is LinalgTable {
  if (!isRecord(table) || !isRecord(table["metalFrom"])) return false;
  const from = table["metalFrom"];
  const isSize = (size: unknown): boolean => size === null || (Number.isInteger(size) && (size as number) > 0);
  return Object.keys(from).length === largeOperations.length && largeOperations.every((name) => isSize(from[name]));
}
