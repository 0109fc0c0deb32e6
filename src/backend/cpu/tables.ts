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

/** Tables whose entries are made on first use, since a program calls few functions. */
class Tables implements NativeTables {
  readonly #names: Record<string, Readonly<Record<string, number>>> = {};

  constructor(private readonly text: TablesText) {}

  get functions(): Readonly<Record<string, NativeFunction>> {
    return Object.fromEntries(this.text.functions.map(({ name }, ordinal) => [name, this.entry(ordinal)]));
  }

  get names(): Readonly<Record<string, Readonly<Record<string, number>>>> {
    return Object.fromEntries(Object.keys(this.text.names).map((type) => [type, this.ordinals(type)]));
  }

  /** Returns a function; undefined if the dylib lacks it. */
  named(name: string): NativeFunction | undefined {
    const ordinal = this.text.functions.findIndex((each) => each.name === name);
    return ordinal < 0 ? undefined : this.entry(ordinal);
  }

  /** Returns the ordinals of a list of names. */
  ordinals(type: string): Readonly<Record<string, number>> {
    this.#names[type] ??= ordinalsOf(this.text.names[type]?.split(", ") ?? []);
    return this.#names[type];
  }

  private entry(ordinal: number): NativeFunction {
    const { name: _, ...entry } = this.text.functions[ordinal];
    return { ...entry, ordinal };
  }
}

/** Reads the tables of a dylib. */
function readTables(native: Native): Tables {
  const text = readText((buffer, capacity) => native.orchard_cpu_tables(buffer, capacity));
  return new Tables(JSON.parse(text) as TablesText);
}

function ordinalsOf(names: readonly string[]): Record<string, number> {
  const ordinals: Record<string, number> = {};
  for (let ordinal = 0; ordinal < names.length; ordinal++) ordinals[names[ordinal]] = ordinal;
  return ordinals;
}

let tables: Tables | undefined;

function tablesOfProcess(): Tables {
  tables ??= readTables(cpuLibrary().native);
  return tables;
}

/** Returns the tables of the process's dylib, which are read at the first call. */
export const nativeTables = (): NativeTables => tablesOfProcess();

/** Returns a function of the process's dylib by name; undefined if the dylib lacks it. */
export const nativeFunction = (name: string): NativeFunction | undefined => tablesOfProcess().named(name);

/** Returns the ordinals of a list of names of the process's dylib. */
export const nativeOrdinals: NativeOrdinals = (type) => tablesOfProcess().ordinals(type);
