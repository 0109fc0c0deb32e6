/**
 * Reads test/fixtures/<family>.json: results of PyTorch, made by `bun run fixtures` and described in
 * test/fixtures/README.md.
 */
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";

const folder = join(import.meta.dir, "..", "fixtures");

/** The library's dtypes; `int16` occurs only as a result: the promoted dtype of uint8 and int8. */
export const fixtureDTypes = [
  "float64",
  "float32",
  "float16",
  "bfloat16",
  "int64",
  "int32",
  "int16",
  "uint32",
  "int8",
  "uint8",
  "bool",
] as const;
export type FixtureDType = (typeof fixtureDTypes)[number];

export interface FixtureTensor {
  readonly dtype: FixtureDType;
  readonly shape: readonly number[];
  /** Row by row; bigints for int64, 0 and 1 for bool. */
  readonly values: readonly number[] | readonly bigint[];
}

export type FixtureScalar = number | boolean;
export type FixtureOption =
  | FixtureScalar
  | string
  | readonly FixtureOption[]
  | { readonly [name: string]: FixtureOption };

export interface FixtureCase {
  readonly name: string;
  readonly op: string;
  /** Tensors and scalars in PyTorch's order. */
  readonly inputs: readonly (FixtureTensor | FixtureScalar)[];
  readonly options: Readonly<Record<string, FixtureOption>>;
  /** null if PyTorch does not specify this output. */
  readonly outputs: readonly (FixtureTensor | null)[];
  /** One for each output; null if it is not floating-point. */
  readonly cotangents?: readonly (FixtureTensor | null)[];
  /** One for each input; null if it is not a floating-point tensor. */
  readonly gradients?: readonly (FixtureTensor | null)[];
  /** PyTorch rejects the call. */
  readonly error: boolean;
}

export interface FixtureFamily {
  readonly family: string;
  /** The version of PyTorch. */
  readonly torch: string;
  readonly cases: readonly FixtureCase[];
}

/** Every family, in alphabetical order. */
export function readFixtures(): FixtureFamily[] {
  const files = [...new Bun.Glob("*.json").scanSync({ cwd: folder })].sort();
  return files.map((file) => parseFamily(basename(file, ".json"), readFileSync(join(folder, file), "utf8")));
}

/** Parses one file. @throws {Error} with the case and the field if the text is not in the format */
export function parseFamily(family: string, text: string): FixtureFamily {
  const file = record(JSON.parse(text), family);
  return {
    family,
    torch: string(file["torch"], `${family}: torch`),
    cases: list(file["cases"], family).map(parseCase),
  };
}

const known = new Set(["name", "op", "inputs", "options", "outputs", "cotangents", "gradients", "error"]);

function parseCase(value: unknown): FixtureCase {
  const fields = record(value, "case");
  const name = string(fields["name"], "name");
  for (const field of Object.keys(fields)) if (!known.has(field)) fail(`${name}: field ${field}`, fields[field]);
  const tensors = (field: string) =>
    list(fields[field], `${name}: ${field}`).map((item) =>
      item === null ? null : parseTensor(item, `${name}: ${field}`),
    );
  return {
    name,
    op: string(fields["op"], `${name}: op`),
    inputs: list(fields["inputs"], `${name}: inputs`).map((item) => parseInput(item, name)),
    options: parseOptions(fields["options"], name),
    outputs: tensors("outputs"),
    ...("gradients" in fields ? { cotangents: tensors("cotangents"), gradients: tensors("gradients") } : {}),
    error: fields["error"] === true,
  };
}

function parseInput(value: unknown, name: string): FixtureTensor | FixtureScalar {
  if (typeof value === "boolean") return value;
  return typeof value === "object" ? parseTensor(value, `${name}: inputs`) : number(value, `${name}: inputs`);
}

function parseTensor(value: unknown, where: string): FixtureTensor {
  const fields = record(value, where);
  const dtype =
    fixtureDTypes.find((candidate) => candidate === fields["dtype"]) ?? fail(`${where}: dtype`, fields["dtype"]);
  const shape = list(fields["shape"], `${where}: shape`).map((size) => number(size, `${where}: shape`));
  return { dtype, shape, values: parseValues(dtype, list(fields["data"], `${where}: data`), where) };
}

function parseValues(dtype: FixtureDType, data: readonly unknown[], where: string): number[] | bigint[] {
  if (dtype === "int64") return data.map((item) => bigint(item, where));
  const values = data.map((item) => number(item, where));
  return dtype === "float32" ? values.map(Math.fround) : values;
}

function parseOptions(value: unknown, name: string): Record<string, FixtureOption> {
  const entries = Object.entries(record(value, `${name}: options`));
  return Object.fromEntries(entries.map(([key, item]) => [key, parseOption(item, `${name}: ${key}`)]));
}

function parseOption(value: unknown, where: string): FixtureOption {
  if (Array.isArray(value)) return value.map((item) => parseOption(item, where));
  if (typeof value === "string") return nonFinite[value] ?? value;
  if (typeof value === "object" && value !== null) return parseOptions(value, where);
  return typeof value === "boolean" ? value : number(value, where);
}

const nonFinite: Readonly<Record<string, number>> = { nan: Number.NaN, inf: Infinity, "-inf": -Infinity, "-0": -0 };

function number(value: unknown, where: string): number {
  if (typeof value === "number") return value;
  return (typeof value === "string" ? nonFinite[value] : undefined) ?? fail(where, value);
}

function bigint(value: unknown, where: string): bigint {
  if (typeof value === "number" && Number.isSafeInteger(value)) return BigInt(value);
  return typeof value === "string" && /^-?\d+$/.test(value) ? BigInt(value) : fail(where, value);
}

function string(value: unknown, where: string): string {
  return typeof value === "string" ? value : fail(where, value);
}

function list(value: unknown, where: string): readonly unknown[] {
  return Array.isArray(value) ? value : fail(where, value);
}

function record(value: unknown, where: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return fail(where, value);
  return value as Record<string, unknown>;
}

function fail(where: string, value: unknown): never {
  throw new Error(`fixture ${where}: ${JSON.stringify(value)} is not in the format of test/fixtures/README.md`);
}
