/** Tables as tensors: CSV compared with pandas, Parquet with pyarrow, and invalid tables. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { ArgumentError, type DType, DTypeError, FileError, FileFormatError, io, Tensor } from "../../src/index.ts";
import { testFolder } from "../support/folder.ts";

type Cell = string | number | boolean | null | Cell[];
interface Csv {
  readonly text: string;
  readonly options: io.LoadCsvOptions;
  readonly columns: Readonly<Record<string, { readonly dtype: string; readonly values: Cell[] }>>;
}
interface Parquet {
  readonly bytes: string;
  readonly compression: string;
  readonly columns: Readonly<Record<string, { readonly type: string; readonly values: Cell[] }>>;
}

const fixture = <T>(name: string): T[] =>
  JSON.parse(readFileSync(join(packageRoot, "test", "fixtures", "tables", `${name}.json`), "utf8")) as T[];
const folder = testFolder("tables");
async function written(content: string | Uint8Array): Promise<string> {
  const path = folder.file(`${Bun.hash(content)}`);
  await Bun.write(path, content);
  return path;
}

const words: Readonly<Record<string, number>> = { inf: Infinity, "-inf": -Infinity, nan: Number.NaN };

/** A value of a fixture as a number of the dtype. */
function numberOf(value: Cell, dtype: DType): unknown {
  if (Array.isArray(value)) return value.map((each) => numberOf(each, dtype));
  if (value === null) return Number.NaN;
  if (dtype === "bool") return value;
  if (dtype === "int64") return BigInt(value as number);
  const number = typeof value === "string" ? (words[value] ?? Number(value)) : Number(value);
  return dtype === "float32" ? Math.fround(number) : number;
}

describe("CSV files are read as by pandas", () => {
  /** pandas has float64 and objects, and the library float32 and lists. */
  const dtypes: Readonly<Record<string, DType>> = { int64: "int64", float64: "float32", bool: "bool" };

  test.each(fixture<Csv>("csv").map((own, at) => ({ at, own })))("case $at equals pandas's result", async ({ own }) => {
    const path = await written(own.text);
    const table = await io.loadCsv(path, own.options);
    expect(Object.keys(table)).toEqual(Object.keys(own.columns));
    for (const [name, { dtype: read, values }] of Object.entries(own.columns)) {
      const column = table[name];
      const dtype = dtypes[read];
      if (dtype === undefined) {
        expect(column as unknown).toEqual(values);
        continue;
      }
      expect(Tensor.isTensor(column) && column.dtype).toBe(dtype);
      expect((column as Tensor).toArray() as unknown).toEqual(values.map((value) => numberOf(value, dtype)));
      if (dtype !== "float32") continue;
      const wide = await io.loadCsv(path, { ...own.options, columns: [name], dtypes: { [name]: "float64" } });
      expect((wide[name] as Tensor).toArray() as unknown).toEqual(values.map((value) => numberOf(value, "float64")));
    }
  });

  test.each([
    ["a row that is too short", "a,b\n1,2\n3\n", {}, FileFormatError, "otherLength"],
    ["quotes that do not end", 'a,b\n1,"2\n', {}, FileFormatError, "badQuotes"],
    ["a name twice", "a,a\n1,2\n", {}, FileFormatError, "duplicateName"],
    ["a column that is not there", "alpha\n1\n", { columns: ["alpah"] }, ArgumentError, "unknownColumn"],
    ["a dtype of texts", "a\nx\n", { dtypes: { a: "int64" } }, DTypeError, "notNumbers"],
  ] as const)("%s is an error", async (_name, content, options, Class, code) => {
    const failure: unknown = await io.loadCsv(await written(content), options).catch((cause: unknown) => cause);
    expect(failure).toBeInstanceOf(Class);
    expect(failure).toMatchObject({ code });
  });

  test("invalid UTF-8 and a missing file are errors", async () => {
    const path = await written(Uint8Array.of(0x61, 0x0a, 0xff));
    await expect(io.loadCsv(path)).rejects.toMatchObject({ code: "badUtf8" });
    await expect(io.loadCsv(folder.file("none"))).rejects.toBeInstanceOf(FileError);
  });

  test("names of prototype members are plain names, and a table without rows is empty", async () => {
    const table = await io.loadCsv(await written("__proto__,constructor\n1,2\n"));
    expect(Object.keys(table)).toEqual(["__proto__", "constructor"]);
    expect(await io.loadCsv(await written("a,b\n"))).toEqual({ a: [], b: [] });
  });
});

describe("Parquet files are read as pyarrow wrote them", () => {
  const own: Readonly<Record<string, DType>> = { int16: "int32", uint16: "int32" };
  const cases = fixture<Parquet>("parquet").map((each, at) => ({ ...each, at }));

  test.each(cases)("case $at, $compression, equals what pyarrow wrote", async ({ bytes, columns }) => {
    const path = await written(Buffer.from(bytes, "base64"));
    const table = await io.loadParquet(path);
    expect(Object.keys(table)).toEqual(Object.keys(columns));
    for (const [name, { type, values }] of Object.entries(columns)) {
      const column = table[name];
      const isMissing = values.includes(null);
      if (type === "string" || (type === "bool" && isMissing)) {
        expect(column as unknown).toEqual(values);
        continue;
      }
      const dtype = isMissing && !type.startsWith("float") ? "float64" : (own[type] ?? (type as DType));
      expect([name, Tensor.isTensor(column) && column.dtype]).toEqual([name, dtype]);
      expect((column as Tensor).toArray() as unknown).toEqual(values.map((value) => numberOf(value, dtype)));
    }
    const [first] = Object.keys(columns);
    expect(Object.keys(await io.loadParquet(path, { columns: [first] }))).toEqual([first]);
  });

  test("a truncated or modified file is a table or a typed error", async () => {
    const bytes = Buffer.from(cases[1].bytes, "base64");
    const outcomes = new Set<string>();
    for (let at = 0; at < 200; at++) {
      const place = (at * 7919) % bytes.byteLength;
      const changed = Buffer.from(at % 2 ? bytes.subarray(0, place) : bytes);
      if (at % 2 === 0) changed[place] ^= 1 << (at % 8);
      const failure: unknown = await io.loadParquet(await written(changed)).catch((cause: unknown) => cause);
      outcomes.add(failure instanceof Error ? failure.constructor.name : "table");
    }
    expect([...outcomes].toSorted()).toEqual(["FileFormatError", "table"]);
  });

  test("a missing column, an invalid file and a missing file are errors", async () => {
    const path = await written(Buffer.from(cases[0].bytes, "base64"));
    await expect(io.loadParquet(path, { columns: ["none"] })).rejects.toMatchObject({ code: "unknownColumn" });
    await expect(io.loadParquet(await written("PAR1"))).rejects.toMatchObject({ code: "damaged" });
    await expect(io.loadParquet(folder.file("none"))).rejects.toBeInstanceOf(FileError);
  });
});
