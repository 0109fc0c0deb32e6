/** Vision-language models against `transformers`: logits, greedy tokens and positions. */
import { describe, expect, test } from "bun:test";
import { nn, noGrad, tensor } from "../../../../src/index.ts";
import { placesOf } from "../../../../src/nn/models/vision_language/images.ts";
import { testFolder } from "../../../support/folder.ts";
import { errorOf, numbers } from "../loading/oracle.ts";
import { families, imagesOf, loadCase, padded } from "./oracle.ts";

const folder = testFolder("vision-language");

for (const [name, cases] of Object.entries(families))
  describe(name, () => {
    for (const [index, own] of cases.entries()) {
      const model = loadCase(folder.file(`${name}.${index}`), own);

      test(`${index}: logits of a padded batch equal transformers', with a cache and without`, async () => {
        const loaded = await model;
        const { tokens, padding } = padded(own);
        const images = imagesOf(own).flat();
        const prompt = tensor(tokens, { dtype: "int32" });
        const logits = noGrad(() => loaded.forward(prompt, { images, padding, lastOnly: true }));
        const want = tensor(own.logits.map((row) => [row as number[]]));
        expect(errorOf(logits, want)).toBeLessThan(1e-4);
        using cache = loaded.newCache();
        const cached = noGrad(() => loaded.forward(prompt, { images, padding, cache, lastOnly: true }));
        expect(errorOf(cached, want)).toBeLessThan(1e-4);
        const next = own.greedy.map((row) => [row[0]]);
        const stepped = noGrad(() => loaded.forward(tensor(next, { dtype: "int32" }), { padding, cache }));
        const [count, width] = [own.rows.length, loaded.vocabularySize];
        const found = Array.from({ length: count }, (_, row) => numbers(stepped.narrow(0, row, 1)));
        expect(found.map((row) => row.indexOf(Math.max(...row)))).toEqual(own.greedy.map((row) => row[1]));
        expect(found[0]).toHaveLength(width);
      });

      test.each([true, false])(`${index}: greedy tokens equal transformers', useCache %p`, async (useCache) => {
        const loaded = await model;
        const images = imagesOf(own);
        for (const [row, tokens] of own.rows.entries()) {
          const found: number[] = [];
          const maxTokens = useCache ? 32 : 6;
          const options = { maxTokens, temperature: 0, useCache };
          for await (const token of nn.generate(loaded, { tokens, images: images[row] }, options)) found.push(token);
          expect(found).toEqual(own.greedy[row].slice(0, maxTokens));
        }
      });

      const { positions: expected } = own;
      if (!expected) continue;
      test(`${index}: positions equal transformers'`, () => {
        const { tokens, padding } = padded(own);
        const rows = tokens.map((row, at) => ({ tokens: row, start: 0, padding: padding[at] }));
        const vision = own.config["vision_config"] as { readonly spatial_merge_size: number };
        const placement = { imageToken: own.config["image_token_id"] as number, merge: vision.spatial_merge_size };
        const { positions } = placesOf("test", rows, imagesOf(own).flat(), placement);
        expect(positions.map((axis) => [...axis])).toEqual(expected.map((axis) => axis.flat()));
      });
    }
  });

test("a config of older versions, with the text part at the top, is read", async () => {
  const own = families["qwen2_vl"][0];
  const { text_config, vision_config, ...around } = own.config as Record<string, Record<string, unknown>>;
  const { rope_parameters, ...text } = text_config;
  const { rope_theta, mrope_section } = rope_parameters as Record<string, unknown>;
  const rotation = { rope_theta, rope_scaling: { type: "mrope", mrope_section } };
  const older = { in_chans: 3, spatial_patch_size: vision_config["patch_size"], ...vision_config };
  const config = { ...text, ...rotation, ...around, vision_config: older };
  const model = await loadCase(folder.file("older"), { ...own, config });
  const { tokens, padding } = padded(own);
  const inputs = { images: imagesOf(own).flat(), padding, lastOnly: true };
  const logits = noGrad(() => model.forward(tensor(tokens, { dtype: "int32" }), inputs));
  expect(errorOf(logits, tensor(own.logits.map((row) => [row as number[]])))).toBeLessThan(1e-4);
});

test("images that do not match the tokens or the model are rejected", async () => {
  const own = families["qwen2_vl"][0];
  const model = await loadCase(folder.file("refusing"), own);
  const images = imagesOf(own)[0];
  const tokens = own.rows[0];
  const coded = (code: string) => expect.objectContaining({ code });
  expect(() => nn.generate(model, { tokens, images: images.slice(1) })).toThrow(coded("imagesDiffer"));
  expect(() => nn.generate(model, { tokens: tokens.slice(0, 1), images })).toThrow(coded("imagesDiffer"));
  expect(() => nn.generate(model, { tokens, images: [{} as nn.ImageInputs] })).toThrow(coded("wrongType"));
  const plain = new nn.Llama({ vocabularySize: 40, contextLength: 64, layers: 1, heads: 1, width: 8 });
  expect(() => nn.generate(plain, { tokens, images })).toThrow(coded("noImages"));
  expect(() => model.huggingFaceState()).toThrow(coded("otherForm"));
  const long = Array.from({ length: 600 }, () => 5);
  expect(() => nn.generate(model, { tokens: [...tokens, ...long], images })).toThrow(coded("promptTooLong"));
});
