/** Checkpoints are restored exactly; damaged ones are detected, reported and skipped. */
import { afterAll, afterEach, describe, expect, spyOn, test } from "bun:test";
import {
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { ArgumentError, CheckpointError, FileError, FileFormatError } from "../../src/core/errors.ts";
import { forgetWarnings } from "../../src/core/warn.ts";
import { Generator, io, optim, randn, type Tensor, tensor, zeros } from "../../src/index.ts";
import { testFolder } from "../support/folder.ts";

const root = testFolder("checkpoint");
let made = 0;
const newFolder = () => root.file(String(made++));
const warned = spyOn(console, "warn").mockImplementation(() => undefined);
afterEach(() => {
  warned.mockClear();
  forgetWarnings();
});
afterAll(() => warned.mockRestore());

const weights = () => ({
  "wte.weight": tensor([
    [1, -0],
    [Number.NaN, 4],
  ]),
  half: tensor([1.5, 2], { dtype: "bfloat16" }),
});
const save = (folder: string, step: number, options = {}) =>
  io.saveCheckpoint(folder, { model: { w: tensor([step, step + 1]) }, step }, options);
const names = (folder: string) => readdirSync(folder).sort();

/** Writes a checkpoint with this metadata and no tensors, with the right hash. */
function writeHashed(folder: string, metadata: Record<string, string>): string {
  const header = Buffer.from(JSON.stringify({ __metadata__: { sha256: "0".repeat(64), ...metadata } }));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  const file = Buffer.concat([length, header]);
  file.set(Buffer.from(new Bun.CryptoHasher("sha256").update(file).digest("hex")), file.indexOf("0".repeat(64)));
  const path = join(folder, "checkpoint-00000009.safetensors");
  writeFileSync(path, file);
  return path;
}

describe("saveCheckpoint and loadCheckpoint", () => {
  test("weights, step, random state, position and other values are restored", async () => {
    const folder = newFolder();
    const generator = new Generator(2n ** 63n + 1n);
    randn([3], { generator });
    const data = { epoch: 2, index: 7, key: 12345678901234567890n };
    const extra = {
      config: { lr: 6e-4, nothing: null, list: [1, [true, "x"]], $key: -0 },
      best: Number.POSITIVE_INFINITY,
    };
    const path = await io.saveCheckpoint(folder, { model: weights(), step: 100, generator, data, extra });
    expect(path).toBe(join(folder, "checkpoint-00000100.safetensors"));
    const loaded = await io.loadCheckpoint(folder);
    expect(loaded).toMatchObject({ path, step: 100, data, extra, optimizer: null, rejected: [] });
    expect(Object.keys(loaded.model)).toEqual(["wte.weight", "half"]);
    expect(loaded.model["wte.weight"].toArray()).toEqual([
      [1, -0],
      [Number.NaN, 4],
    ]);
    expect(loaded.model["half"].dtype).toBe("bfloat16");
    const next = randn([3], { generator }).toArray();
    expect(randn([3], { generator: new Generator(0).setState(loaded.generator!) }).toArray()).toEqual(next);
  });

  test("an optimizer resumes bit-identically", async () => {
    const run = (w: Tensor<"float32">) => {
      w.requiresGrad = true;
      const optimizer = new optim.AdamW([w], { lr: 0.1 });
      const step = () => {
        optimizer.zeroGrad();
        w.square().sum().backward();
        optimizer.step();
      };
      return { optimizer, step };
    };
    const w = tensor([1, 2, 3]);
    const first = run(w);
    first.step();
    const folder = newFolder();
    await io.saveCheckpoint(folder, { model: { w }, optimizer: first.optimizer, step: 1 });
    const loaded = await io.loadCheckpoint<{ optimizer: ReturnType<typeof first.optimizer.stateDict> }>(folder);
    const again = zeros([3]).copy_(loaded.model["w"]);
    const second = run(again);
    second.optimizer.loadStateDict(loaded.optimizer!);
    for (const each of [first, second]) each.step();
    expect([...again.dataSync()]).toEqual([...w.dataSync()]);
  });

  test("any tree round-trips through a checkpoint", async () => {
    const folder = newFolder();
    const leaf = fc.oneof(
      fc.double(),
      fc.string(),
      fc.boolean(),
      fc.constant(null),
      fc.bigInt(),
      fc.constant({ $tensor: "a" }),
    );
    const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
      tree: fc.oneof(
        { maxDepth: 4 },
        leaf,
        fc.array(tie("tree"), { maxLength: 4 }),
        fc.dictionary(fc.oneof(fc.string(), fc.constantFrom("$bigint", "$$", "__proto__", "0")), tie("tree"), {
          maxKeys: 4,
          noNullPrototype: true,
        }),
      ),
    }));
    await fc.assert(
      fc.asyncProperty(tree, async (extra) => {
        await io.saveCheckpoint(folder, { model: {}, step: 1, extra });
        expect((await io.loadCheckpoint(folder)).extra).toEqual(extra as never);
      }),
      { numRuns: 50 },
    );
  });

  test("trees nested more than 1000 deep are rejected by save and load", async () => {
    const nested = (depth: number): unknown => (depth === 0 ? 1n : [nested(depth - 1)]);
    const folder = newFolder();
    await io.saveCheckpoint(folder, { model: {}, step: 1, extra: nested(1000) });
    expect((await io.loadCheckpoint(folder)).extra).toEqual(nested(1000) as never);
    const endless: Record<string, unknown> = {};
    endless["self"] = endless;
    for (const extra of [nested(1001), endless])
      await expect(io.saveCheckpoint(folder, { model: {}, step: 2, extra })).rejects.toMatchObject({
        name: "ArgumentError",
        message: expect.stringContaining("expected extra to be nested at most 1000 deep, got more"),
      });
    // In a file, a bigint is an object, and so one level deeper than its list.
    const written = (depth: number) => {
      const lists = `${"[".repeat(depth)}{"$bigint":"1"}${"]".repeat(depth)}`;
      const state = `{"step":1,"model":{},"extra":${lists}}`;
      return writeHashed(folder, { format: "orchard-checkpoint", version: "1", state });
    };
    expect((await io.loadCheckpoint(written(1000))).extra).toEqual(nested(1000) as never);
    for (const depth of [1001, 50_000])
      await expect(io.loadCheckpoint(written(depth))).rejects.toMatchObject({
        name: "FileFormatError",
        code: "notACheckpoint",
        message: expect.stringContaining("nested more than 1002 deep"),
      });
  });

  test.each([
    ['{"step":-1,"model":{}}', "expected its step to be a whole number of at least 0, got -1"],
    ['{"step":"9","model":{}}', 'expected its step to be a whole number of at least 0, got "9"'],
    [
      '{"step":1,"model":{},"extra":{"$bigint":"1e3"}}',
      'expected the digits of a bigint in its training state, got "1e3"',
    ],
  ])("a state with the right hash and an invalid value is rejected: %s", async (state, message) => {
    const folder = newFolder();
    mkdirSync(folder);
    const path = writeHashed(folder, { format: "orchard-checkpoint", version: "1", state });
    const error = await io.loadCheckpoint(path).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(FileFormatError);
    expect((error as Error).message).toContain(message);
  });

  test("a tensor that occurs twice is saved once", async () => {
    const shared = zeros([50_000]);
    const path = await io.saveCheckpoint(newFolder(), { model: { a: shared, b: shared }, step: 1 });
    expect(statSync(path).size).toBeLessThan(210_000);
    expect((await io.loadCheckpoint(path)).model["b"].size).toBe(50_000);
  });

  test("a checkpoint is a safetensors file like any other", async () => {
    const path = await io.saveCheckpoint(newFolder(), { model: weights(), step: 3 });
    using file = io.openSafetensors(path);
    expect(file.names).toEqual(["model.wte.weight", "model.half"]);
  });

  test.each([
    [
      "a step with a fraction",
      { model: {}, step: 1.5 },
      {},
      "expected step to be a whole number of at least 0, got 1.5",
    ],
    ["none to keep", { model: {}, step: 1 }, { keep: 0 }, "expected keep to be a whole number of at least 1, got 0"],
    [
      "a function",
      { model: {}, step: 1, extra: { a: [() => 1] } },
      {},
      "expected extra.a.0 to be a number, string, boolean, bigint, null, tensor, array or plain object, got a function",
    ],
    ["an object of a class", { model: {}, step: 1, data: new Map() }, {}, "or plain object, got a Map"],
  ])("%s is rejected", async (_, content, options, says) => {
    const folder = newFolder();
    const error = await io.saveCheckpoint(folder, content, options).catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(ArgumentError);
    expect((error as Error).message).toContain(says);
    expect(root.names()).not.toContain(folder);
  });
});

