/**
 * A batcher gives the tokens of `transformers` for prompts with images, however the prompts are cut, joined and
 * repeated.
 */
import { expect, test } from "bun:test";
import { mul, nn, type Tensor } from "../../../../src/index.ts";
import { testFolder } from "../../../support/folder.ts";
import { families, imagesOf, loadCase } from "./oracle.ts";

const folder = testFolder("images");
/** Numbers of tokens per step; the cases of an architecture use them in turn. */
const chunks = [3, 1, 256];

/** The token of images in the fixture. */
const IMAGE = 37;

const generated = (model: nn.LanguageModel, prompt: nn.ImagePrompt, options: nn.GenerateOptions): Promise<number[]> =>
  Array.fromAsync(nn.generate(model, prompt, options));

async function tokensOf(stream: nn.TokenStream): Promise<number[]> {
  const found: number[] = [];
  for await (const { token } of stream) found.push(token);
  return found;
}

const drawn = Object.entries(families).flatMap(([name, cases]) =>
  cases.slice(0, 3).map((own, index) => [`${name} ${index}`, own, chunks[index]] as const),
);

test.each(drawn)("%s: a batch has the texts of each prompt alone", async (name, own, promptChunk) => {
  const model = await loadCase(folder.file(name), own);
  const images = imagesOf(own);
  using batcher = new nn.Batcher(model, { slots: 2, promptChunk });
  const options = { maxTokens: 12, temperature: 0 };
  const submit = (row: number) => batcher.submit({ tokens: own.rows[row], images: images[row] }, options);
  const expected = own.greedy.map((row) => row.slice(0, 12));
  expect(await Promise.all(own.rows.map((_, row) => tokensOf(submit(row))))).toEqual(expected);

  const again = submit(0);
  expect(await tokensOf(again)).toEqual(expected[0]);
  expect(again.reusedTokens).toBeGreaterThan(0);

  // prompts that end with an image
  const endings = own.rows.map((row, at) => ({
    tokens: row.slice(0, row.lastIndexOf(IMAGE) + 1),
    images: images[at],
  }));
  const ended = await Promise.all(endings.map((ending) => tokensOf(batcher.submit(ending, options))));
  expect(ended).toEqual(await Promise.all(endings.map((ending) => generated(model, ending, options))));

  using whole = new nn.Batcher(model, { promptChunk: 256 });
  const chances = async (from: nn.Batcher) => {
    const prompt = { tokens: own.rows[1], images: images[1] };
    const [first] = await Array.fromAsync(from.submit(prompt, { ...options, maxTokens: 1, logProbabilities: 0 }));
    return first.logProbability!;
  };
  using other = new nn.Batcher(model, { promptChunk });
  expect(Math.abs((await chances(other)) - (await chances(whole)))).toBeLessThan(1e-4);

  // other images with the same number of tokens share only the text before them
  const others = images[0].map((image) => ({ ...image, pixels: mul(image.pixels, -0.5) as Tensor }));
  const stream = batcher.submit({ tokens: own.rows[0], images: others }, options);
  expect(await tokensOf(stream)).toEqual(await generated(model, { tokens: own.rows[0], images: others }, options));
  expect(stream.reusedTokens).toBeLessThanOrEqual(own.rows[0].indexOf(IMAGE));
});
