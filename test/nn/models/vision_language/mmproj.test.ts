/** Compares language models and image encoders in two GGUF files with the folders of the same models. */
import { describe, expect, test } from "bun:test";
import { io, nn, noGrad, ones, tensor } from "../../../../src/index.ts";
import { loadServed } from "../../../../src/serve/load.ts";
import { testFolder } from "../../../support/folder.ts";
import { weight } from "../encoder/oracle.ts";
import { errorOf, numbers } from "../loading/oracle.ts";
import { type MmprojCase, mmprojCases, promptMetadata, writePair } from "./mmproj_files.ts";
import { imagesOf, loadCase, padded } from "./oracle.ts";
import { promptCases, promptTokenizer, writeFiles } from "./tiny.ts";

const folder = testFolder("mmproj");

for (const [name, cases] of Object.entries(mmprojCases))
  describe(name, () => {
    test.each([...cases.entries()])("model %d has the features and logits of the folder", async (index, own) => {
      const path = folder.file(`${name}.${index}`);
      const expected = await loadCase(path, own);
      const { path: text, mmproj } = await writePair(path, own);
      const { model, source } = await nn.loadModel<nn.VisionLanguageModel>(text, { mmproj, dtype: "float32" });
      expect(source).toBe("gguf");
      const images = imagesOf(own).flat();
      const features = noGrad(() => model.imageFeatures(images));
      expect(
        errorOf(
          features,
          noGrad(() => expected.imageFeatures(images)),
        ),
      ).toBeLessThan(1e-5);
      const { tokens, padding } = padded(own);
      const inputs = { images, padding, lastOnly: true };
      const prompt = tensor(tokens, { dtype: "int32" });
      const logits = noGrad(() => model.forward(prompt, inputs));
      expect(
        errorOf(
          logits,
          noGrad(() => expected.forward(prompt, inputs)),
        ),
      ).toBeLessThan(1e-5);
    });
  });

/** The bytes of an image. */
const picture = tensor(
  numbers(weight("picture", [3, 30, 41])).map((value) => Math.floor((value + 0.5) * 256)),
  { shape: [3, 30, 41], dtype: "uint8" },
);
const normal = { image_mean: [0.5, 0.4, 0.3], image_std: [0.3, 0.2, 0.1] };

/** Returns the `preprocessor_config.json` that corresponds to a model's mmproj file. */
function processorOf(family: string, { config }: MmprojCase): Record<string, unknown> {
  const vision = config["vision_config"] as Record<string, number>;
  const [side = 0, patch = 0, merge = 0] = [vision["image_size"], vision["patch_size"], vision["spatial_merge_size"]];
  const size = { height: side, width: side };
  if (family === "gemma3") return { image_processor_type: "Gemma3ImageProcessor", size };
  if (family === "internvl") return { image_processor_type: "GotOcr2ImageProcessor", size };
  if (family === "llava")
    return { image_processor_type: "CLIPImageProcessor", size: { shortest_edge: side }, crop_size: size };
  const tiles = { size: { longest_edge: 4 * side }, max_image_size: { longest_edge: side } };
  if (family === "idefics3") return { image_processor_type: "Idefics3ImageProcessor", ...tiles };
  const [least, most] = [8, 4096].map((count) => count * (patch * merge) ** 2);
  return {
    image_processor_type: "Qwen2VLImageProcessor",
    patch_size: patch,
    merge_size: merge,
    temporal_patch_size: 2,
    size: { shortest_edge: least, longest_edge: most },
  };
}

test.each(["qwen2_vl", "llava", "gemma3", "idefics3", "internvl"])(
  "%s: prompts equal those of the folder",
  async (family) => {
    const own =
      mmprojCases[family].find(({ config }) => !JSON.stringify(config).includes('"siglip_vision_model"')) ??
      mmprojCases[family][0];
    const prompt = promptCases.find(({ files }) => files["config.json"]["model_type"] === family)!;
    const path = folder.file(`${family}.prompts`);
    await loadCase(path, own);
    const pair = await writePair(path, own, promptMetadata(prompt.template));
    const idOf = (text: string) => promptTokenizer.added_tokens.find(({ content }) => content === text)!.id;
    const texts = { qwen2_vl: "<|image_pad|>", gemma3: "<image_soft_token>", internvl: "<IMG_CONTEXT>" } as Readonly<
      Record<string, string>
    >;
    const image = idOf(texts[family] ?? "<image>");
    const config = {
      ...own.config,
      text_config: { ...(own.config["text_config"] as object), vocab_size: 300 },
      ...(["qwen2_vl", "idefics3", "internvl"].includes(family)
        ? { image_token_id: image }
        : { image_token_index: image }),
      ...(family === "gemma3" && {
        boi_token_index: idOf("<start_of_image>"),
        eoi_token_index: idOf("<end_of_image>"),
      }),
    };
    const files = { "config.json": config, "preprocessor_config.json": { ...processorOf(family, own), ...normal } };
    writeFiles(path, { files, template: prompt.template });
    const chat = [
      {
        role: "user",
        content: [
          { type: "text", text: "Hi " },
          { type: "image", image: picture },
        ],
      },
    ];
    const expected = await nn.loadChatProcessor(path).prompt(chat);
    const got = await nn.loadChatProcessor(pair.path, { mmproj: pair.mmproj }).prompt(chat);
    expect(got.tokens).toEqual(expected.tokens);
    expect(got.images.map(({ grid }) => grid)).toEqual(expected.images.map(({ grid }) => grid));
    expect(got.images.map(({ pixels }) => numbers(pixels))).toEqual(
      expected.images.map(({ pixels }) => numbers(pixels)),
    );
  },
);

test("a server reads images with an mmproj file", async () => {
  const [own] = mmprojCases["qwen2_vl"];
  const path = folder.file("served");
  await loadCase(path, own);
  const more = promptMetadata(promptCases[0].template);
  const count = (more["tokenizer.ggml.tokens"] as readonly string[]).length;
  const pair = await writePair(path, own, more);
  const width = own.shapes["model.embed_tokens.weight"][1];
  const state = { ...io.loadWeights(pair.path), "token_embd.weight": ones([count, width]) };
  delete (state as Record<string, unknown>)["output.weight"];
  await io.saveGguf(pair.path, state, { metadata: { ...own.text.metadata, ...more } });
  const served = await loadServed(pair.path, { mmproj: pair.mmproj });
  expect(served.processor).toBeDefined();
});

test("files of another kind are rejected", async () => {
  const [own, other] = [mmprojCases["qwen2_vl"][0], mmprojCases["llava"][0]];
  const [path, second] = [folder.file("refused"), folder.file("other")];
  await Promise.all([loadCase(path, own), loadCase(second, other)]);
  const [pair, others] = [await writePair(path, own), await writePair(second, other)];
  const coded = (code: string) => expect.objectContaining({ code });
  const load = (text: string, mmproj?: string) => nn.loadModel(text, { mmproj });
  await expect(load(pair.mmproj)).rejects.toEqual(coded("otherProjector"));
  await expect(load(pair.path, pair.path)).rejects.toEqual(coded("otherProjector"));
  await expect(load(path, pair.mmproj)).rejects.toEqual(coded("otherProjector"));
  await expect(load(others.path, pair.mmproj)).rejects.toEqual(coded("otherProjector"));
  const metadata = { ...own.tower.metadata, "clip.projector_type": "resampler" };
  await io.saveGguf(folder.file("resampler.gguf"), {}, { metadata });
  await expect(load(pair.path, folder.file("resampler.gguf"))).rejects.toEqual(coded("unknownProjector"));
});