describe("the folder of checkpoints", () => {
  test("saving keeps the last checkpoints, and every other file", async () => {
    const folder = newFolder();
    mkdirSync(folder);
    writeFileSync(join(folder, "log.jsonl"), "");
    for (const step of [5, 99_999_999, 100_000_000, 7]) await save(folder, step, { keep: 2 });
    expect(names(folder)).toEqual(["checkpoint-00000007.safetensors", "checkpoint-100000000.safetensors", "log.jsonl"]);
    expect((await io.loadCheckpoint(folder)).step).toBe(100_000_000);
  });

  test("a folder without a checkpoint, or that does not exist, is an error", async () => {
    const folder = newFolder();
    expect(io.loadCheckpoint(folder)).rejects.toThrow(FileError);
    mkdirSync(folder);
    const error = await io.loadCheckpoint(folder).catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(CheckpointError);
    expect(error).toMatchObject({
      code: "notFound",
      message: expect.stringContaining(`${folder} has no checkpoint`),
    });
  });
});

describe("a damaged checkpoint is rejected", () => {
  const good = newFolder();
  const content = { model: { w: zeros([100]), v: tensor([1, 2, 3]) }, step: 2, extra: { note: "x".repeat(200) } };

  /** A folder with a valid checkpoint of step 1, and one of step 2 that `change` has altered. */
  async function folderAfter(change: (path: string) => void): Promise<{ folder: string; path: string }> {
    const folder = newFolder();
    await save(folder, 1);
    const path = join(folder, "checkpoint-00000002.safetensors");
    copyFileSync(await io.saveCheckpoint(good, content), path);
    change(path);
    return { folder, path };
  }

  async function expectSkipped({ folder, path }: { folder: string; path: string }): Promise<FileFormatError> {
    const { step, rejected, model } = await io.loadCheckpoint(folder);
    expect([step, model["w"].toArray()]).toEqual([1, [1, 2]]);
    expect(rejected.map((each) => each.path)).toEqual([path]);
    const { error } = rejected[0];
    expect(error).toBeInstanceOf(FileFormatError);
    const warnings = warned.mock.calls.flat().filter((line) => String(line).includes("checkpoint"));
    expect(warnings).toEqual([`[orchard] skipped an invalid checkpoint: ${error.message}`]);
    expect(io.loadCheckpoint(path)).rejects.toThrow(error.message);
    return error as FileFormatError;
  }

  test("a checkpoint with one flipped bit anywhere is rejected", async () => {
    const { path } = await folderAfter(() => undefined);
    const bytes = readFileSync(path);
    const positions = new Set([0, 1, 7, 8, bytes.length - 1, bytes.indexOf("sha256") + 12, bytes.indexOf("note") + 10]);
    for (let position = 3; position < bytes.length; position += 97) positions.add(position);
    for (const position of positions) {
      const flipped = Buffer.from(bytes);
      flipped[position] ^= 1 << (position % 8);
      writeFileSync(path, flipped);
      expect([position, await io.loadCheckpoint(path).catch((error: unknown) => (error as Error).name)]).toEqual([
        position,
        "FileFormatError",
      ]);
    }
  });

  test("a checkpoint with a flipped bit in the weights is reported as damaged", async () => {
    const error = await expectSkipped(
      await folderAfter((path) => {
        const bytes = readFileSync(path);
        bytes[bytes.length - 40] ^= 4;
        writeFileSync(path, bytes);
      }),
    );
    expect(error.code).toBe("damaged");
    expect(error.message).toContain("it was altered, or the disk is failing");
  });

  test.each([0, 5, 300, -1])("a checkpoint truncated to %p bytes is reported as truncated", async (length) => {
    const error = await expectSkipped(
      await folderAfter((path) => truncateSync(path, length < 0 ? statSync(path).size + length : length)),
    );
    expect(error.code).toBe("truncated");
  });

  test.each([
    ["notACheckpoint", { format: "pt" }],
    ["otherVersion", { format: "orchard-checkpoint", version: "2" }],
    ["damaged", { format: "orchard-checkpoint", version: "1", state: "{}" }],
  ])("a file of another kind is %s", async (code, metadata) => {
    const other = root.file("other.safetensors");
    await io.saveSafetensors(other, { w: zeros([2]) }, { metadata });
    const error = await expectSkipped(await folderAfter((path) => copyFileSync(other, path)));
    expect(error.code).toBe(code);
  });

  test("if no earlier checkpoint is valid, the error has every reason", async () => {
    const { folder, path } = await folderAfter((damaged) => writeFileSync(damaged, "x"));
    writeFileSync(join(folder, "checkpoint-00000001.safetensors"), new Uint8Array(20).fill(255));
    const error = await io.loadCheckpoint(folder).catch((cause: unknown) => cause);
    expect(error).toMatchObject({ name: "CheckpointError", code: "noneValid" });
    expect((error as Error).message).toContain(
      `${path}: expected at least 8 bytes, which hold the header's length, got 1`,
    );
    expect((error as Error).message).toContain(
      "checkpoint-00000001.safetensors: expected a header of at most 100000000 bytes, got 18446744073709551615",
    );
    rmSync(folder, { recursive: true });
  });
});
