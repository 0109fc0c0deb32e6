/** Invalid files: each error has the file, the tensor, the expected and the actual value. */
import { describe, expect, test } from "bun:test";
import { mkdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import fc from "fast-check";
import { DisposedError, DTypeError, FileError, FileFormatError } from "../../src/core/errors.ts";
import { io } from "../../src/index.ts";
import { zeros } from "../../src/ops/index.ts";
import { testFolder } from "../support/folder.ts";
import { processorSeconds } from "../support/processor_time.ts";

const folder = testFolder("bad");

/** A file with this header text, or bytes, and as many bytes of data. */
function fileOf(header: string | Uint8Array, dataBytes = 0, headerBytes?: number | bigint): string {
  const text = Buffer.from(header as string);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(headerBytes ?? text.byteLength));
  const path = folder.file("model.safetensors");
  writeFileSync(path, Buffer.concat([length, text, Buffer.alloc(dataBytes)]));
  return path;
}

const a = (rest: string) => `{"a":${rest}}`;
const f32 = (shape: string, offsets: string) => `{"dtype":"F32","shape":${shape},"data_offsets":${offsets}}`;

function refused(path: string, operation: () => unknown = () => io.openSafetensors(path)): FileFormatError {
  try {
    operation();
  } catch (error) {
    expect(error).toBeInstanceOf(FileFormatError);
    expect((error as FileFormatError).path).toBe(path);
    expect((error as FileFormatError).message).toContain(path);
    return error as FileFormatError;
  }
  throw new Error("it was taken");
}

interface BadHeader {
  readonly title: string;
  readonly header: string | Uint8Array;
  readonly data?: number;
  readonly length?: number | bigint;
  readonly code: string;
  readonly says: string;
  readonly tensor?: string;
}

