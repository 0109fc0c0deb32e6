/** Which files are found and skipped, how they are split, and the errors for too little text. */
import { describe, expect, test } from "bun:test";
import {
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { ArgumentError, DataError } from "../../src/core/errors.ts";
import { textParts } from "../../src/data/read.ts";
import { data } from "../../src/index.ts";
import { withVariables } from "../support/environment.ts";
import { testFolder } from "../support/folder.ts";
import { bunWords } from "../support/program.ts";

const root = testFolder("dataset");
const cacheFolder = root.file("cache");
const bytes = new data.ByteTokenizer();
let made = 0;

/** Creates a new folder with these files. */
function folderOf(files: Record<string, string | Uint8Array>): string {
  const folder = root.file(`text-${made++}`);
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), content);
  }
  mkdirSync(folder, { recursive: true });
  return folder;
}

const open = (paths: string | string[], options: Partial<data.TextDatasetOptions> = {}) =>
  data.openTextDataset({ paths, tokenizer: bytes, contextLength: 4, cacheFolder, ...options });

async function refused(promise: Promise<unknown>): Promise<DataError> {
  const error = await promise.then(
    () => "it was taken",
    (cause: unknown) => cause,
  );
  expect(error).toBeInstanceOf(DataError);
  return error as DataError;
}

/** Returns the text of all tokens, the training part first. */
async function textOf(dataset: data.TextDataset): Promise<string> {
  return await Bun.file(dataset.report.tokenFile)
    .arrayBuffer()
    .then((buffer) => bytes.decode(new Uint16Array(buffer)));
}

const text = (seed: number, length = 400) =>
  Array.from({ length }, (_, at) => String.fromCharCode(97 + ((at * seed + (at >> 3)) % 26))).join("");

describe("a data set reads files and folders", () => {
  const files = {
    "b.txt": "bbbbbb",
    "a/x.md": "xxxxxx",
    "a/deep/y.txt": "yyyyyy",
    ".git/z.txt": "zzzzzz",
    "a/.h": "hhhhh",
  };

  test("files in a folder are found recursively, in the order of their names, without hidden ones", async () => {
    expect(await textOf(await open(folderOf(files), { heldOut: 0 }))).toBe("yyyyyy\nxxxxxx\nbbbbbb\n");
  });

  test("files from several paths and globs are read once each", async () => {
    const folder = folderOf(files);
    const paths = [join(folder, "**/*.txt"), join(folder, "a", "deep"), join(folder, "b.txt")];
    expect(await textOf(await open(paths, { heldOut: 0 }))).toBe("yyyyyy\nbbbbbb\n");
    expect(await textOf(await open(join(folder, "a/*.{md,txt}"), { heldOut: 0 }))).toBe("xxxxxx\n");
  });

  test("files behind links are followed once, also in cycles", async () => {
    const folder = folderOf({ "real/a.txt": "aaaaaaa" });
    symlinkSync(join(folder, "real"), join(folder, "again"));
    symlinkSync(folder, join(folder, "real", "circle"));
    symlinkSync(join(folder, "nowhere"), join(folder, "real", "broken"));
    expect((await open(folder, { heldOut: 0 })).report.files).toBe(1);
  });

  test("files other than text are skipped, and counted by reason", async () => {
    const folder = folderOf({
      "good.txt": "good text\n",
      "accents.txt": "\ufeffÅngström\n",
      "copy.txt": "good text\n",
      "empty.txt": "",
      "zero.bin": new Uint8Array(100),
      "controls.bin": new Uint8Array(100).fill(7),
      "latin1.txt": Uint8Array.of(110, 0xe9, 110),
      "cut.txt": Uint8Array.of(97, 0xf0, 0x9f, 0x8d),
    });
    const dataset = await open(folder, { heldOut: 0 });
    const { skipped, documents, files: count } = dataset.report;
    const counts = Object.fromEntries(Object.entries(skipped).map(([reason, paths]) => [reason, paths.length]));
    expect([documents, count, counts]).toEqual([
      2,
      8,
      { empty: 1, binary: 2, badUtf8: 2, duplicate: 1, unreadable: 0 },
    ]);
    expect(skipped.empty).toEqual([join(folder, "empty.txt")]);
    expect(await textOf(dataset)).toBe("Ångström\n\ngood text\n\n"); // a byte order mark is not part of the text
  });

  test("large files are read in parts that have the same tokens as the whole", () => {
    const line = "const naïve = 🍎 +  1;\r\n\n\tif (x)\n  return '日本語';\nlet y; \n";
    const whole = `\ufeff${line.repeat(70_000)}end`;
    const path = join(folderOf({ "large.ts": whole }), "large.ts");
    const parts = [...textParts(path)];
    expect(parts.length).toBeGreaterThan(1);
    expect(parts.join("") === whole.slice(1)).toBe(true);
    for (const [at, part] of parts.slice(0, -1).entries())
      expect([part.slice(-2), parts[at + 1][0]]).toEqual([
        expect.stringMatching(/[!-~]\n/),
        expect.stringMatching(/[!-~]/),
      ]);
    const gpt2 = new data.Gpt2Tokenizer();
    const near = parts[0].slice(-200) + parts[1].slice(0, 200);
    const cut = [...gpt2.encode(parts[0].slice(-200)), ...gpt2.encode(parts[1].slice(0, 200))];
    expect(cut).toEqual([...gpt2.encode(near)]);
  });
});

