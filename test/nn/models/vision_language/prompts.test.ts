/** Prompts with images against `transformers`: tokens, and pixels within one step of a byte. */
import { expect, test } from "bun:test";
import { io, nn, type Tensor, tensor } from "../../../../src/index.ts";
import { testFolder } from "../../../support/folder.ts";
import { weight } from "../encoder/oracle.ts";
import { numbers } from "../loading/oracle.ts";
import { modelOf, promptCases, promptFixture, writeFiles } from "./tiny.ts";

const pixels = io.loadSafetensors(`${promptFixture}.safetensors`);
const folder = testFolder("prompts");

/** The bytes that chat_prompts.py draws. */
function imageOf(index: number, shape: readonly number[]): Tensor {
  const bytes = numbers(weight(`image.${index}`, shape)).map((value) => Math.floor((value + 0.5) * 256));
  return tensor(Uint8Array.from(bytes), { shape: [...shape], dtype: "uint8" });
}

/** The smallest standard deviation of a channel, from OpenAI's models. */
const STEP = 1 / 255 / 0.26130258;

test.each(promptCases.map((own, index) => [`${own.files["config.json"]["model_type"]} ${index}`, index, own] as const))(
  "%s has the tokens and pixels of transformers",
  async (name, index, own) => {
    writeFiles(folder.file(name), own);
    const processor = nn.loadChatProcessor(folder.file(name));
    let count = 0;
    const withImage = (part: { readonly type: string }) =>
      part.type === "image" ? { ...part, image: imageOf(count, own.images[count++]) } : part;
    const chat = own.chat.map((message) => ({ ...message, content: message.content.map(withImage) }));
    const prompt = await processor.prompt(chat);
    expect(prompt.tokens).toEqual([...own.tokens]);
    const got = prompt.images.flatMap((image) => numbers(image.pixels));
    const want = numbers(pixels[`${index}`]).slice(0, got.length);
    expect(got).toHaveLength(want.length);
    const farthest = got.reduce((most, value, at) => Math.max(most, Math.abs(value - want[at])), 0);
    // float16 rounds numbers below 4 by at most 2⁻¹⁰
    expect(farthest).toBeLessThan(1.001 * STEP + 2 ** -10);
    const model = modelOf(own, processor.tokenizer.vocabularySize);
    expect(await Array.fromAsync(nn.generate(model, prompt, { maxTokens: 1 }))).toHaveLength(1);
  },
);

test("texts, unknown parts and other URLs are rejected", async () => {
  const own = promptCases[0];
  writeFiles(folder.path, own);
  const processor = nn.loadChatProcessor(folder.path);
  const said = (content: unknown) => processor.prompt([{ role: "user", content }]);
  const coded = (code: string) => expect.objectContaining({ code });
  expect((await said("a")).images).toEqual([]);
  expect((await said([{ type: "text", text: "a" }])).tokens).toEqual((await said("a")).tokens);
  await expect(said("a <|image_pad|>")).rejects.toEqual(coded("imagesDiffer"));
  await expect(said([{ type: "audio" }])).rejects.toEqual(coded("unknownPart"));
  await expect(said([{ type: "image", image: "https://example.com/a.png" }])).rejects.toEqual(coded("invalidImageUrl"));
  const narrow = tensor(new Uint8Array(3 * 201), { shape: [3, 1, 201], dtype: "uint8" });
  await expect(said([{ type: "image", image: narrow }])).rejects.toEqual(coded("imageTooNarrow"));
});

test("content as text has the placeholder where a template does not iterate over parts", async () => {
  const own = promptCases.find(({ files }) => files["config.json"]["model_type"] === "llava")!;
  const plain = "{% for m in messages %}{{ m.role }}: {{ m['content'] }}{% endfor %}";
  writeFiles(folder.path, { ...own, template: plain });
  const processor = nn.loadChatProcessor(folder.path);
  const image = imageOf(0, [3, 8, 9]);
  const content = [
    { type: "image", image },
    { type: "text", text: " a" },
  ];
  const { tokens, images } = await processor.prompt([{ role: "user", content }]);
  const text = `user: ${"<image>".repeat(images[0].tokens)} a`;
  expect(processor.tokenizer.decode(tokens, { skipSpecialTokens: false })).toBe(text);
});