const bad: readonly BadHeader[] = [
  {
    title: "a header of 2^63 bytes",
    header: "{}",
    length: 2n ** 63n,
    code: "headerTooLong",
    says: "9223372036854775808",
  },
  {
    title: "a header over 100 MB",
    header: "{}",
    length: 100_000_001,
    code: "headerTooLong",
    says: "at most 100000000",
  },
  {
    title: "a header longer than the file",
    header: "{}",
    length: 3,
    code: "truncated",
    says: "header of 3 bytes, got a file of 10",
  },
  {
    title: "lists 50,000 deep",
    header: a(`${"[".repeat(50_000)}${"]".repeat(50_000)}`),
    code: "invalidHeader",
    says: "got a value nested more than 128 deep",
  },
  {
    title: "objects 129 deep",
    header: `${'{"a":'.repeat(129)}1${"}".repeat(129)}`,
    code: "invalidHeader",
    says: "got a value nested more than 128 deep",
  },
  {
    title: "metadata 50,000 deep",
    header: `{"__metadata__":${'{"x":'.repeat(50_000)}1${"}".repeat(50_000)}}`,
    code: "invalidHeader",
    says: "got a value nested more than 128 deep",
  },
  {
    title: "five million brackets that nothing closes",
    header: a("[".repeat(5_000_000)),
    code: "invalidHeader",
    says: "got a value nested more than 128 deep",
  },
  {
    title: "brackets in a string, which nest nothing",
    header: a(`"${"[{".repeat(50_000)}"`),
    code: "invalidEntry",
    says: 'expected an object, got "[{[{',
    tensor: "a",
  },
  {
    title: "a string that nothing ends",
    header: `{"${'\\"'.repeat(50_000)}`,
    code: "invalidHeader",
    says: "to be JSON",
  },
  {
    title: "numbers beyond all numbers",
    header: a(f32("[1e400]", "[0,1e400]")),
    code: "invalidEntry",
    says: 'got ["Infinity"]',
    tensor: "a",
  },
  {
    title: "a shape of a million sizes beyond all numbers",
    header: a(f32(`[${"9007199254740991,".repeat(1_000_000)}1]`, "[0,4]")),
    data: 4,
    code: "sizeDiffers",
    says: "has more elements than a file can hold",
    tensor: "a",
  },
  {
    title: "a key twice, one of them in escapes, far apart",
    header: `{"x\\u0079":${f32("[1]", "[0,4]")},"__metadata__":{"xy":"xy"},"xy"\t:${f32("[1]", "[4,8]")}}`,
    data: 8,
    code: "duplicateKey",
    says: '"xy" more than once',
  },
  { title: "an empty header", header: "", code: "invalidHeader", says: 'start with "{"' },
  {
    title: "a header that is a list",
    header: "[]",
    code: "invalidHeader",
    says: 'start with "{", got "[]"',
  },
  { title: "a header that begins with a space", header: " {}", code: "invalidHeader", says: 'start with "{"' },
  { title: "invalid JSON", header: "{'a'}", code: "invalidHeader", says: "to be JSON" },
  { title: "invalid UTF-8", header: Uint8Array.of(0x7b, 0xff, 0x7d), code: "invalidHeader", says: "to be UTF-8" },
  {
    title: "a tensor twice",
    header: `{"a":${f32("[1]", "[0,4]")},"\\u0061":${f32("[1]", "[0,4]")}}`,
    data: 4,
    code: "duplicateKey",
    says: '"a" more than once',
  },
  {
    title: "a field twice",
    header: a('{"dtype":"F32","dtype":"I32","shape":[1],"data_offsets":[0,4]}'),
    data: 4,
    code: "duplicateKey",
    says: '"dtype" more than once',
  },
  { title: "a list as metadata", header: '{"__metadata__":["x"]}', code: "invalidHeader", says: 'got ["x"]' },
  {
    title: "metadata that is not a string",
    header: '{"__metadata__":{"step":3}}',
    code: "invalidHeader",
    says: 'only strings, got another value for "step"',
  },
  { title: "an entry that is not an object", header: a("3"), code: "invalidEntry", says: "got 3", tensor: "a" },
  {
    title: "no dtype",
    header: a('{"shape":[1],"data_offsets":[0,4]}'),
    data: 4,
    code: "invalidEntry",
    says: "got nothing",
    tensor: "a",
  },
  {
    title: "a shape with a fraction",
    header: a(f32("[1.5]", "[0,6]")),
    data: 6,
    code: "invalidEntry",
    says: "got [1.5]",
    tensor: "a",
  },
  {
    title: "a negative size",
    header: a(f32("[-1]", "[0,4]")),
    data: 4,
    code: "invalidEntry",
    says: "got [-1]",
    tensor: "a",
  },
  {
    title: "offsets backwards",
    header: a(f32("[1]", "[4,0]")),
    data: 4,
    code: "invalidOffsets",
    says: "got [4,0]",
    tensor: "a",
  },
  { title: "one offset", header: a(f32("[1]", "[0]")), data: 4, code: "invalidOffsets", says: "got [0]", tensor: "a" },
  {
    title: "no offsets",
    header: a('{"dtype":"F32","shape":[1]}'),
    data: 4,
    code: "invalidOffsets",
    says: "got nothing",
    tensor: "a",
  },
  {
    title: "more bytes than the shape",
    header: a(f32("[2]", "[0,12]")),
    data: 12,
    code: "sizeDiffers",
    says: "expected data_offsets to span 8 bytes for F32[2], got 12",
    tensor: "a",
  },
  {
    title: "a size beyond all numbers",
    header: a(f32("[9007199254740991,9007199254740991]", "[0,4]")),
    data: 4,
    code: "sizeDiffers",
    says: "324518553658426654725561982648324 bytes",
    tensor: "a",
  },
  {
    title: "elements that end within a byte",
    header: a('{"dtype":"F4","shape":[3],"data_offsets":[0,2]}'),
    data: 2,
    code: "misaligned",
    says: "12 bits",
    tensor: "a",
  },
  {
    title: "tensors that overlap",
    header: `{"a":${f32("[2]", "[0,8]")},"b":${f32("[1]", "[4,8]")}}`,
    data: 8,
    code: "invalidOffsets",
    says: "starts at byte 4 and overlaps",
    tensor: "b",
  },
  {
    title: "a hole",
    header: `{"a":${f32("[1]", "[0,4]")},"b":${f32("[1]", "[8,12]")}}`,
    data: 12,
    code: "invalidOffsets",
    says: "starts at byte 8 and leaves a gap",
    tensor: "b",
  },
  {
    title: "a hole at the beginning",
    header: a(f32("[1]", "[4,8]")),
    data: 8,
    code: "invalidOffsets",
    says: "leaves a gap",
    tensor: "a",
  },
  {
    title: "data cut off",
    header: a(f32("[2]", "[0,8]")),
    data: 7,
    code: "truncated",
    says: "ends at byte 8 after the header, but the file has only 7",
    tensor: "a",
  },
  {
    title: "data of nobody at the end",
    header: a(f32("[1]", "[0,4]")),
    data: 9,
    code: "trailingBytes",
    says: "expected 4 bytes of tensors after the header, got 9",
  },
];