describe("the held-out part of a text", () => {
  const many = Object.fromEntries(
    Array.from({ length: 40 }, (_, at) => [`${at}.txt`, `${at + 10}${text(at + 1, 398)}`]),
  );

  test("the held-out part is whole documents, chosen by their contents", async () => {
    const dataset = await open(folderOf(many));
    const { split, trainTokens, heldOutTokens, tokens } = dataset.report;
    expect([split, trainTokens + heldOutTokens]).toEqual(["documents", tokens]);
    expect(heldOutTokens).toBe(4 * 401);
    const all = await textOf(dataset);
    const heldOut = all.slice(trainTokens).trimEnd().split("\n");
    expect(heldOut.every((document) => Object.values(many).includes(document))).toBe(true);
    const renamed = await open(
      folderOf(Object.fromEntries(Object.values(many).map((each, at) => [`z${39 - at}`, each]))),
    );
    const again = (await textOf(renamed)).slice(renamed.report.trainTokens).trimEnd().split("\n");
    expect(new Set(again)).toEqual(new Set(heldOut));
  });

  test("the held-out part is the end of the text if there is one file", async () => {
    const dataset = await open(folderOf({ "one.txt": text(3, 1000) }), { heldOut: 0.2 });
    expect(dataset.report).toMatchObject({ split: "tail", tokens: 1001, trainTokens: 800, heldOutTokens: 201 });
    const [first] = [...dataset.heldOut.batches(1)];
    expect(bytes.decode(first.x.dataSync())).toBe(text(3, 1000).slice(800, 804));
  });

  test("the held-out part is empty with a fraction of 0", async () => {
    const dataset = await open(folderOf({ "one.txt": text(3) }), { heldOut: 0 });
    expect(dataset.report).toMatchObject({ split: "none", heldOutTokens: 0 });
    expect([...dataset.heldOut.batches(2)]).toEqual([]);
  });

  test("a held-out part shorter than a window causes a warning", async () => {
    const { report } = await open(folderOf({ "one.txt": text(3, 60) }), { contextLength: 10 });
    expect(report.warnings).toEqual([
      "the text has only 60 bytes",
      "only 7 tokens are held out, less than one window: there will be no evaluation",
    ]);
  });
});

