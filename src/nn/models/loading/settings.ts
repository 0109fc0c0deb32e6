/** Typed access to settings in files: a `config.json`, or the metadata of a GGUF file. */
import { describeValue } from "../../../core/describe.ts";
import { ArgumentError, FileFormatError } from "../../../core/errors.ts";
import { numberIn } from "../../../core/values.ts";

/** Settings by name. A missing field is undefined; null counts as missing. */
export class Settings {
  constructor(
    /** The path for errors; undefined for a config that was passed as an object. */
    readonly path: string | undefined,
    private readonly fields: ReadonlyMap<string, unknown>,
    /** The prefix of names in errors. */
    private readonly prefix = "",
    /** The operation for errors. */
    private readonly operation = "loadModel",
  ) {}

  get(name: string): unknown {
    return this.fields.get(name) ?? undefined;
  }

  /** The names of all fields, including those that are null. */
  get names(): readonly string[] {
    return [...this.fields.keys()];
  }

  entries(): readonly (readonly [name: string, value: unknown])[] {
    return [...this.fields];
  }

  /** Returns the full name of a field, with the names of the enclosing objects. */
  nameOf(name: string): string {
    return `${this.prefix}${name}`;
  }

  /** Returns settings of the same file with other fields. */
  with(fields: ReadonlyMap<string, unknown>): Settings {
    return new Settings(this.path, fields, this.prefix, this.operation);
  }

  /** Returns a nested object as settings; undefined if it is missing. */
  inner(name: string): Settings | undefined {
    const value = this.get(name);
    if (value === undefined) return undefined;
    if (typeof value !== "object" || Array.isArray(value)) throw this.wrong(name, "an object", value);
    return new Settings(this.path, new Map(Object.entries(value as object)), `${this.prefix}${name}.`, this.operation);
  }

  /** Returns a whole number from `least` to 2³¹. @throws {FileFormatError} for anything else. */
  whole(name: string, least = 1): number {
    const value = this.get(name);
    if (Number.isInteger(value) && numberIn(value) >= least && numberIn(value) <= 2 ** 31) return numberIn(value);
    throw this.wrong(name, `a whole number of at least ${least}`, value);
  }

  /** Returns a whole number; undefined if it is missing. */
  wholeIfAny(name: string, least = 1): number | undefined {
    return this.get(name) === undefined ? undefined : this.whole(name, least);
  }

  /** Returns a finite number above 0. */
  positive(name: string): number {
    const value = this.get(name);
    if (typeof value === "number" && value > 0 && Number.isFinite(value)) return value;
    throw this.wrong(name, "a number above 0", value);
  }

  positiveIfAny(name: string): number | undefined {
    return this.get(name) === undefined ? undefined : this.positive(name);
  }

  /** Returns a finite number. */
  number(name: string): number {
    const value = this.numberIfAny(name);
    if (value !== undefined) return value;
    throw this.wrong(name, "a number", value);
  }

  /** Returns a finite number; undefined if it is missing. */
  numberIfAny(name: string): number | undefined {
    const value = this.get(name);
    if (value === undefined || (typeof value === "number" && Number.isFinite(value))) return value;
    throw this.wrong(name, "a number", value);
  }

  /** Returns true or false. @throws {FileFormatError} if it is missing and there is no fallback. */
  flag(name: string, fallback?: boolean): boolean {
    const value = this.get(name) ?? fallback;
    if (typeof value === "boolean") return value;
    throw this.wrong(name, "true or false", value);
  }

  textIfAny(name: string): string | undefined {
    const value = this.get(name);
    if (value === undefined || typeof value === "string") return value;
    throw this.wrong(name, "a text", value);
  }

  /** Returns a list of numbers above 0. */
  numbers(name: string): number[] {
    const value = this.get(name);
    const isList = Array.isArray(value) && value.every((item) => typeof item === "number" && item > 0);
    if (isList) return [...value];
    throw this.wrong(name, "a list of numbers above 0", value);
  }

  /** Returns the error for an invalid value of a field. */
  wrong(name: string, expected: string, got: unknown): FileFormatError | ArgumentError {
    return this.fail(`expected ${this.nameOf(name)} to be ${expected}, got ${describeValue(got)}`);
  }

  fail(message: string): FileFormatError | ArgumentError {
    if (this.path === undefined) return new ArgumentError(this.operation, "invalidConfig", message);
    return new FileFormatError(this.operation, "invalidConfig", this.path, message);
  }

  /** Returns the error for a valid but unsupported setting. */
  refused(code: string, message: string): ArgumentError {
    return new ArgumentError(this.operation, code, this.path === undefined ? message : `${this.path}: ${message}`);
  }
}
