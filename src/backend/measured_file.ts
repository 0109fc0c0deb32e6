/**
 * Reads and writes the tables that `orchard tune` measures. Each is one file, written atomically, and is used only on
 * the machine that measured it.
 */

import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { dirname } from "node:path";
import packageFile from "../../package.json" with { type: "json" };
import { processorLimit } from "../core/limits.ts";

/** The machine properties on which measurements depend. */
export interface MachineIdentity {
  readonly platform: string;
  readonly arch: string;
  readonly processor: string;
  readonly threads: number;
}

/** The file's content. */
export interface MeasuredFile<Table> {
  /** The package's version, since other versions have other kernels. */
  readonly version: string;
  readonly machine: MachineIdentity;
  /** The date of the measurement in ISO 8601. */
  readonly date: string;
  readonly table: Table;
}

/** The result of reading a file: the table and its date, or why it is not used; empty if there is no file. */
export type Measured<Table> =
  | { readonly table: Table; readonly date: string; readonly problem?: never }
  | { readonly table?: never; readonly date?: never; readonly problem?: string };

export const thisMachine = (): MachineIdentity => ({
  platform: process.platform,
  arch: process.arch,
  processor: cpus()[0]?.model.trim() ?? "unknown processor",
  threads: processorLimit().count,
});

/** Writes a table of this machine atomically: concurrent readers get the old file or the new one. */
export function writeMeasured<Table>(path: string, table: Table): void {
  const file: MeasuredFile<Table> = {
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

/** Reads a file. @param path undefined if tables are disabled */
export function readMeasured<Table>(
  path: string | undefined,
  isTable: (table: unknown) => table is Table,
): Measured<Table> {
  const text = path && textOf(path);
  if (text === undefined || path === undefined) return {};
  if (typeof text !== "string") return { problem: `${path} can't be read (${text.message})` };
  const file = parse(text);
  const why = whyNotOurs(file, isTable);
  return why === undefined ? (file as MeasuredFile<Table>) : { problem: `${path} ${why}` };
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

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Returns why a file can't be used for this version and machine. */
function whyNotOurs(file: unknown, isTable: (table: unknown) => boolean): string | undefined {
  if (!isRecord(file)) return "is incomplete";
  if (file["version"] !== packageFile.version)
    return `was written by version ${String(file["version"])}, this is ${packageFile.version}`;
  if (!Bun.deepEquals(file["machine"], thisMachine())) return "was measured on another machine";
  return typeof file["date"] === "string" && isTable(file["table"]) ? undefined : "is incomplete";
}
