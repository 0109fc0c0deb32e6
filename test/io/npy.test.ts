/** .npy files as NumPy writes and reads them (`scripts/fixtures/numpy_files.py`), and invalid files. */
import { describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { packageRoot } from "../../src/core/paths.ts";
import { DTypeError, FileError, FileFormatError, io, tensor, zeros } from "../../src/index.ts";
import { testFolder } from "../support/folder.ts";

interface Saved {
  readonly name: string;
  readonly bytes: string;
  readonly shape: readonly number[];
  readonly values: readonly (number | string | boolean)[];
}

const folder = testFolder("npy");
const path = join(packageRoot, "test", "fixtures", "numpy", "files.json");
const { files, refused } = JSON.parse(readFileSync(path, "utf8")) as {
  readonly files: readonly Saved[];
  readonly refused: readonly string[];
};
const bytesOf = (base64: string) => Buffer.from(base64, "base64");

let count = 0;
/** Writes these bytes to a new file, and returns its path. */
function fileOf(bytes: Uint8Array): string {
  const own = folder.file(`${count++}.npy`);
  writeFileSync(own, bytes);
  return own;
}

describe("files that NumPy wrote are read exactly", () => {
  test.each(files.map((own) => [own.name, own] as const))(
    "NumPy's array %s is read exactly",
    async (name, { bytes, shape, values }) => {
      const x = io.loadNpy(fileOf(bytesOf(bytes)));
      expect(x.shape).toEqual([...shape]);
      expect(Array.from(x.dataSync() as ArrayLike<unknown>, String)).toEqual(values.map((own) => String(Number(own))));
      if (/^(?:big|fortran|version)/.test(name)) return;
      const own = folder.file("own.npy");
      await io.saveNpy(own, x);
      expect(readFileSync(own).toString("base64")).toBe(bytes);
    },
  );

  test("NumPy's files with unsupported types are rejected", () => {
    expect(refused).toHaveLength(4);
    for (const bytes of refused) expect(() => io.loadNpy(fileOf(bytesOf(bytes)))).toThrow(FileFormatError);
  });
});

test("a strided tensor is written in row-major order", async () => {
  const own = folder.file("strided.npy");
  await io.saveNpy(own, tensor([[1, 2], [3, 4], [5, 6]]).T.narrow(1, 1, 2)); // biome-ignore format: rows
  expect(io.loadNpy(own).toArray()).toEqual([[3, 5], [4, 6]]); // biome-ignore format: rows
});

test("bfloat16 and missing files throw typed errors", async () => {
  const own = folder.file("none.npy");
  expect(await io.saveNpy(own, zeros([2], { dtype: "bfloat16" })).catch((cause: unknown) => cause)).toBeInstanceOf(
    DTypeError,
  );
  expect(() => io.loadNpy(own)).toThrow(FileError);
});

const header = (text: string, version = 1) =>
  Buffer.concat([
    Buffer.from("\x93NUMPY", "latin1"),
    Buffer.from([version, 0, text.length % 256, text.length >> 8]),
    Buffer.from(text),
  ]);
const literal = (shape: string, descr = "<f4") =>
  `{'descr': '${descr}', 'fortran_order': False, 'shape': ${shape}, }\n`;

test.each([
  ["nothing", Buffer.alloc(0), "badMagic"],
  ["another magic", Buffer.from("PK\x03\x04 and more"), "badMagic"],
  ["another version", header(literal("(1,)"), 9), "unsupportedVersion"],
  ["half a header", header(literal("(1,)")).subarray(0, 30), "truncated"],
  ["no length", header("").subarray(0, 8), "truncated"],
  [
    "a header of megabytes",
    Buffer.concat([header("", 2).subarray(0, 8), Buffer.from([255, 255, 255, 0])]),
    "headerTooLarge",
  ],
  ["no literal", header("import os"), "badHeader"],
  ["a size below 0", header(literal("(-1,)")), "badHeader"],
  ["a size that is no tuple", header(literal("(3)")), "badShape"],
  ["a size that no number counts", header(literal("(99999999999999999999,)")), "badShape"],
  ["too many axes", header(literal(`(${"1, ".repeat(80)})`)), "badShape"],
  ["objects of Python", header(literal("(1,)", "|O")), "unsupportedType"],
  ["a type of another name", header(literal("(1,)", "<constructor")), "unsupportedType"],
  ["fewer bytes", header(literal("(2,)")), "sizeDiffers"],
  ["more elements than there is memory", header(literal("(94906266, 94906266)")), "sizeDiffers"],
  ["more bytes", Buffer.concat([header(literal("(1,)")), Buffer.alloc(5)]), "sizeDiffers"],
  ["a boolean of 2", Buffer.concat([header(literal("(1,)", "|b1")), Buffer.from([2])]), "badBool"],
] as const)("%s is rejected", (_, bytes, code) => {
  expect(() => io.loadNpy(fileOf(bytes))).toThrow(FileFormatError);
  expect(() => io.loadNpy(fileOf(bytes))).toThrow(expect.objectContaining({ code }));
});

test("after any change of bytes, loading returns a tensor or throws a FileFormatError", () => {
  const own = folder.file("fuzzed.npy");
  const [small] = files.filter(({ name }) => name === "f4 (2, 3)");
  const change = fc.record({ at: fc.nat(160), byte: fc.nat(255) });
  let taken = 0;
  fc.assert(
    fc.property(fc.array(change, { minLength: 1, maxLength: 3 }), fc.nat(160), (changes, kept) => {
      const bytes = bytesOf(small.bytes);
      for (const { at, byte } of changes) bytes[at % bytes.length] = byte;
      writeFileSync(own, kept < 20 ? bytes.subarray(0, kept) : bytes);
      try {
        expect(io.loadNpy(own).size).toBeGreaterThanOrEqual(0);
        taken++;
      } catch (cause) {
        if (!(cause instanceof FileFormatError)) throw cause;
      }
    }),
    { numRuns: 500, seed: 17 },
  );
  expect([taken > 20, taken < 480]).toEqual([true, true]);
});
