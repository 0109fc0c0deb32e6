/** A batcher gives the tokens of `transformers` for prompts with images, however they are cut, joined and repeated. */
import { expect, test } from "bun:test";
import { mul, nn, type Tensor } from "../../../../src/index.ts";
import { testFolder } from "../../../support/folder.ts";
import { families, imagesOf, loadCase } from "./oracle.ts";

const folder = testFolder("images");
const chunks = [1, 3, 7, 256];

async function tokensOf(stream: nn.TokenStream): Promise<number[]> {
  const found: number[] = [];
  for await (const { token } of stream) found.push(token);
  return found;
}

const drawn = Object.entries(families).flatMap(([name, cases]) =>
  cases.slice(0, 2).map((own, index) => [`${name} ${index}`, own, chunks[(name.length + index) % 4]!] as const),
);

test.each(drawn)("%s", async (name, own, promptChunk) => {
  const model = await loadCase(folder.file(name), own);
  const images = imagesOf(own);
  using batcher = new nn.Batcher(model, { slots: 2, promptChunk });
  const options = { maxTokens: 12, temperature: 0 };
  const submit = (row: number) => batcher.submit({ tokens: own.rows[row]!, images: images[row]! }, options);
  const expected = own.greedy.map((row) => row.slice(0, 12));
  expect(await Promise.all(own.rows.map((_, row) => tokensOf(submit(row))))).toEqual(expected);

  const again = submit(0);
  expect(await tokensOf(again)).toEqual(expected[0]!);
  expect(again.reusedTokens).toBeGreaterThan(0);

  // other images with the same number of tokens share only the text before them
  const others = images[0]!.map((image) => ({ ...image, pixels: mul(image.pixels, -0.5) as Tensor }));
  const stream = batcher.submit({ tokens: own.rows[0]!, images: others }, options);
  const want: number[] = [];
  for await (const token of nn.generate(model, { tokens: own.rows[0]!, images: others }, options)) want.push(token);
  expect(await tokensOf(stream)).toEqual(want);
  expect(stream.reusedTokens).toBeLessThanOrEqual(own.rows[0]!.findIndex((_, at) => isImage(own.rows[0]!, at)));
});

const isImage = (tokens: readonly number[], at: number): boolean => tokens[at] === 37;