describe("the token file of a data set", () => {
  test("the token file is reused, and rebuilt for another file, size, time, tokenizer or fraction", async () => {
    const folder = folderOf({ "a.txt": text(1), "b.txt": text(5) });
    const cached = async (options = {}) => (await open(folder, options)).report.cached;
    expect([await cached(), await cached()]).toEqual([false, true]);
    writeFileSync(join(folder, "c.txt"), "c");
    expect([await cached(), await cached()]).toEqual([false, true]);
    utimesSync(join(folder, "a.txt"), 1, 1);
    expect([await cached(), await cached()]).toEqual([false, true]);
    expect([await cached({ heldOut: 0.3 }), await cached({ tokenizer: new data.Gpt2Tokenizer() })]).toEqual([
      false,
      false,
    ]);
    expect(await cached({ contextLength: 9 })).toBe(true);
  });

  test("the token file is rebuilt if it is truncated, or its manifest is damaged", async () => {
    const folder = folderOf({ "a.txt": text(1) });
    const { tokenFile } = (await open(folder)).report;
    truncateSync(tokenFile, 100);
    expect((await open(folder)).report).toMatchObject({ cached: false, tokens: 401 });
    writeFileSync(tokenFile.replace(/tokens$/, "json"), "{");
    expect((await open(folder)).report.cached).toBe(false);
    expect(statSync(tokenFile).size).toBe(802);
  });

  test("tokens have 32 bits if the vocabulary needs them", async () => {
    const wide = { ...bytes, name: "wide", vocabularySize: 70_000, encode: () => [65_536, 69_999], separator: 1 };
    const folder = folderOf({ "a.txt": text(1), "b.txt": text(2) });
    const { train } = await open(folder, { tokenizer: wide as never as data.Tokenizer, heldOut: 0 });
    expect(train.next(1).x.toArray()).toEqual([expect.arrayContaining([65_536, 69_999, 1])] as never);
  });

  test("the token file of another run that was unused for long is removed", async () => {
    const folder = root.file("small-cache");
    for (let at = 0; at < 20; at++) await open(folderOf({ "a.txt": text(1) }), { cacheFolder: folder });
    expect(readdirSync(folder).length).toBe(32);
  });

  describe("a cache over its limit", () => {
    /**
     * Opens texts of this many bytes, 2 for each token, in this order. Returns the ones that are still in the cache.
     */
    const keptOf = async (limit: string | undefined, sizes: readonly number[]) => {
      const folder = root.file(`limited-${counter++}`);
      using _ = withVariables({ ORCHARD_TOKEN_CACHE_LIMIT: limit });
      const files: string[] = [];
      for (const [index, size] of sizes.entries()) {
        const { report } = await open(folderOf({ "a.txt": text(index, size) }), { cacheFolder: folder });
        for (const end of ["tokens", "json"])
          utimesSync(report.tokenFile.replace(/tokens$/, end), index + 1, index + 1); // distinct times of last use
        files.push(report.tokenFile);
      }
      const names = readdirSync(folder);
      return files.flatMap((file, index) => (names.some((name) => file.endsWith(name)) ? index : []));
    };
    let counter = 0;

    test("the least recently used files are removed; the one in use stays, regardless of its size", async () => {
      expect(await keptOf("45000", [8000, 8000, 8000])).toEqual([1, 2]); // 3 × 16 KB and their manifests
      expect(await keptOf("50000", [8000, 30_000])).toEqual([1]);
      expect(await keptOf("50000", [30_000, 400])).toEqual([1]);
    });

    test("0 means no limit, and a few KB do not reach the default", async () => {
      expect(await keptOf("0", [8000, 8000, 8000])).toEqual([0, 1, 2]);
      expect(await keptOf(undefined, [8000, 8000, 8000])).toEqual([0, 1, 2]);
    });

    test("token files that a killed process left without a manifest are counted and removed", async () => {
      const folder = root.file("left");
      mkdirSync(folder);
      const [left, foreign] = [join(folder, `${"0".repeat(32)}.tokens`), join(folder, "mine.tokens")];
      for (const path of [left, foreign]) writeFileSync(path, new Uint8Array(100_000));
      utimesSync(left, 1, 1);
      using _ = withVariables({ ORCHARD_TOKEN_CACHE_LIMIT: "50000" });
      await open(folderOf({ "a.txt": text(1) }), { cacheFolder: folder });
      expect(readdirSync(folder)).toHaveLength(3);
      expect(readdirSync(folder)).toContain("mine.tokens");
    });

    test.each(["many", "-1", "1.5"])("a limit of %s bytes is an error", async (limit) => {
      await expect(keptOf(limit, [400])).rejects.toThrow(
        `expected ORCHARD_TOKEN_CACHE_LIMIT to be a number of bytes, got`,
      );
    });
  });

  test("tokenizing reports progress", async () => {
    const seen: data.DataProgress[] = [];
    await open(folderOf({ "a.txt": text(1), "b.txt": text(2) }), { onProgress: (each) => seen.push(each) });
    expect(seen.map(({ phase }) => phase)).toEqual(["reading", "encoding"]);
    expect(seen.at(-1)).toEqual({ phase: "encoding", files: 2, totalFiles: 2, bytes: 800, totalBytes: 800 });
  });
});

