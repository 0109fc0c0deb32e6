/** Compares tokenizers of folders without `tokenizer.json` with `transformers`: scripts/fixtures/vocabularies.py. */
import { describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { io, nn, text } from "../../src/index.ts";
import * as encoders from "../nn/models/encoder/oracle.ts";
import { testFolder } from "../support/folder.ts";

interface Vocabulary {
  readonly files: Readonly<Record<string, string>>;
  readonly cases: readonly {
    readonly text: string;
    readonly pair: string | null;
    readonly tokens: readonly number[];
    readonly types: readonly number[];
  }[];
}

const fixture = join(packageRoot, "test", "fixtures", "text", "vocabularies.json");
const vocabularies: Readonly<Record<string, Vocabulary>> = JSON.parse(readFileSync(fixture, "utf8"));
const folder = testFolder("vocabularies");

function write(name: string, files: Vocabulary["files"]): string {
  const path = folder.file(name);
  mkdirSync(path, { recursive: true });
  for (const [file, contents] of Object.entries(files))
    writeFileSync(join(path, file), Buffer.from(contents, file.endsWith(".model") ? "base64" : "utf8"));
  return path;
}

describe.each(Object.entries(vocabularies))("the vocabulary of %s", (name, { files, cases }) => {
  const tokenizer = text.loadTokenizer(write(name, files));

  test.each(cases)("text %#", ({ text, pair, tokens, types }) => {
    if (pair === null) expect(tokenizer.encode(text)).toEqual([...tokens]);
    else expect(tokenizer.encodePair(text, pair)).toEqual({ tokens: [...tokens], tokenTypes: [...types] });
  });
});

test("Windows' line ends are accepted", () => {
  const { files, cases } = vocabularies["bert"]!;
  const path = write("windows", { ...files, "vocab.txt": files["vocab.txt"]!.replaceAll("\n", "\r\n") });
  expect(text.loadTokenizer(path).encode(cases[0]!.text)).toEqual(
    text.loadTokenizer(write("unix", files)).encode(cases[0]!.text),
  );
});

test("an encoder has the tokenizer of its vocab.txt", async () => {
  const path = folder.file("encoder");
  await encoders.writeModel(path, "bert", { task: "none", change: { vocab_size: 200 }, output: null });
  const shapes = { ...encoders.families.bert.shapes.none };
  const name = Object.keys(shapes).find((key) => key.endsWith("word_embeddings.weight"))!;
  const tensors = Object.entries({ ...shapes, [name]: [200, shapes[name]![1]!] }).map(
    ([key, shape]) => [key, encoders.weight(key, shape)] as const,
  );
  await io.saveSafetensors(join(path, "model.safetensors"), Object.fromEntries(tensors));
  write("encoder", { "vocab.txt": vocabularies["bert"]!.files["vocab.txt"]! });
  const { model } = await nn.loadModel<nn.Encoder>(path);
  expect((await nn.embed(model, ["Ada wrote"])).shape[0]).toBe(1);
});

describe("folders are rejected with an error that names the problem:", () => {
  const { files } = vocabularies["gpt2"]!;
  test.each([
    [{ ...files, "tokenizer_config.json": '{"tokenizer_class": "CLIPTokenizer"}' }, "tokenizer.json"],
    [{ ...files, "tokenizer_config.json": '{"tokenizer_class": "BertTokenizer"}' }, "tokenizer.json"],
    [{ "vocab.txt": "[UNK]\n[CLS]\na\n" }, "expected a vocabulary with [SEP]"],
  ])("%#", (given, message) => {
    expect(() => text.loadTokenizer(write(`rejected ${message}`, given))).toThrow(message);
  });
});
