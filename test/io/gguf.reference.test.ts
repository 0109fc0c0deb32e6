/** GGUF files of the `gguf` package: read bit by bit, written again, and read by the package. */
import { afterAll, describe, expect, test } from "bun:test";
import { copyFileSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { presentPython, quantAlone } from "../../scripts/fixtures/environment.ts";
import { DTypeError, FileFormatError } from "../../src/core/errors.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { dequantize, io, ones, type QuantizedTensor, quantize, Tensor, zeros } from "../../src/index.ts";
import { gaps, writeGaps } from "../ops/run.ts";
import { testFolder } from "../support/folder.ts";
import { bytesIn } from "./bytes.ts";

interface Content {
  readonly alignment: number;
  readonly fields: Readonly<Record<string, { types: string[]; value: unknown }>>;
  readonly tensors: Readonly<Record<string, { type: string; shape: number[]; sha256: string }>>;
}

const fixtures = join(packageRoot, "test", "fixtures", "gguf");
const contents = JSON.parse(readFileSync(join(fixtures, "contents.json"), "utf8")) as Record<string, Content>;
const fixture = (name: string) => join(fixtures, `${name}.gguf`);
const folder = testFolder("gguf");
afterAll(writeGaps);

const whole = Object.keys(contents).filter((name) => !name.startsWith("split"));
const unheld = ["int16", "iq4_xs"];

const sha256 = (bytes: Uint8Array) => new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
const bytesOf = (own: Tensor | QuantizedTensor) => bytesIn(Tensor.isTensor(own) ? own : own.parts.packed);

/** Returns a value as Python's JSON writes it. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "bigint") return value;
  return value >= 2n ** 53n || value <= -(2n ** 53n) ? String(value) : Number(value);
}

/** Types and value as in the package, which does not know the element type of an empty array. */
const field = (own: io.GgufValue) => ({
  types: own.type === "array" ? ["array", ...(own.value.length > 0 ? [own.of] : [])] : [own.type],
  value: plain(own.value),
});

describe.each(whole)("the file %s.gguf is read as by the package gguf", (name) => {
  const { fields, tensors } = contents[name];
  const path = fixture(name);

  test("the metadata equals that of the package", () => {
    using file = io.openGguf(path);
    expect(Object.keys(file.metadata)).toEqual(Object.keys(fields));
    for (const key of Object.keys(fields)) expect([key, field(file.metadata[key])]).toEqual([key, fields[key]]);
    expect(file.version).toBe(name === "version2" ? 2 : 3);
  });

  test("the tensors equal those of the package, bit for bit", () => {
    using file = io.openGguf(path);
    expect(file.names).toEqual(Object.keys(tensors));
    for (const each of file.names) {
      const { type, shape, sha256: hash } = tensors[each];
      expect([each, file.info(each).type.toUpperCase(), file.info(each).shape]).toEqual([
        each,
        type.toUpperCase(),
        shape,
      ]);
      if (unheld.includes(each)) continue;
      const own = file.tensor(each);
      expect([each, own.shape, sha256(bytesOf(own))]).toEqual([each, shape, hash]);
      expect(file.info(each).byteLength).toBe(bytesOf(own).byteLength);
    }
  });

  test("the file is written again with the same metadata and tensors", async () => {
    using file = io.openGguf(path);
    const held = file.names.filter((each) => !unheld.includes(each));
    const loaded = Object.fromEntries(held.map((each) => [each, file.tensor(each)]));
    const copy = folder.file(`${name}.gguf`);
    await io.saveGguf(copy, loaded, { metadata: file.metadata, alignment: contents[name].alignment });
    using again = io.openGguf(copy);
    const isQuantized = Object.values(loaded).some((own) => !Tensor.isTensor(own));
    const version = isQuantized ? { "general.quantization_version": { type: "uint32", value: 2 } } : {};
    expect(again.metadata as object).toEqual({ ...file.metadata, ...version });
    expect(again.names).toEqual(held);
    for (const each of held) expect([each, sha256(bytesOf(again.tensor(each)))]).toEqual([each, tensors[each].sha256]);
  });
});

test("a file without blocks is written with the package's bytes", async () => {
  const copy = folder.file("nothing.copy.gguf");
  await io.saveGguf(copy, {}, { metadata: { "general.architecture": "llama" } });
  expect(readFileSync(copy).equals(readFileSync(fixture("nothing")))).toBe(true);
});

test("types that tensors can't have are errors when they are read", () => {
  using file = io.openGguf(fixture("types"));
  for (const name of unheld) expect(() => file.tensor(name)).toThrow(DTypeError);
  expect(() => file.tensor("iq4_xs")).toThrow('tensor "iq4_xs" has type iq4_xs, which is not supported');
});

test("blocks become quantized tensors; large ones are mapped, and outlive the file", () => {
  const path = folder.file("mapped.gguf");
  copyFileSync(fixture("aligned"), path);
  const file = io.openGguf(path);
  const w = file.tensor("long") as QuantizedTensor;
  file.close();
  rmSync(path);
  expect(String(w)).toBe("QuantizedTensor q8_0[300, 256], 81600 bytes, 8.5 bits a value, dequantizes to float32");
  expect(sha256(bytesOf(w))).toBe(contents["aligned"].tensors["long"].sha256);
  expect(dequantize(w).std().item()).toBeCloseTo(1, 2); // the package packs random normal numbers
  expect(() => file.tensor("long")).toThrow("was used after close()");
});

describe("a model in several files is read as one", () => {
  const split = (number: number) => fixture(`split-0000${number}-of-00003`);

  test.each([1, 2, 3])("a model in several files is opened through its file %d", (number) => {
    using file = io.openGguf(split(number));
    expect(file.names).toEqual(["t0", "t1", "t2", "t3", "t4"]);
    expect(file.metadata["general.architecture"]).toEqual({ type: "string", value: "llama" });
    for (const [at, name] of file.names.entries()) {
      const own = file.tensor(name) as Tensor;
      expect([own.shape, own.dataSync().every((value) => value === at)]).toEqual([[2, 3 + at], true]);
      expect(file.info(name).shape).toEqual([2, 3 + at]);
    }
    expect(() => file.tensor("t5")).toThrow(FileFormatError);
  });

  test("a model in several files is rejected if a file is missing, misnamed or from another model", () => {
    const at = (number: number, of = 3) => folder.file(`m-0000${number}-of-0000${of}.gguf`);
    const code = (path: string) => {
      try {
        io.openGguf(path).close();
      } catch (error) {
        return (error as FileFormatError).code;
      }
      return "read";
    };
    copyFileSync(split(1), at(1));
    copyFileSync(split(2), at(2));
    expect(code(at(1))).toBe("missingShard");
    copyFileSync(split(2), at(3));
    expect(code(at(1))).toBe("invalidSplit");
    copyFileSync(split(3), at(3));
    expect(code(at(1))).toBe("read");
    copyFileSync(split(1), folder.file("other.gguf"));
    expect(code(folder.file("other.gguf"))).toBe("invalidSplit");
    copyFileSync(split(1), at(1, 2));
    expect(code(at(1, 2))).toBe("invalidSplit");
  });
});

describe("saveGguf", () => {
  const path = folder.file("saved.gguf");

  test("saveGguf writes plain values with types that can hold them", async () => {
    const metadata = {
      a: 3,
      b: -3,
      c: 0.5,
      d: "text",
      e: true,
      f: 5n,
      g: -5n,
      h: ["x"],
      i: [1, -1],
      j: [1, 0.5],
      k: [],
    };
    await io.saveGguf(path, {}, { metadata });
    using file = io.openGguf(path);
    expect(Object.fromEntries(Object.entries(file.metadata).map(([key, own]) => [key, own.type]))).toEqual({
      a: "uint32",
      b: "int32",
      c: "float32",
      d: "string",
      e: "bool",
      f: "uint64",
      g: "int64",
      h: "array",
      i: "array",
      j: "array",
      k: "array",
    });
    expect(Object.values(file.metadata).map(({ value }) => value as unknown)).toEqual(Object.values(metadata));
    expect(file.metadata["i"]).toMatchObject({ of: "int32" });
    expect(file.metadata["j"]).toMatchObject({ of: "float32" });
  });

  test("saveGguf keeps arrays of arrays", async () => {
    const inner = { type: "array", of: "uint8", value: [1, 2] } as const;
    const value: io.GgufValue = { type: "array", of: "array", value: [inner, inner] };
    await io.saveGguf(path, {}, { metadata: { nested: value } });
    using file = io.openGguf(path);
    expect(file.metadata["nested"]).toEqual(value);
  });

  test.each([
    ["a number beyond its type", { x: { type: "uint8", value: 256 } }],
    ["a text that is not a number", { x: { type: "uint32", value: "3" } }],
    ["a type that there is not", { x: { type: "uint128", value: 3 } }],
    ["a text that is no UTF-16", { x: "\ud800" }],
    ["an object", { x: {} }],
    ["null", { x: null }],
    ["a list of texts and numbers", { x: [1, "a"] }],
    ["an array without a type", { x: { type: "array", value: [1] } }],
    ["a fraction as an integer", { x: { type: "int64", value: 1.5 } }],
  ])("saveGguf rejects %s as metadata", (_, metadata) => {
    expect(io.saveGguf(path, {}, { metadata: metadata as Record<string, string> })).rejects.toMatchObject({
      code: "invalidMetadata",
    });
  });

  test("saveGguf rejects values that the format can't represent", async () => {
    const code = (tensors: object) => io.saveGguf(path, tensors as Record<string, Tensor>).catch((error) => error.code);
    expect(await code({ x: zeros([1], { dtype: "bool" }) })).toBe("unsupportedDType");
    expect(await code({ x: quantize(ones([1, 64])) })).toBe("unsupportedDType");
    expect(await code({ x: zeros([1, 1, 1, 1, 1]) })).toBe("tooManyAxes");
    expect(await code({ x: 3 })).toBe("notATensor");
    const gone = zeros([2]);
    gone.dispose();
    expect(await code({ x: gone })).toBe("disposed");
  });

  test("saveGguf accepts views, and tensors that are disposed of meanwhile", async () => {
    const x = zeros([3, 2]).add(1);
    const saved = io.saveGguf(path, { x: x.transpose(0, 1) });
    x.dispose();
    await saved;
    using file = io.openGguf(path);
    expect((file.tensor("x") as Tensor).toArray()).toEqual([
      [1, 1, 1],
      [1, 1, 1],
    ]);
  });
});

const python = presentPython(quantAlone);
if (python === undefined) gaps.push("GGUF read by the Python package: it is not here; `bun run fixtures` brings it");

test.if(python !== undefined)("the Python package reads files that were written here", async () => {
  const names = whole.filter((name) => name !== "version2");
  const paths = await Promise.all(
    names.map(async (name) => {
      using file = io.openGguf(fixture(name));
      const held = file.names.filter((each) => !unheld.includes(each));
      const path = folder.file(`${name}.python.gguf`);
      const tensors = Object.fromEntries(held.map((each) => [each, file.tensor(each)]));
      await io.saveGguf(path, tensors, { metadata: file.metadata, alignment: contents[name].alignment });
      return path;
    }),
  );
  const script = join(packageRoot, "scripts", "fixtures", "gguf_files.py");
  const { stdout, stderr, exitCode } = Bun.spawnSync([python!, script, "read", ...paths]);
  expect([exitCode, stderr.toString()]).toEqual([0, ""]);
  const read = JSON.parse(stdout.toString()) as Content[];
  for (const [index, name] of names.entries()) {
    const expected = Object.entries(contents[name].tensors).filter(([each]) => !unheld.includes(each));
    expect(read[index].tensors).toEqual(Object.fromEntries(expected));
    expect(read[index].fields).toMatchObject(contents[name].fields);
  }
});
