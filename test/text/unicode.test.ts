/** Texts of unusual Unicode characters: the tokens equal those of Hugging Face's `tokenizers`. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { text } from "../../src/index.ts";

interface Fixture {
  readonly texts: readonly string[];
  readonly tokenizers: Readonly<Record<string, ConstructorParameters<typeof text.PretrainedTokenizer>[0]>>;
  readonly tokens: Readonly<Record<string, readonly (readonly number[])[]>>;
}
const path = join(packageRoot, "test", "fixtures", "text", "unicode.json");
const { texts, tokenizers, tokens }: Fixture = await Bun.file(path).json();

test.each(Object.keys(tokenizers))("texts of unusual Unicode have the expected tokens: %s", (name) => {
  const tokenizer = new text.PretrainedTokenizer(tokenizers[name]);
  const wrong = texts.flatMap((own, at) => {
    const got = tokenizer.encode(own);
    return Bun.deepEquals(got, tokens[name][at])
      ? []
      : [{ text: JSON.stringify(own), got, expected: tokens[name][at] }];
  });
  expect(wrong).toEqual([]);
});

test("there are hundreds of texts for each tokenizer", () => {
  expect(Object.values(tokens).map((own) => own.length)).toEqual(Object.keys(tokenizers).map(() => texts.length));
  expect(texts.length).toBeGreaterThanOrEqual(400);
});