describe("errors for text that can't be used", () => {
  test("the error for a missing folder suggests the most similar name", async () => {
    mkdirSync(root.file("corpus"), { recursive: true });
    const error = await refused(open(root.file("corpsu")));
    expect([error.code, error.operation]).toEqual(["notFound", "openTextDataset"]);
    expect(error.message).toContain(`${root.file("corpsu")} does not exist; did you mean ${root.file("corpus")}?`);
    expect((await refused(open(root.file("absent", "deep", "x.txt")))).message).toContain(
      `${root.file("absent")} does not exist;`,
    );
    expect((await refused(open(root.file("corpus", "*.txt")))).message).toContain(
      `no file in ${root.file("corpus")} matches *.txt`,
    );
  });

  test("paths without a readable file, or with only an empty one, are an error", async () => {
    const empty = await refused(open(join(folderOf({ "none.txt": "" }), "none.txt")));
    expect([empty.code, empty.message]).toEqual(["emptyFile", expect.stringContaining("1 empty")]);
    const mixed = await refused(open(folderOf({ "none.txt": "", "a.bin": new Uint8Array(9) })));
    expect([mixed.code, mixed.message]).toEqual(["nothingReadable", expect.stringContaining("1 binary")]);
    expect((await refused(open(folderOf({})))).message).toContain("there are no files");
  });

  test("a text shorter than the context is an error", async () => {
    const folder = folderOf({ "short.txt": "12345678" }); // plus the separator
    const error = await refused(open(folder, { contextLength: 9, heldOut: 0 }));
    expect(error.code).toBe("tooShort");
    expect(error.message).toContain("expected at least 10 training tokens, got 9 of 9");
    expect((await open(folder, { contextLength: 8, heldOut: 0 })).train.windowCount).toBe(1);
  });

  test("a vocabulary that is too small for a token is an error", async () => {
    const folder = folderOf({ "a.txt": "the letter z is 122" });
    const error = await refused(open(folder, { vocabularySize: 122 }));
    expect([error.code, error.message]).toEqual([
      "vocabularyTooSmall",
      expect.stringContaining("expected a vocabulary of at least 123 tokens, got 122"),
    ]);
    await open(folder, { vocabularySize: 123 });
    const lying = { ...bytes, name: "lying", vocabularySize: 100, encode: () => [100], separator: 1 };
    expect((await refused(open(folder, { tokenizer: lying as never as data.Tokenizer }))).message).toContain(
      "expected tokens of lying below 100, got 100",
    );
  });

  test.each([
    ["contextLength", { contextLength: 0 }],
    ["contextLength", { contextLength: 2.5 }],
    ["heldOut", { heldOut: 0.6 }],
    ["heldOut", { heldOut: Number.NaN }],
    ["seed", { seed: -1 }],
  ])("a wrong %s is an error", async (name, options) => {
    const error = await open(folderOf({ "a.txt": text(1) }), options).catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(ArgumentError);
    expect((error as Error).message).toContain(name);
  });
});

describe("without paths, the text is the declarations of TypeScript", () => {
  /** Opens the default data in a process with this working folder. */
  function opened(cwd: string): { report?: data.DataReport; message?: string } {
    const index = JSON.stringify(join(import.meta.dir, "..", "..", "src", "index.ts"));
    const program = `
      import { data } from ${index};
      const cacheFolder = ${JSON.stringify(cacheFolder)};
      const options = { tokenizer: new data.ByteTokenizer(), contextLength: 8, cacheFolder };
      const opened = await data.openTextDataset(options).catch(({ message }) => ({ message }));
      console.log(JSON.stringify({ report: opened.report, message: opened.message }));`;
    const { stdout, stderr } = Bun.spawnSync([...bunWords, "-e", program], { cwd });
    expect(stderr.toString()).toBe("");
    return JSON.parse(stdout.toString()) as { report?: data.DataReport; message?: string };
  }

  test("declarations in the nearest node_modules are used, with a warning that they are few", () => {
    const folder = folderOf({
      "node_modules/a/index.d.ts": text(1),
      "node_modules/a/index.ts": text(2),
      "src/deep/x.ts": "",
    });
    const { report } = opened(join(folder, "src", "deep"));
    const modules = join(folder, "node_modules");
    expect([report?.source, report?.files]).toEqual([[modules], 1]);
    const found = `the declaration file in ${modules} has only 400 bytes`;
    expect(report?.warnings[0]).toBe(`no data was named, and ${found}; name a file, a folder or a glob`);
  });

  test("this package's dependencies provide the declarations if the project has none", () => {
    const { report } = opened(root.path);
    expect(report?.documents).toBeGreaterThan(100);
    expect(report?.warnings).toEqual([]);
    rmSync(report!.tokenFile);
  });
});