describe("a damaged safetensors file", () => {
  test.each(bad)("a file with $title is rejected", ({ header, data, length, code, says, tensor }) => {
    const error = refused(fileOf(header, data, length));
    expect([error.code, error.operation, error.tensor]).toEqual([code, "openSafetensors", tensor]);
    expect(error.message).toContain(says);
    if (tensor !== undefined) expect(error.message).toContain(`tensor "${tensor}"`);
  });

  test.each(bad)("reading a file with $title ends in seconds", ({ header, data, length }) => {
    const path = fileOf(header, data, length);
    expect(processorSeconds(() => void refused(path))).toBeLessThan(10);
  });

  test("a name of a megabyte is rejected with a short message", () => {
    const name = "x".repeat(1_000_000);
    const error = refused(fileOf(`{"${name}":1}`));
    expect(error.tensor).toBe(name);
    expect(error.message.length).toBeLessThan(500);
  });

  test("equal keys in different objects, and braces in names, are read", () => {
    const header = `{"__metadata__":{"a{":"}\\"[","b":""},"a{":${f32("[1]", "[0,4]")},"b":${f32("[1]", "[4,8]")}}`;
    using file = io.openSafetensors(fileOf(header, 8));
    expect(file.names).toEqual(["a{", "b"]);
    expect(file.metadata).toEqual({ "a{": '}"[', b: "" });
  });

  test("null as metadata, as MLX writes it, is read", () => {
    using file = io.openSafetensors(fileOf(`{"__metadata__":null,"a":${f32("[1]", "[0,4]")}}`, 4));
    expect([file.names, file.metadata]).toEqual([["a"], {}]);
  });

  test("a randomly modified header is read, or rejected with a typed error, at once", () => {
    const header = `{"__metadata__":{"format":"pt"},"a":${f32("[2,3]", "[0,24]")},"b":${f32("[]", "[24,28]")}}`;
    const parts = [
      "{",
      "}",
      "[",
      "]",
      '"',
      "\\",
      ",",
      ":",
      "1e400",
      "-0",
      "null",
      '{"a":'.repeat(200),
      "\u0000",
      '"a"',
    ];
    const change = (text: string, at: number, cut: number, part: number) =>
      text.slice(0, at % text.length) + parts[part % parts.length] + text.slice((at % text.length) + (cut % 4));
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(), fc.nat(), fc.nat()), { minLength: 1, maxLength: 4 }), (changes) => {
        const path = fileOf(
          changes.reduce((text, [at, cut, part]) => change(text, at, cut, part), header),
          28,
        );
        try {
          io.openSafetensors(path).close();
        } catch (error) {
          expect(error).toBeInstanceOf(FileFormatError);
        }
      }),
      { numRuns: 3000, seed: 1 },
    );
  });

  test("fewer bytes than the header's length are rejected", () => {
    const path = folder.file("short.safetensors");
    for (const bytes of [0, 7]) {
      writeFileSync(path, new Uint8Array(bytes));
      expect(refused(path)).toMatchObject({
        code: "truncated",
        message: expect.stringContaining(`expected at least 8 bytes, which hold the header's length, got ${bytes}`),
      });
    }
  });

  test("a file with an unknown dtype is read except for that tensor", () => {
    const path = fileOf(`{"a":{"dtype":"F2_E1","shape":[9],"data_offsets":[0,3]},"b":${f32("[1]", "[3,7]")}}`, 7);
    using file = io.openSafetensors(path);
    expect(() => file.tensor("a")).toThrow(DTypeError);
    expect(() => file.tensor("a")).toThrow(/expected tensor "a" to be one of .*, got F2_E1/);
    expect(file.tensor("b").toArray()).toEqual([0]); // the offset of b is not a multiple of a float32's size
  });
});

