/** Invalid GGUF files: each is rejected, as are all that the `gguf` package rejects. */
import { describe, expect, test } from "bun:test";
import { readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { FileError, FileFormatError } from "../../src/core/errors.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { io } from "../../src/index.ts";
import { testFolder } from "../support/folder.ts";
import { processorSeconds } from "../support/processor_time.ts";

const folder = testFolder("badGguf");
const fixtures = join(packageRoot, "test", "fixtures", "gguf");
const small = readFileSync(join(fixtures, "small.gguf"));

const u32 = (value: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
};
const u64 = (value: number | bigint) => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
};
const text = (value: string | Uint8Array) =>
  Buffer.concat([u64(Buffer.from(value as string).byteLength), Buffer.from(value as string)]);
/** A value of metadata. */
const field = (key: string, type: number, ...value: readonly Uint8Array[]) =>
  Buffer.concat([text(key), u32(type), ...value]);
/** A tensor, with sizes in the order of the file. */
const info = (name: string, sizes: readonly (number | bigint)[], type: number, offset: number | bigint) =>
  Buffer.concat([text(name), u32(sizes.length), ...sizes.map(u64), u32(type), u64(offset)]);

interface Parts {
  readonly fields?: readonly Uint8Array[];
  readonly tensors?: readonly Uint8Array[];
  readonly fieldCount?: number | bigint;
  readonly tensorCount?: number | bigint;
  readonly version?: number;
  readonly magic?: string;
  readonly data?: number;
}

function bytesOf({ fields = [], tensors = [], data = 0, ...own }: Parts): Buffer {
  const { fieldCount = fields.length, tensorCount = tensors.length, version = 3, magic = "GGUF" } = own;
  const header = Buffer.concat([
    Buffer.from(magic, "latin1"),
    u32(version),
    u64(tensorCount),
    u64(fieldCount),
    ...fields,
    ...tensors,
  ]);
  const padding = data > 0 ? (32 - (header.byteLength % 32)) % 32 : 0;
  return Buffer.concat([header, Buffer.alloc(padding + data)]);
}

const path = folder.file("model.gguf");

function refused(bytes: Uint8Array): FileFormatError {
  writeFileSync(path, bytes);
  try {
    io.openGguf(path).close();
  } catch (error) {
    expect(error).toBeInstanceOf(FileFormatError);
    expect((error as FileFormatError).message).toContain(path);
    return error as FileFormatError;
  }
  throw new Error("it was taken");
}

interface Bad extends Parts {
  readonly title: string;
  readonly code: string;
  readonly says: string;
  readonly tensor?: string;
}

const [f32, q8] = [0, 8];
const array = 9;
const nested = (depth: number): Buffer =>
  depth === 0 ? Buffer.concat([u32(0), u64(0)]) : Buffer.concat([u32(array), u64(1), nested(depth - 1)]);

