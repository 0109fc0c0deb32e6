/** Loads columns of Parquet files. */
import { constants } from "node:fs";
import type { AsyncBuffer, ColumnData, Compressors, FileMetaData } from "hyparquet";
import { FileFormatError, OrchardError } from "../../core/errors.ts";
import { aPath } from "../../core/kinds.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { reserve } from "../../tensor/reserve.ts";
import { fileError } from "../file_errors.ts";
import { zlib } from "../zlib.ts";
import { checkColumns, dtypesByName, type Fail, inDType, someNames, type Table } from "./columns.ts";
import { columnOf, type Kept, keptOf } from "./parquet_columns.ts";

/** Options of {@link loadParquet}. */
export interface LoadParquetOptions {
  /** The columns to read. Default: all. */
  columns?: readonly string[] | undefined;
  /** The dtypes of columns of numbers. Default: those of the file. */
  dtypes?: Readonly<Record<string, DType>> | undefined;
}

const parquetParameters = parameters("loadParquet", {
  path: operand(aPath),
  columns: named(someNames),
  dtypes: named(dtypesByName, new Map<string, DType>()),
});

/**
 * Loads the columns of a Parquet file. Booleans, integers of 8 to 64 bits and floats of 16 to 64 bits become tensors of
 * a dtype that holds their values; decimals become float64. Lists with the same number of numbers in each row become
 * [rows, n]. Strings, dates, bytes, lists of differing lengths and structures become lists with one item per row. A
 * missing number is NaN, which makes a column of integers float64. A column of booleans with missing values is a list
 * with null.
 *
 * @returns the columns by name: tensors, or lists
 *
 * @example
 * const { text, label } = await io.loadParquet("train.parquet", { columns: ["text", "label"] });
 *
 * @throws {FileError} for a file that does not exist or can't be read. @throws {FileFormatError} `damaged`, also for an
 * unsupported compression (Snappy, GZIP, Brotli, Zstandard and none are supported). @throws {ArgumentError}
 * `unknownColumn`. @throws {DTypeError} `notNumbers` if `dtypes` has a column of other values.
 * @throws {OutOfMemoryError} if the columns would exceed the memory limit.
 */
export function loadParquet(path: string, options?: LoadParquetOptions): Promise<Table>;
export async function loadParquet(...values: unknown[]): Promise<Table> {
  const { path, columns, dtypes } = parquetParameters(values);
  const fail: Fail = (code, message) => new FileFormatError("loadParquet", code, path, message);
  const { open } = await import("node:fs/promises"); // takes 2 ms to load
  const file = await open(path, constants.O_RDONLY).catch((cause: unknown) => {
    throw fileError("loadParquet", path, cause);
  });
  try {
    const { size } = await file.stat();
    const slice = async (start: number, end = size): Promise<ArrayBuffer> => {
      const bytes = new Uint8Array(Math.max(0, Math.min(end, size) - start));
      const { bytesRead } = await file.read(bytes, 0, bytes.byteLength, start);
      if (bytesRead < bytes.byteLength)
        throw new Error(`expected ${bytes.byteLength} bytes at byte ${start}, got fewer`);
      return bytes.buffer;
    };
    return await tableOf({ byteLength: size, slice }, columns, dtypes, fail);
  } catch (cause) {
    const known = fileError("loadParquet", path, cause);
    if (known instanceof OrchardError) throw known;
    throw fail("damaged", `expected a complete Parquet file, but reading failed with "${reasonOf(cause)}"`);
  } finally {
    await file.close();
  }
}

const reasonOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause));

/** Reads a table. The package is loaded on first use. */
async function tableOf(
  file: AsyncBuffer,
  asked: readonly string[] | undefined,
  dtypes: ReadonlyMap<string, DType>,
  fail: Fail,
): Promise<Table> {
  const { parquetMetadataAsync, parquetRead, parquetSchema } = await import("hyparquet");
  const metadata = await parquetMetadataAsync(file);
  const rows = Number(metadata.num_rows);
  const kept = new Map<string, Kept>(
    parquetSchema(metadata).children.map((column) => [column.element.name, keptOf(column)]),
  );
  const names = asked ?? [...kept.keys()];
  checkColumns("loadParquet", [...names, ...dtypes.keys()], [...kept.keys()]);
  reserve(sizeOf(metadata, names));
  const chunks = new Map<string, ColumnData[]>(names.map((name) => [name, []]));
  const onChunk = (chunk: ColumnData) => chunks.get(chunk.columnName)?.push(chunk);
  await parquetRead({ file, metadata, columns: [...names], compressors, onChunk });
  return Object.fromEntries(
    names.map((name) => {
      const column = columnOf(name, kept.get(name)!, chunks.get(name)!, rows, fail);
      return [name, inDType("loadParquet", name, column, dtypes.get(name))];
    }),
  );
}

/** The uncompressed size of columns in bytes. */
const sizeOf = ({ row_groups }: FileMetaData, names: readonly string[]): number =>
  row_groups
    .flatMap(({ columns }) => columns)
    .filter(({ meta_data }) => meta_data !== undefined && names.includes(meta_data.path_in_schema[0]))
    .reduce((sum, { meta_data }) => sum + Math.max(0, Number(meta_data!.total_uncompressed_size)), 0);

/** Decompressors, limited to the size that a page states. Snappy is built into the package. */
const compressors: Compressors = {
  GZIP: (bytes, length) => zlib().gunzipSync(bytes, { maxOutputLength: Math.max(1, length) }),
  BROTLI: (bytes, length) => zlib().brotliDecompressSync(bytes, { maxOutputLength: Math.max(1, length) }),
  ZSTD: (bytes, length) => zlib().zstdDecompressSync(bytes, { maxOutputLength: Math.max(1, length) }),
};
