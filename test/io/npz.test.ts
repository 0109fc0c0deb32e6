/** .npz archives as NumPy writes them (`scripts/fixtures/numpy_files.py`), and invalid files. */
import { describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { deflateRawSync } from "node:zlib";
import fc from "fast-check";
import { zipSync } from "fflate";
import { packageRoot } from "../../src/core/paths.ts";
import { ArgumentError, DTypeError, FileError, FileFormatError, io, tensor, zeros } from "../../src/index.ts";
import { encodeArray } from "../../src/io/numpy/array.ts";
import { setMemoryLimit } from "../../src/tensor/reserve.ts";
import { testFolder } from "../support/folder.ts";

const folder = testFolder("npz");
const path = join(packageRoot, "test", "fixtures", "numpy", "files.json");
const { archives } = JSON.parse(readFileSync(path, "utf8")) as {
  readonly archives: Readonly<Record<"stored" | "deflated", string>>;
};
const bytesOf = (name: keyof typeof archives) => Buffer.from(archives[name], "base64");

let count = 0;
function fileOf(bytes: Uint8Array): string {
  const own = folder.file(`${count++}.npz`);
  writeFileSync(own, bytes);
  return own;
}

test.each(["stored", "deflated"] as const)("NumPy's archive is read, %s", (name) => {
  const arrays = io.loadNpz(fileOf(bytesOf(name)));
  expect(Object.keys(arrays)).toEqual(["x", "layer.0.weight", "s"]);
  const { x, s, "layer.0.weight": weight } = arrays;
  expect(x.dtype).toBe("float32");
  expect(x.toArray()).toEqual([[-1, -0.75, -0.5], [-0.25, 0, 0.25]]); // biome-ignore format: rows
  expect([s.dtype, s.shape, s.item()]).toEqual(["float64", [], 2]);
  expect([weight.dtype, weight.shape]).toEqual(["int64", [40]]);
  expect(weight.toArray()).toEqual(Array.from({ length: 40 }, (_, at) => BigInt(3 * at - 7)));
});

describe("saveNpz", () => {
  test.each([false, true])("written archives are read again, deflated: %p", async (compressed) => {
    const own = folder.file("own.npz");
    const tensors = { x: tensor([[1, 2, 3]]).T, "a/b.c": tensor([true, false]), ["__proto__"]: zeros([0, 2]) };
    await io.saveNpz(own, tensors, { compressed });
    const first = readFileSync(own);
    const found = io.loadNpz(own);
    expect(Object.keys(found)).toEqual(Object.keys(tensors));
    expect(Object.values(found).map((x) => x.toArray())).toEqual([[[1], [2], [3]], [true, false], []]);
    await io.saveNpz(own, tensors, { compressed });
    expect(readFileSync(own).equals(first)).toBe(true);
  });

  test("archives are deflated on request only", async () => {
    const [plain, small] = [folder.file("plain.npz"), folder.file("small.npz")];
    await io.saveNpz(plain, { x: zeros([1000]) });
    await io.saveNpz(small, { x: zeros([1000]) }, { compressed: true });
    expect(readFileSync(plain).length).toBeGreaterThan(4000);
    expect(readFileSync(small).length).toBeLessThan(500);
  });

  test("dtypes that NumPy lacks, and values other than tensors, are rejected", async () => {
    const own = folder.file("none.npz");
    const failure = (tensors: object) => io.saveNpz(own, tensors as never).catch((cause: unknown) => cause);
    expect(await failure({ x: zeros([2], { dtype: "bfloat16" }) })).toBeInstanceOf(DTypeError);
    expect(await failure({ x: 3 })).toBeInstanceOf(ArgumentError);
    expect(await failure({ "": zeros([1]) })).toBeInstanceOf(ArgumentError);
    expect(() => io.loadNpz(own)).toThrow(FileError);
  });
});

/** An archive in which the last occurrence of these 4 bytes is replaced. */
function changed(from: number, offset: number, bytes: readonly number[]): Buffer {
  const archive = bytesOf("stored");
  const at = archive.lastIndexOf(Buffer.from([0x50, 0x4b, from, from + 1]));
  archive.set(bytes, at + offset);
  return archive;
}

const text = new TextEncoder().encode("text");
test.each([
  ["nothing", () => Buffer.alloc(0), "badMagic"],
  ["an archive cut short", () => bytesOf("stored").subarray(0, 900), "badMagic"],
  ["an archive without its start", () => bytesOf("stored").subarray(600), "badArchive"],
  ["a list that has more files", () => changed(5, 10, [9, 0]), "badArchive"],
  ["an encrypted file", () => changed(1, 8, [1]), "encrypted"],
  ["another method", () => changed(1, 10, [12]), "unsupportedMethod"],
  ["a size that nothing holds", () => changed(1, 24, [255, 255, 255, 127]), "sizeDiffers"],
  ["another sum of checks", () => changed(1, 16, [1, 2, 3, 4]), "badChecksum"],
  ["a file of 64 bits", () => changed(5, 16, [255, 255, 255, 255]), "tooLarge"],
  ["a text", () => Buffer.from(zipSync({ "a.txt": text })), "notAnArray"],
  ["a text by an array's name", () => Buffer.from(zipSync({ "a.npy": text })), "badMagic"],
] as const)("%s is rejected", (_, bytes, code) => {
  const own = fileOf(bytes());
  expect(() => io.loadNpz(own)).toThrow(FileFormatError);
  expect(() => io.loadNpz(own)).toThrow(expect.objectContaining({ code }));
});

test("after any change of bytes, loading returns the arrays or throws a FileFormatError", () => {
  const own = folder.file("fuzzed.npz");
  const change = fc.record({ at: fc.nat(1500), byte: fc.nat(255) });
  const expected = { stored: 0, deflated: 0 };
  for (const name of ["stored", "deflated"] as const) {
    const right = String(io.loadNpz(fileOf(bytesOf(name)))["layer.0.weight"].toArray());
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 2 }), fc.nat(1500), (changes, kept) => {
        const bytes = bytesOf(name);
        for (const { at, byte } of changes) bytes[at % bytes.length] = byte;
        writeFileSync(own, kept < 100 ? bytes.subarray(0, kept * 9) : bytes);
        try {
          const found = io.loadNpz(own)["layer.0.weight"];
          if (found) expect(String(found.toArray())).toBe(right); // the checksum detects any changed element
          expected[name]++;
        } catch (cause) {
          if (!(cause instanceof FileFormatError)) throw cause;
        }
      }),
      { numRuns: 400, seed: 5 },
    );
  }
  expect(Object.values(expected).map((taken) => taken > 10 && taken < 390)).toEqual([true, true]);
});