const bad: readonly Bad[] = [
  { title: "another magic", magic: "GGML", code: "notGguf", says: 'start with "GGUF", got "GGML"' },
  { title: "version 1", version: 1, code: "unknownVersion", says: "version 2 or 3, got 1" },
  { title: "version 4", version: 4, code: "unknownVersion", says: "version 2 or 3, got 4" },
  { title: "the other byte order", version: 3 << 24, code: "unknownVersion", says: "big-endian" },
  {
    title: "2^63 tensors",
    tensorCount: 2n ** 63n,
    code: "tooMany",
    says: "at most 16777216 tensors, got 9223372036854775808",
  },
  { title: "a million tensors that are not there", tensorCount: 1_000_000, code: "truncated", says: "1000000 tensors" },
  { title: "2^64 − 1 values", fieldCount: 2n ** 64n - 1n, code: "tooMany", says: "18446744073709551615" },
  { title: "more values than bytes", fieldCount: 9, code: "truncated", says: "9 metadata values" },
  {
    title: "a key longer than the file",
    fields: [u64(40_000), Buffer.alloc(9)],
    fieldCount: 1,
    code: "truncated",
    says: "expected 40000 bytes of a key",
  },
  {
    title: "a key of 2^64 − 1 bytes",
    fields: [u64(2n ** 64n - 1n), Buffer.alloc(9)],
    fieldCount: 1,
    code: "textTooLong",
    says: "at most 65535 bytes, got 18446744073709551615",
  },
  {
    title: "a key twice",
    fields: [field("a", 0, u32(0).subarray(0, 1)), field("a", 4, u32(0))],
    code: "duplicateKey",
    says: '"a" more than once',
  },
  {
    title: "a key that is not UTF-8",
    fields: [Buffer.concat([text(Uint8Array.of(0xff)), u32(4), u32(1)])],
    code: "notUtf8",
    says: "a key",
  },
  {
    title: "a text that is not UTF-8",
    fields: [field("a", 8, text(Uint8Array.of(0xc3)))],
    code: "notUtf8",
    says: 'the value of "a"',
  },
  { title: "a type that there is not", fields: [field("a", 13, u64(1))], code: "unknownType", says: "0 to 12" },
  { title: "a boolean of 2", fields: [field("a", 7, Uint8Array.of(2))], code: "invalidBool", says: "0 or 1, got 2" },
  {
    title: "an array of booleans of 7",
    fields: [field("a", array, u32(7), u64(2), Uint8Array.of(1, 7))],
    code: "invalidBool",
    says: "got 7",
  },
  {
    title: "an array of a type that there is not",
    fields: [field("a", array, u32(99), u64(0))],
    code: "unknownType",
    says: "got 99",
  },
  {
    title: "an array of 2^62 numbers",
    fields: [field("a", array, u32(4), u64(2n ** 62n))],
    code: "tooMany",
    says: "4611686018427387904",
  },
  {
    title: "an array that the file ends in",
    fields: [field("a", array, u32(10), u64(1000))],
    code: "truncated",
    says: "1000 values",
  },
  { title: "arrays 17 deep", fields: [field("a", array, nested(17))], code: "tooDeep", says: "at most 16 arrays" },
  {
    title: "arrays 100,000 deep",
    fields: [field("a", array, ...Array.from({ length: 100_000 }, () => Buffer.concat([u32(array), u64(1)])))],
    code: "tooDeep",
    says: "at most 16 arrays",
  },
  {
    title: "an alignment of 0",
    fields: [field("general.alignment", 4, u32(0))],
    code: "invalidAlignment",
    says: "got 0",
  },
  {
    title: "an alignment of 24",
    fields: [field("general.alignment", 4, u32(24))],
    code: "invalidAlignment",
    says: "a power of two, got 24",
  },
  {
    title: "an alignment of another type",
    fields: [field("general.alignment", 10, u64(32))],
    code: "invalidAlignment",
    says: "got uint64",
  },
  {
    title: "a tensor of 9 axes",
    tensors: [info("a", Array(9).fill(1), f32, 0)],
    data: 32,
    code: "tooManyAxes",
    says: "at most 8 axes, got 9",
    tensor: "a",
  },
  {
    title: "a tensor of 2^32 − 1 axes",
    tensors: [Buffer.concat([text("a"), u32(2 ** 32 - 1), Buffer.alloc(20)])],
    code: "tooManyAxes",
    says: "4294967295",
    tensor: "a",
  },
  {
    title: "a type of tensors that there is not",
    tensors: [info("a", [4], 99, 0)],
    data: 32,
    code: "unknownTensorType",
    says: "type 99",
    tensor: "a",
  },
  {
    title: "a type that was removed",
    tensors: [info("a", [32], 4, 0)],
    data: 32,
    code: "unknownTensorType",
    says: "type 4",
    tensor: "a",
  },
  {
    title: "rows that are not whole blocks",
    tensors: [info("a", [33], q8, 0)],
    data: 64,
    code: "partOfBlock",
    says: "a multiple of 32 for q8_0, got 33",
    tensor: "a",
  },
  {
    title: "a size of 2^63",
    tensors: [info("a", [2n ** 63n], f32, 0)],
    data: 32,
    code: "tooLarge",
    says: "9223372036854775808",
    tensor: "a",
  },
  {
    title: "sizes whose product wraps around to 0",
    tensors: [info("a", [2n ** 32n, 2n ** 32n], f32, 0)],
    data: 32,
    code: "tooLarge",
    says: "2^53",
    tensor: "a",
  },
  {
    title: "a size of 2^63 beside one of 0",
    tensors: [info("a", [2n ** 63n, 0], f32, 0)],
    data: 32,
    code: "tooLarge",
    says: "2^53",
    tensor: "a",
  },
  {
    title: "an offset beyond the file",
    tensors: [info("a", [8], f32, 1024)],
    data: 32,
    code: "truncated",
    says: "is it truncated",
    tensor: "a",
  },
  {
    title: "an offset of 2^64 − 32",
    tensors: [info("a", [8], f32, 2n ** 64n - 32n)],
    data: 32,
    code: "truncated",
    says: "is it truncated",
    tensor: "a",
  },
  {
    title: "an offset off the alignment",
    tensors: [info("a", [1], f32, 4)],
    data: 32,
    code: "misaligned",
    says: "a multiple of 32, got 4",
    tensor: "a",
  },
  {
    title: "data cut off",
    tensors: [info("a", [9], f32, 0)],
    data: 35,
    code: "truncated",
    says: "is it truncated",
    tensor: "a",
  },
  {
    title: "tensors that overlap",
    tensors: [info("a", [9], f32, 0), info("b", [1], f32, 32)],
    data: 64,
    code: "invalidOffsets",
    says: 'overlaps "a"',
    tensor: "b",
  },
  {
    title: "a tensor twice",
    tensors: [info("a", [1], f32, 0), info("a", [1], f32, 32)],
    data: 64,
    code: "duplicateTensor",
    says: "more than once",
    tensor: "a",
  },
];

