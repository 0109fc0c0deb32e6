/** LoRA on the language models and the towers of vision-language models. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { backward, io, nn, noGrad, optim, square, sum, tensor, type nn as types } from "../../../../src/index.ts";
import { testFolder } from "../../../support/folder.ts";
import { errorOf } from "../loading/oracle.ts";
import { families, imagesOf, loadCase } from "./oracle.ts";

const folder = testFolder("vision-language-lora");

/** Names of modules of `transformers` 5.23.0, after `base_model.model.model.`. */
const layers: Readonly<Record<string, readonly string[]>> = {
  qwen2_vl: ["visual.blocks.0.attn.qkv", "visual.blocks.0.mlp.fc2", "language_model.layers.0.self_attn.q_proj"],
  qwen2_5_vl: ["visual.blocks.0.attn.qkv", "visual.blocks.0.mlp.down_proj", "language_model.layers.0.mlp.down_proj"],
  qwen3_vl: ["visual.blocks.0.mlp.linear_fc2", "language_model.layers.0.self_attn.v_proj"],
  llava: ["vision_tower.encoder.layers.0.self_attn.q_proj", "language_model.layers.0.self_attn.q_proj"],
  gemma3: ["vision_tower.encoder.layers.0.mlp.fc2", "language_model.layers.0.self_attn.q_proj"],
  internvl: ["vision_tower.encoder.layer.0.attention.q_proj", "language_model.layers.0.self_attn.v_proj"],
  smolvlm: ["vision_model.encoder.layers.0.self_attn.v_proj", "text_model.layers.0.self_attn.q_proj"],
  idefics3: ["vision_model.encoder.layers.0.mlp.fc2", "text_model.layers.0.mlp.down_proj"],
};

test("every family is tested", () => {
  expect(Object.keys(layers)).toEqual(Object.keys(families));
});

test.each(Object.entries(layers))("%s: adapters of both parts learn, and load again", async (name, expected) => {
  const own = families[name][0];
  const [model, other] = [await loadCase(folder.file(name), own), await loadCase(folder.file(`${name}.other`), own)];
  const images = imagesOf(own)[0];
  const tokens = tensor([own.rows[0] as number[]], { dtype: "int32" });
  const logitsOf = (each: types.VisionLanguageModel) => each.forward(tokens, { images });
  const before = noGrad(() => logitsOf(model).clone());
  const targets = ["query", "value", "queryKeyValue", "down"];
  const has = new Set([...model.namedModules().keys()].map((path) => path.split(".").at(-1)!));
  const adapter = nn.lora(model, { rank: 2, targets: targets.filter((target) => has.has(target)) });
  const optimizer = new optim.AdamW(adapter.parameters(), { lr: 0.02 });
  const losses = Array.from({ length: 3 }, () => {
    const loss = sum(square(logitsOf(model)));
    optimizer.zeroGrad();
    backward(loss);
    optimizer.step();
    return Number(loss.item());
  });
  expect(losses.at(-1)).toBeLessThan(losses[0]);
  const still = [...adapter.namedParameters()].filter(([, { grad }]) => grad === null).map(([path]) => path);
  expect(still).toEqual([]);
  const path = folder.file(`${name}.adapter`);
  await nn.saveLora(adapter, path);
  const names = Object.keys(io.loadSafetensors(join(path, "adapter_model.safetensors")));
  for (const layer of expected) expect(names).toContain(`base_model.model.model.${layer}.lora_A.weight`);
  nn.loadLora(other, path);
  const [got, want] = [other, model].map((each) => noGrad(() => logitsOf(each)));
  expect(errorOf(got, want)).toBe(0);
  adapter.merge();
  expect(
    errorOf(
      noGrad(() => logitsOf(model)),
      want,
    ),
  ).toBeLessThan(1e-5);
  adapter.remove();
  expect(
    errorOf(
      noGrad(() => logitsOf(model)),
      before,
    ),
  ).toBe(0);
});
