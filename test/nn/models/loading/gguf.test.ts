/**
 * GGUF files compared with llama.cpp, whose results for the same files are in test/fixtures/decoders/llama_cpp.json.
 */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { getOrMake } from "../../../../src/core/collections.ts";
import { packageRoot } from "../../../../src/core/paths.ts";
import { io, logSoftmax, nn, noGrad, tensor } from "../../../../src/index.ts";
import { architectures } from "../../../../src/nn/models/loading/architectures.ts";
import { ggufArchitectures } from "../../../../src/nn/models/loading/gguf.ts";
import { patternsOf } from "../../../../src/text/gguf_patterns.ts";
import { testFolder } from "../../../support/folder.ts";
import { files, type GgufCase, promptOf } from "./gguf_files.ts";
import { greedy, numbers } from "./oracle.ts";

interface Answer {
  readonly tokens?: number[];
  readonly logProbabilities: number[];
}
const path = join(packageRoot, "test", "fixtures", "decoders", "llama_cpp.json");
const answers: Readonly<Record<string, Answer>> = JSON.parse(readFileSync(path, "utf8")).files;
const folder = testFolder("gguf-models");

const largest = (values: readonly number[]) => Math.max(...values.map(Math.abs));
const apart = (a: readonly number[], b: readonly number[]) => largest(a.map((value, at) => value - b[at]));

/** gelu is a table of float16 values in llama.cpp. */
const rounded: Readonly<Record<string, number>> = {
  gpt2: 2e-3,
  gemma2: 2e-3,
  gemma3: 2e-3,
  phi: 2e-3,
  starcoder2: 2e-3,
  // these models have five layers
  gemma: 3e-3,
  gpt_neox: 3e-3,
  falcon: 4e-3,
};

/** llama.cpp's log-probabilities in float32. */
const exactOf = ({ name, format }: GgufCase): number[] => answers[name.replace(format, "float32")].logProbabilities;

/**
 * Over all files of a format: the squared distances of Orchard's results from llama.cpp's, and of llama.cpp's results
 * from its float32 results.
 */
const squares = new Map<string, { ours: number; theirs: number }>();
const sumOfSquares = (a: readonly number[], b: readonly number[]) =>
  a.reduce((sum, value, at) => sum + (value - b[at]) ** 2, 0);

/** The distances of log-probabilities from llama.cpp's, by file. */
const measured = new Map<string, number>();

describe.each(files)("the GGUF file $name has llama.cpp's results", (file) => {
  const { name, prompt, format, write, tokens } = file;
  const { tokens: following, logProbabilities } = answers[name];
  // weights of merged files are not representable in float16
  const isExact = format === "float32" || (format === "float16" && !name.startsWith("merged"));

  test("log-probabilities equal llama.cpp's", async () => {
    const own = folder.file(`${name}.gguf`);
    await write(own);
    const { model, source, config } = await nn.loadModel(own, { dtype: "float32" });
    expect(source).toBe("gguf");
    expect(config["tokenizer.ggml.model"]).toBe("gpt2");
    const input = tensor([promptOf(prompt)], { dtype: "int32" });
    const got = numbers(noGrad(() => logSoftmax(model.forward(input, { lastOnly: true }), { dim: -1 })));
    expect(got).toHaveLength(logProbabilities.length);
    // The weights are equal. llama.cpp also rounds the operand that they multiply to their format; Orchard does not. So
    // Orchard has only one of llama.cpp's two errors, which may cancel each other there.
    const error = apart(logProbabilities, exactOf(file));
    const exact = rounded[prompt] ?? rounded[name.split(" ")[0]] ?? 1e-4;
    measured.set(name, apart(got, logProbabilities));
    expect(apart(got, logProbabilities)).toBeLessThanOrEqual(exact + (isExact ? error : 2 * error));
    const sums = getOrMake(squares, format, () => ({ ours: 0, theirs: 0 }));
    sums.ours += sumOfSquares(got, logProbabilities);
    sums.theirs += sumOfSquares(exactOf(file), logProbabilities);
    if (tokens) expect(greedy(model, input, 64, { useCache: true })).toEqual([following!]);
  });
});

test.each(["q8_0", "q4_0", "q4_K", "q6_K"])(
  "log-probabilities of all models in %s are within llama.cpp's error",
  (format) => {
    const { ours, theirs } = squares.get(format)!;
    expect(theirs).toBeGreaterThan(0);
    expect(ours).toBeLessThanOrEqual(theirs);
  },
);

describe("the table of docs/models.md is complete", () => {
  const page = readFileSync(join(packageRoot, "docs", "models.md"), "utf8");
  const [, table] = /## GGUF files\n(.*?)\n## /s.exec(page)!;
  const rows = table
    .split("\n")
    .filter((line) => line.startsWith("| `"))
    .slice(1) // without the head of the table
    .map((line) => line.split("|").map((cell) => cell.trim().replaceAll("`", "")));

  test("the table lists every architecture, under its name in files", async () => {
    const inFiles = new Set<string>([...Object.values(ggufArchitectures), "mistral", "mixtral", "olmo3"]);
    expect(rows.map(([, name]) => name)).toEqual(Object.keys(architectures).filter((name) => inFiles.has(name)));
    for (const [, name, ggml] of rows) {
      const path = folder.file(`${name}.named.gguf`);
      await io.saveGguf(path, {}, { metadata: { "general.architecture": ggml } });
      const known = await nn.loadModel(path).then(undefined, (error: Error) => error.message);
      // the architecture is known, but its settings are missing
      expect(known).toContain(`expected ${ggml}.block_count`);
    }
  });

  test("the page lists the pre-tokenizers", () => {
    const [, list] = /`tokenizer.ggml.pre` says: (.*?)\. Others/s.exec(page)!;
    const named = [...list.matchAll(/`([^`]+)`/g)].map(([, own]) => own);
    expect(named.length).toBeGreaterThan(10);
    for (const own of named) expect(patternsOf(own).length).toBeGreaterThan(0);
    for (const own of ["bloom", "viking"]) expect(() => patternsOf(own)).toThrow(`got ${own}`);
  });

  test("the table states the distances from llama.cpp's log-probabilities", () => {
    const formats = ["float32", "float16", "q8_0", "q4_0"] as const;
    // the second table has a column for float32 only
    for (const [, name, , ...cells] of rows.filter(([, , , float32]) => float32 !== "as llama"))
      for (const [at, format] of formats.slice(0, cells.length > formats.length ? undefined : 1).entries()) {
        const own = measured.get(`${name === "gemma3_text" ? "gemma3" : name} ${format}`)!;
        const stated = Number(cells[at]);
        // limits are rounded up a little; sums in float32 differ between processors
        expect([name, format, own, own <= stated]).toEqual([name, format, own, true]);
        if (format !== "float32") expect(stated).toBeLessThan(1.5 * own);
      }
  });
});