describe("a damaged GGUF file", () => {
  test.each(bad)("a file with $title is rejected, in seconds", ({ title: _, code, says, tensor, ...parts }) => {
    const bytes = bytesOf(parts);
    let error: ReturnType<typeof refused> | undefined;
    const seconds = processorSeconds(() => {
      error = refused(bytes);
    });
    expect([error!.code, error!.operation, error!.tensor]).toEqual([code, "openGguf", tensor]);
    expect(error!.message).toContain(says);
    expect(error!.message.length).toBeLessThan(600);
    expect(seconds).toBeLessThan(10);
  });

  test("a tensor of rank 0, one without elements and a gap are read", () => {
    const tensors = [info("scalar", [], f32, 64), info("none", [0, 4], f32, 0), info("x", [2], f32, 0)];
    writeFileSync(path, bytesOf({ tensors, data: 80 }));
    using file = io.openGguf(path);
    expect(file.names.map((name) => file.tensor(name).shape)).toEqual([[], [4, 0], [2]]);
  });

  test("an empty file and a part of the magic number are rejected", () => {
    for (const length of [0, 3]) expect(refused(small.subarray(0, length)).code).toBe("truncated");
  });

  test("a name of 60,000 bytes is rejected with a short message", () => {
    expect(refused(bytesOf({ tensors: [info("x".repeat(60_000), [4], 99, 0)], data: 32 })).message.length).toBeLessThan(
      500,
    );
  });
});

interface Row {
  readonly length: number;
  readonly edits: readonly (readonly [position: number, hex: string])[];
  readonly verdict: "refused" | "hangs" | Readonly<Record<string, readonly number[]>>;
}

const rows = JSON.parse(readFileSync(join(fixtures, "verdicts.json"), "utf8")) as Row[];

/** Files that the format forbids and the package reads. */
const stricter = new Set([
  "misaligned",
  "invalidOffsets",
  "invalidBool",
  "tooManyAxes",
  "textTooLong",
  "partOfBlock",
  "tooLarge", // 2^53 rows without values
  "unknownVersion", // a file with the other byte order
]);

function changed({ length, edits }: Row): Buffer {
  const bytes = Buffer.from(small);
  for (const [position, hex] of edits) bytes.set(Buffer.from(hex, "hex"), position);
  return bytes.subarray(0, length);
}

function verdictOf(bytes: Uint8Array): { code: string } | { shapes: Record<string, readonly number[]> } {
  writeFileSync(path, bytes);
  try {
    using file = io.openGguf(path);
    const shapes = Object.fromEntries(file.names.map((name) => [name, file.info(name).shape]));
    return { shapes };
  } catch (error) {
    expect(error).toBeInstanceOf(FileFormatError);
    return { code: (error as FileFormatError).code };
  }
}

describe("a modified GGUF file is read or rejected", () => {
  test("a modified file is read if the package read it, and rejected if the package failed or hung", () => {
    const counts: Record<string, number> = {};
    for (const row of rows) {
      const own = verdictOf(changed(row));
      if (typeof row.verdict === "string") {
        expect({ ...row, refused: "code" in own }).toEqual({ ...row, refused: true });
        counts["refused by both"] = (counts["refused by both"] ?? 0) + 1;
      } else if ("shapes" in own) {
        expect(own.shapes).toEqual(row.verdict);
        counts["read by both"] = (counts["read by both"] ?? 0) + 1;
      } else {
        expect({ ...row, code: stricter.has(own.code) ? "stricter" : own.code }).toEqual({ ...row, code: "stricter" });
        counts["read by the package only"] = (counts["read by the package only"] ?? 0) + 1;
      }
    }
    expect(counts["refused by both"]).toBeGreaterThan(500);
    expect(counts["read by both"]).toBeGreaterThan(50);
  });

  test("a randomly modified file is read, or rejected with a typed error, at once", () => {
    const edit = fc.tuple(
      fc.nat(small.byteLength - 9),
      fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
      fc.constantFrom(1, 4, 8),
    );
    fc.assert(
      fc.property(fc.array(edit, { minLength: 1, maxLength: 4 }), fc.nat(small.byteLength), (edits, cut) => {
        const bytes = Buffer.from(small);
        for (const [position, value, size] of edits) bytes.set(u64(value).subarray(0, size), position);
        const seconds = processorSeconds(() => void verdictOf(cut % 3 === 0 ? bytes.subarray(0, cut) : bytes));
        expect(seconds).toBeLessThan(10);
      }),
      { numRuns: 2000, seed: 1 },
    );
  });

  test("a file that is modified while it is open is rejected before a missing page is accessed", () => {
    writeFileSync(path, readFileSync(join(fixtures, "aligned.gguf")));
    using file = io.openGguf(path);
    truncateSync(path, 40_000);
    expect(() => file.tensor("long")).toThrow(FileFormatError);
  });

  test("a missing file and a folder are errors", () => {
    expect(() => io.openGguf(folder.file("missing.gguf"))).toThrow(FileError);
    expect(() => io.openGguf(folder.path)).toThrow(FileError);
  });
});
