/** Translation and summaries: how languages and tasks become tokens, and the defaults that files give. */
import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../../../src/core/paths.ts";
import type { nn as Nn } from "../../../../src/index.ts";
import { nn } from "../../../../src/index.ts";
import { testFolder } from "../../../support/folder.ts";
import { bunWords } from "../../../support/program.ts";
import { load, type Model, models, writeModel } from "./oracle.ts";

const folder = testFolder("texts");
const { models: spms, folders } = JSON.parse(
  readFileSync(join(packageRoot, "test", "fixtures", "text", "sentencepieces.json"), "utf8"),
);
const texts = ["the world", "of 123 and the", "words"];

/** Writes a model of the vocabulary of a tokenizer, with the tokenizer's files. */
async function folderOf(kind: "marian" | "m2m_100", files: Readonly<Record<string, object>> = {}): Promise<string> {
  const own = folders.find((each: { kind: string }) => each.kind === kind);
  const size = Object.keys(own.vocabulary).length + (own.config.additional_special_tokens?.length ?? 0);
  const found = models.find(
    ({ config }) => config["model_type"] === kind && config["share_encoder_decoder_embeddings"] !== false,
  )!;
  const weights = Object.entries(found.weights).map(([name, [shape]]) => [
    name,
    [shape.map((length) => (length === 31 ? size : length))],
  ]);
  const described = { ...found, config: { ...found.config, vocab_size: size }, weights: Object.fromEntries(weights) };
  const path = await writeModel(folder.file(`${kind}${Object.keys(files).length}`), described as Model);
  const write = (name: string, value: object) => writeFileSync(join(path, name), JSON.stringify(value));
  write("vocab.json", own.vocabulary);
  const settings = { "tokenizer_config.json": own.config, ...files };
  for (const [name, value] of Object.entries(settings)) write(name, value);
  const spm = Buffer.from(spms[own.model].file, "base64");
  writeFileSync(join(path, kind === "marian" ? "source.spm" : "sentencepiece.bpe.model"), spm);
  return path;
}

/** Returns the texts that a model generates from tokens. */
async function generated(model: Nn.EncoderDecoder, rows: number[][], options: Nn.GenerateBatchOptions) {
  const results = await nn.generateBatch(model, rows, options);
  return results.map(([best]) => model.tokenizer!.decode(best.tokens).trim());
}

test("M2M100: the source language precedes a text, and the target is the first token", async () => {
  const model = await load(await folderOf("m2m_100"));
  const tokenizer = model.tokenizer!;
  const [en, de] = [tokenizer.idOf("__en__")!, tokenizer.idOf("__de__")!];
  const rows = texts.map((text) => [en, ...tokenizer.encode(text, { addSpecialTokens: false }), 2]);
  const options = { maxTokens: 6, numBeams: 2 };
  const wanted = await generated(model, rows, { ...options, forcedBeginToken: de });
  expect(await nn.translate(model, texts, { source: "en", target: "__de__", ...options })).toEqual(wanted);
  expect(nn.translate(model, texts, { source: "en" })).rejects.toThrow("pass source and target");
  expect(nn.translate(model, texts, { source: "en", target: "xx" })).rejects.toThrow('__de__, __en__, got "xx"');
});

test("Marian: the target precedes a text, and files name the pair and the defaults", async () => {
  const model = await load(
    await folderOf("marian", {
      "tokenizer_config.json": { source_lang: "en", target_lang: "de" },
      "generation_config.json": {
        max_length: 7,
        num_beams: 3,
        bad_words_ids: [[5]],
        eos_token_id: 0,
        forced_eos_token_id: 0,
        decoder_start_token_id: 9,
        early_stopping: true,
        no_repeat_ngram_size: 1,
      },
    }),
  );
  expect(model.description.startToken).toBe(9);
  expect(model.generation).toMatchObject({ maxTokens: 6, numBeams: 3, badWords: [[5]], forcedEndToken: 0 });
  const rows = (prefix: string) => texts.map((text) => [...model.tokenizer!.encode(prefix + text)]);
  const [plain, french] = await Promise.all([generated(model, rows(""), {}), generated(model, rows(">>fra<< "), {})]);
  expect(plain).not.toEqual(french);
  expect(await nn.translate(model, texts)).toEqual(plain);
  expect(await nn.translate(model, texts, { source: "en", target: "de" })).toEqual(plain);
  expect(await nn.translate(model, texts, { target: "fra" })).toEqual(french);
  expect(nn.translate(model, texts, { target: "xx" })).rejects.toThrow('expected target to be de, got "xx"');
});

test("T5: tasks of the config have prefixes and defaults", async () => {
  const model = await load(await folderOf("m2m_100", { "special_tokens_map.json": {} }));
  const task = (prefix: string, maxTokens: number) => ({ prefix, defaults: { maxTokens } });
  const tasks = new Map([
    ["summarization", task("the ", 3)],
    ["translation_en_to_de", task("of ", 4)],
  ]);
  model.texts = { ...model.texts, tasks };
  const prefixed = (prefix: string, maxTokens: number) => nn.textToText(model, texts, { prefix, maxTokens });
  expect(await nn.summarize(model, texts)).toEqual(await prefixed("the ", 3));
  expect(await nn.summarize(model, texts, { prefix: "", maxTokens: 5 })).toEqual(await prefixed("", 5));
  const long = "words ".repeat(40);
  expect(nn.textToText(model, [long], { maxTokens: 1 })).rejects.toThrow("pass truncate: true");
  expect((await nn.textToText(model, [long], { maxTokens: 1, truncate: true })).length).toBe(1);
  model.tokenizer = undefined;
  expect(nn.textToText(model, texts)).rejects.toThrow("expected a model with a tokenizer");
});

test("orchard translate prints the translation of each line", async () => {
  const path = await folderOf("m2m_100", { "generation_config.json": { max_length: 6 } });
  const run = (input: string, ...words: string[]) =>
    Bun.spawnSync([...bunWords, "src/cli/orchard.ts", "translate", path, ...words], {
      cwd: packageRoot,
      stdin: Buffer.from(input),
    });
  const wanted = await nn.translate(await load(path), texts, { source: "en", target: "de" });
  const { stdout } = run(`${texts[0]}\n\n${texts[1]}\n${texts[2]}\n`, "--from", "en", "--to", "de");
  expect(stdout.toString()).toBe([wanted[0], "", wanted[1], wanted[2], ""].join("\n"));
  const { stderr, exitCode } = run("", texts[0], "--from", "xx", "--to", "de");
  expect([exitCode, stderr.toString()]).toEqual([1, expect.stringContaining('got "xx"')]);
});
