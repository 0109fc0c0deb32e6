/** The table of crossovers that `orchard tune` writes to the cache folder. */
import { join } from "node:path";
import { isRecord, readMeasured, writeMeasured } from "../backend/measured_file.ts";
import { orchardCommand } from "../core/commands.ts";
import { environment } from "../core/environment.ts";
import { cacheFolder } from "../core/paths.ts";
import { warnOnce } from "../core/warn.ts";
import { type LinalgTable, largeOperations, shippedTable } from "./crossover.ts";

/** The table in use, when it was measured, and why an existing file is not used. */
export interface LinalgTableInUse {
  readonly table: LinalgTable;
  readonly date?: string | undefined;
  readonly problem?: string | undefined;
}

/** Returns the path of the table; undefined if `ORCHARD_LINALG_TABLE` is `none`. */
export function linalgTablePath(values: Record<string, string | undefined> = process.env): string | undefined {
  const named = environment("ORCHARD_LINALG_TABLE", values);
  return named === "none" ? undefined : (named ?? join(cacheFolder(values), "linalg.json"));
}

export const writeLinalgTable = (path: string, table: LinalgTable): void => writeMeasured(path, table);

/** Returns the measured table, or the shipped one if there is no valid file. */
export function readLinalgTable(path: string | undefined = linalgTablePath()): LinalgTableInUse {
  const { table = shippedTable, date, problem } = readMeasured(path, isTable);
  return { table, date, problem };
}

let inUse: LinalgTable | undefined;

/** Returns the table that this process uses, read once. Warns once about a file that is not used. */
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
