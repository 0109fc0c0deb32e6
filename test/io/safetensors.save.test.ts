/** Saved files round-trip, and a failed write changes nothing. */
import { describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import fc from "fast-check";
import { ArgumentError, DisposedError, FileError } from "../../src/core/errors.ts";
import { io, memory, withBackend } from "../../src/index.ts";
import { arange, tensor, zeros } from "../../src/ops/index.ts";
import { dtypeFacts, dtypes } from "../../src/tensor/dtype.ts";
import { elementCount } from "../../src/tensor/shape.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { tested } from "../ops/run.ts";
import { testFolder } from "../support/folder.ts";
import { bunWords } from "../support/program.ts";
import { bytesIn, tensorOf } from "./bytes.ts";

const folder = testFolder("save");

const tensors: fc.Arbitrary<Tensor> = fc
  .record({
    dtype: fc.constantFrom(...dtypes),
    shape: fc.oneof(fc.array(fc.nat(4), { maxLength: 8 }), fc.constant([9000, 2])),
    seed: fc.nat(255),
  })
  .filter(({ shape }) => elementCount(shape) < 20_000)
  .map(({ dtype, shape, seed }) => {
    const bytes = new Uint8Array(elementCount(shape) * dtypeFacts[dtype].bytes);
    for (let at = 0; at < bytes.length; at++) bytes[at] = dtype === "bool" ? at & 1 : (at * 167 + seed) & 255;
    return tensorOf(dtype, shape, bytes);
  });
const names = fc.string({ unit: "grapheme", maxLength: 12 }).filter((name) => name !== "__metadata__");
const texts = fc.dictionary(fc.string({ unit: "grapheme" }), fc.string({ unit: "grapheme" }), { maxKeys: 3 });

describe("saveSafetensors", () => {
  test("any tensors with any names and metadata round-trip bit-identically", async () => {
    const path = folder.file("any.safetensors");
    const models = fc.array(fc.tuple(names, tensors), { maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(models, texts, async (list, metadata) => {
        const model = Object.fromEntries(list);
        await io.saveSafetensors(path, model, { metadata });
        using file = io.openSafetensors(path);
        expect(file.metadata).toEqual(metadata);
        expect([...file.names].sort()).toEqual(Object.keys(model).sort());
        for (const [name, { dtype, shape }] of Object.entries(model)) {
          const read = file.tensor(name);
          expect([read.dtype, [...read.shape]]).toEqual([dtype, [...shape]]);
          expect(Buffer.compare(bytesIn(read), bytesIn(model[name]))).toBe(0);
        }
      }),
      { numRuns: 60 },
    );
  });

  test.each(tested)("views of any strides from %s are written as their elements", async (backend) => {
    const path = folder.file(`${backend}.safetensors`);
    const views = withBackend(backend, () => {
      const x = arange(24, { dtype: "float32" }).reshape([2, 3, 4]);
      const half = x.to("bfloat16");
      return {
        t: x.transpose(0, 2),
        slice: half.slice({ dim: 2, start: 1, end: 4, step: 2 }),
        wide: tensor([[7]]).expand([3, 5]),
        x,
      };
    });
    await io.saveSafetensors(path, views);
    for (const [name, read] of Object.entries(io.loadSafetensors(path)))
      expect([name, read.toArray()]).toEqual([name, views[name as keyof typeof views].toArray()]);
  });

  test("tensors may be disposed of while they are written", async () => {
    const path = folder.file("disposed.safetensors");
    const x = arange(6_000_000, { dtype: "float32" });
    const row = x.reshape([2, 3_000_000]).transpose(0, 1);
    const written = io.saveSafetensors(path, { x, row });
    x.dispose();
    row.dispose();
    await written;
    const read = io.loadSafetensors(path);
    expect(read["x"].slice({ start: 5_999_999, end: 6_000_000 }).item()).toBe(5_999_999);
    expect(read["row"].slice({ start: 1, end: 2 }).toArray()).toEqual([[1, 3_000_001]]);
  });

  test("a large tensor is mapped, not read, and changes stay in the process", async () => {
    const path = folder.file("mapped.safetensors");
    await io.saveSafetensors(path, { x: arange(2_000_000, { dtype: "float32" }) });
    Bun.gc(true);
    const { liveBytes } = memory().host;
    const x = io.loadSafetensors(path)["x"];
    expect(memory().host.liveBytes - liveBytes).toBeLessThan(1_000_000);
    const before = readFileSync(path);
    x.add_(1);
    expect(x.slice({ start: 0, end: 2 }).toArray()).toEqual([1, 2]);
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  test.each([
    ["a value that is not a tensor", { a: [1, 2] }, {}, ArgumentError, 'expected "a" to be a tensor, got [1, 2]'],
    ["the name of the texts", { __metadata__: zeros([1]) }, {}, ArgumentError, "cannot be named __metadata__"],
    ["texts that are none", {}, { step: 3 }, ArgumentError, 'expected metadata "step" to be a string, got number'],
  ])("%s is rejected, and no file is written", async (_, model, metadata, kind, says) => {
    const path = folder.file("refused.safetensors");
    const save = io.saveSafetensors(path, model as Record<string, Tensor>, {
      metadata: metadata as Record<string, string>,
    });
    expect(save).rejects.toThrow(kind);
    expect(save).rejects.toThrow(says);
    await save.catch(() => undefined);
    expect(folder.names()).not.toContain("refused.safetensors");
  });

  test("a disposed tensor is rejected", async () => {
    const x = zeros([2]);
    x.dispose();
    expect(io.saveSafetensors(folder.file("no.safetensors"), { x })).rejects.toThrow(DisposedError);
  });

  test("a folder that does not exist is an error", async () => {
    const path = folder.file("absent", "model.safetensors");
    const save = io.saveSafetensors(path, {});
    expect(save).rejects.toThrow(FileError);
    expect(save).rejects.toThrow("[saveSafetensors]");
    expect(save).rejects.toThrow("no such file or folder (ENOENT); nothing was written");
  });
});

describe("a failed write leaves the old file", () => {
  const program = (path: string) => `
    import { io, zeros } from ${JSON.stringify(`${import.meta.dir}/../../src/index.ts`)};
    try { await io.saveSafetensors(${JSON.stringify(path)}, { a: zeros([1_000_000]) }); console.log("saved"); }
    catch (error) { console.log(error.name, error.code, error.message); }`;

  test("a failure at a limit of file sizes leaves the old file and nothing else", async () => {
    mkdirSync(folder.file("limited"));
    const path = folder.file("limited", "model.safetensors");
    await io.saveSafetensors(path, { a: zeros([3]) });
    const before = readFileSync(path);
    const limited = ["bash", "-c", 'ulimit -f 1000; exec "$@"', "bash"];
    const { stdout } = Bun.spawnSync([...limited, ...bunWords, "-e", program(path)]);
    expect(stdout.toString()).toStartWith("FileError fileTooLarge [saveSafetensors]");
    expect(stdout.toString()).toContain("(EFBIG); nothing was written, and an existing file is unchanged");
    expect(readFileSync(path).equals(before)).toBe(true);
    expect([...new Bun.Glob("*").scanSync({ cwd: folder.file("limited"), dot: true })]).toEqual(["model.safetensors"]);
  });

  test("saving removes temporary files of killed writers, and nothing else", async () => {
    const path = folder.file("stale", "model.safetensors");
    mkdirSync(folder.file("stale"));
    const dead = Bun.spawnSync(["true"]).pid;
    // The process that writes the last of these files is alive.
    const others = ["notes.tmp", ".hidden", `.model.safetensors.${process.ppid}.0.tmp`];
    for (const name of [...others, `.model.safetensors.${dead}.0.tmp`, `.other.${process.pid}.9999.tmp`])
      writeFileSync(folder.file("stale", name), "half");
    await io.saveSafetensors(path, { a: zeros([3]) });
    const names = [...new Bun.Glob("*").scanSync({ cwd: folder.file("stale"), dot: true })].sort();
    expect(names).toEqual([...others, "model.safetensors"].sort());
  });

  test("a folder without write permission is an error", async () => {
    const folder = process.platform === "darwin" ? "/System" : "/sys/kernel";
    const error = await io.saveSafetensors(`${folder}/model.safetensors`, {}).catch((cause: unknown) => cause);
    expect(error).toMatchObject({ name: "FileError", code: "notPermitted" });
  });

  test("the file's permissions match the user's other files", async () => {
    const path = folder.file("mode.safetensors");
    await io.saveSafetensors(path, {});
    writeFileSync(folder.file("other"), "");
    expect(statSync(path).mode).toBe(statSync(folder.file("other")).mode);
    rmSync(path);
  });
});