/** A zip archive of deflated files, whose directory may claim anything. */
function archiveOf(files: readonly { name: string; packed: Uint8Array; size: number; crc?: number; at?: number }[]) {
  const parts: Buffer[] = [];
  const list: Buffer[] = [];
  let end = 0;
  for (const { name, packed, size, crc = 0, at } of files) {
    const local = Buffer.alloc(30 + name.length);
    local.writeUInt32LE(0x04034b50);
    local.writeUInt16LE(name.length, 26);
    local.write(name, 30);
    const entry = Buffer.alloc(46 + name.length);
    entry.writeUInt32LE(0x02014b50);
    entry.writeUInt16LE(8, 10);
    entry.writeUInt32LE(crc, 16);
    entry.writeUInt32LE(packed.length, 20);
    entry.writeUInt32LE(size, 24);
    entry.writeUInt16LE(name.length, 28);
    entry.writeUInt32LE(at ?? end, 42);
    entry.write(name, 46);
    list.push(entry);
    if (at !== undefined) continue;
    parts.push(local, Buffer.from(packed));
    end += local.length + packed.length;
  }
  const whole = Buffer.alloc(22);
  whole.writeUInt32LE(0x06054b50);
  whole.writeUInt16LE(files.length, 10);
  whole.writeUInt32LE(end, 16);
  return Buffer.concat([...parts, ...list, whole]);
}

describe("archives that would expand to gigabytes are rejected", () => {
  const megabytes = deflateRawSync(Buffer.alloc(64 * 2 ** 20));

  test("a file larger than the memory limit is rejected before it is inflated", () => {
    const packed = Buffer.alloc(64 * 1024, 0xff); // these bytes can't be inflated
    const files = Array.from({ length: 9 }, (_, at) => ({ name: `${at}.npy`, packed, size: 64 * 2 ** 20 }));
    const own = fileOf(archiveOf(files));
    expect(() => io.loadNpz(own)).toThrow(expect.objectContaining({ code: "badArchive" }));
    setMemoryLimit(512 * 2 ** 20);
    try {
      expect(() => io.loadNpz(own)).toThrow(expect.objectContaining({ name: "OutOfMemoryError", code: "memoryLimit" }));
    } finally {
      setMemoryLimit(null);
    }
  });

  test("a file larger than its directory entry is not inflated beyond that size", () => {
    const own = fileOf(archiveOf([{ name: "a.npy", packed: megabytes, size: 100 }]));
    expect(() => io.loadNpz(own)).toThrow(expect.objectContaining({ name: "FileFormatError", code: "sizeDiffers" }));
  });

  test("overlapping files are rejected", () => {
    const packed = deflateRawSync(Buffer.alloc(1000));
    const first = { name: "a.npy", packed, size: 1000 };
    for (const more of [
      [{ ...first, name: "b.npy", at: 0 }],
      [
        { ...first, name: "b.npy" },
        { ...first, name: "c.npy", at: 0 },
      ],
    ]) {
      const own = fileOf(archiveOf([first, ...more]));
      expect(() => io.loadNpz(own)).toThrow(
        expect.objectContaining({ code: "badArchive", message: expect.stringMatching(/do not overlap/) }),
      );
    }
  });

  test("an archive of 60,000 names is read, and a repeated name is rejected", () => {
    const header = Buffer.concat(encodeArray("test", zeros([0])));
    const packed = deflateRawSync(header);
    const crc = Bun.hash.crc32(header);
    const files = Array.from({ length: 60_000 }, (_, at) => ({ name: `${at}.npy`, packed, size: header.length, crc }));
    expect(Object.keys(io.loadNpz(fileOf(archiveOf(files)))).length).toBe(60_000);
    const twice = fileOf(archiveOf([...files, files[0]]));
    expect(() => io.loadNpz(twice)).toThrow(expect.objectContaining({ message: expect.stringMatching(/0.npy twice/) }));
  });
});
