/** The cpu dylib's tables: its functions with their ordinals, and its lists of names. */
import type { NativeOrdinals } from "../fields.ts";
import { cpuLibrary, type Native } from "./loader.ts";
import { readText } from "./status.ts";

/** A function that `orchard_cpu_run…` calls. */
export interface NativeFunction {
  readonly ordinal: number;
  /** Size of the block without the operands' byte lengths that follow it. */
  readonly blockBytes: number;
  readonly operands: number;
  /** Whether `orchard_cpu_run_rows` can call the function too. */
  readonly takesRows: boolean;
}

/** The dylib's `orchard_cpu_tables`: its functions and enumerations, by name. */
export interface NativeTables {
  readonly functions: Readonly<Record<string, NativeFunction>>;
  readonly names: Readonly<Record<string, Readonly<Record<string, number>>>>;
}

interface TablesText {
  readonly functions: readonly (Omit<NativeFunction, "ordinal"> & { readonly name: string })[];
  readonly names: Readonly<Record<string, string>>;
}

/** Reads the tables of a dylib. */
export function readTables(native: Native): NativeTables {
  const text = readText((buffer, capacity) => native.orchard_cpu_tables(buffer, capacity));
  const { functions, names } = JSON.parse(text) as TablesText;
  return {
    functions: Object.fromEntries(functions.map(({ name, ...entry }, ordinal) => [name, { ...entry, ordinal }])),
    names: Object.fromEntries(Object.entries(names).map(([type, list]) => [type, ordinalsOf(list.split(", "))])),
  };
}

const ordinalsOf = (names: readonly string[]): Record<string, number> =>
  Object.fromEntries(names.map((name, ordinal) => [name, ordinal]));

let tables: NativeTables | undefined;

/** Returns the tables of the process's dylib, which are read at the first call. */
export function nativeTables(): NativeTables {
  tables ??= readTables(cpuLibrary().native);
  return tables;
}

const known: Record<string, Readonly<Record<string, number>>> = {};

/** Returns the ordinals of a list of names of the process's dylib. */
export const nativeOrdinals: NativeOrdinals = (type) => {
  known[type] ??= nativeTables().names[type] ?? {};
  return known[type];
};