describe("an invalid path is reported", () => {
  test("a path that does not exist, is a folder without a model, or leads through a file, is an error", () => {
    const missing = folder.file("missing.safetensors");
    expect(() => io.openSafetensors(missing)).toThrow(FileError);
    expect(() => io.openSafetensors(missing)).toThrow(`${missing}: no such file or folder (ENOENT)`);
    mkdirSync(folder.file("empty"), { recursive: true });
    expect(() => io.openSafetensors(folder.file("empty"))).toThrow(
      "expected the folder to have model.safetensors or model.safetensors.index.json",
    );
    const through = `${fileOf("{}")}/x`;
    expect(() => io.openSafetensors(through)).toThrow("a part of the path is a file");
  });

  test("the error for a missing tensor suggests the most similar name", () => {
    using file = io.openSafetensors(fileOf(`{"wte.weight":${f32("[1]", "[0,4]")}}`, 4));
    const error = refused(file.path, () => file.tensor("wte.wieght"));
    expect([error.code, error.tensor]).toEqual(["missingTensor", "wte.wieght"]);
    expect(error.message).toContain('did you mean "wte.weight"?');
  });
});

describe("an open safetensors file", () => {
  test("using a closed file is an error; its tensors stay valid", () => {
    const path = fileOf(a(f32("[40000]", "[0,160000]")), 160_000);
    const file = io.openSafetensors(path);
    const tensor = file.tensor("a");
    file.close();
    file.close();
    expect(() => file.tensor("a")).toThrow(DisposedError);
    rmSync(path);
    expect(tensor.sum().item()).toBe(0);
  });

  test("a file that is truncated while it is open is rejected before a missing page is accessed", () => {
    const path = fileOf(a(f32("[40000]", "[0,160000]")), 160_000);
    using file = io.openSafetensors(path);
    truncateSync(path, 80_000);
    expect(refused(path, () => file.tensor("a")).code).toBe("truncated");
  });
});

describe("an index of several files is checked", () => {
  const index = folder.file("model.safetensors.index.json");
  const write = (json: unknown) => writeFileSync(index, typeof json === "string" ? json : JSON.stringify(json));

  test("an index loads the tensors of its files, opening each file at its first use", async () => {
    rmSync(folder.file("model.safetensors"), { force: true }); // it would be read instead
    await io.saveSafetensors(folder.file("one.safetensors"), { a: zeros([2]), b: zeros([3]) });
    await io.saveSafetensors(folder.file("two.safetensors"), { c: zeros([4]) });
    write({
      metadata: { total_size: 36 },
      weight_map: { a: "one.safetensors", b: "one.safetensors", c: "two.safetensors" },
    });
    using sharded = io.openSafetensors(folder.path);
    expect([sharded.names, sharded.metadata]).toEqual([["a", "b", "c"], { total_size: "36" }]);
    expect(Object.values(sharded.tensors()).map(({ size }) => size)).toEqual([2, 3, 4]);
    expect(sharded.info("c")).toEqual({ dtype: "F32", shape: [4], byteLength: 16 });
    writeFileSync(folder.file("two.safetensors"), "broken");
    using lazy = io.openSafetensors(index);
    expect(lazy.tensor("a").size).toBe(2);
    expect(refused(folder.file("two.safetensors"), () => lazy.tensor("c")).code).toBe("truncated");
  });

  test.each([
    ["invalid JSON", "{", "invalidIndex", "expected JSON"],
    ["a list 50,000 deep", `${"[".repeat(50_000)}${"]".repeat(50_000)}`, "invalidIndex", "nested more than 128 deep"],
    ["no map", { metadata: {} }, "invalidIndex", "expected weight_map"],
    [
      "a name twice",
      '{"weight_map":{"a":"one.safetensors","a":"two.safetensors"}}',
      "duplicateKey",
      '"a" more than once',
    ],
    [
      "a path out of the folder",
      { weight_map: { a: "../secret.safetensors" } },
      "invalidIndex",
      'got "../secret.safetensors"',
    ],
    ["a file that is not there", { weight_map: { a: "three.safetensors" } }, "missingShard", "three.safetensors"],
  ])("an index with %s is rejected", (_, json, code, says) => {
    write(json);
    const error = refused(index);
    expect(error.code).toBe(code);
    expect(error.message).toContain(says);
  });

  test("an index with a tensor that its file lacks is rejected when that tensor is loaded", () => {
    write({ weight_map: { absent: "one.safetensors" } });
    using sharded = io.openSafetensors(index);
    expect(refused(folder.file("one.safetensors"), () => sharded.tensor("absent")).code).toBe("missingTensor");
    expect(refused(index, () => sharded.tensor("absnt")).message).toContain('did you mean "absent"?');
  });
});
