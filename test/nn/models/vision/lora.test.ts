/** LoRA on encoders of images, and of images and texts. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import {
  backward,
  Generator,
  io,
  manualSeed,
  nn,
  noGrad,
  optim,
  randn,
  square,
  sum,
  type Tensor,
} from "../../../../src/index.ts";
import { DualEncoder } from "../../../../src/nn/models/vision/dual_encoder.ts";
import { testFolder } from "../../../support/folder.ts";
import { errorOf } from "../weights.ts";

const folder = testFolder("vision_lora");
const shared = { hidden_size: 16, num_hidden_layers: 2, num_attention_heads: 2 };
const patches = { image_size: 8, patch_size: 4 };
const sizes = { ...shared, intermediate_size: 24 };
const vision = { ...sizes, ...patches };
const text = { ...sizes, vocab_size: 20, max_position_embeddings: 9 };
const configs = {
  vit: { model_type: "vit", architectures: ["ViTForImageClassification"], num_labels: 3, ...vision },
  dinov2: { model_type: "dinov2", architectures: ["Dinov2Model"], ...shared, ...patches },
  clip: {
    model_type: "clip",
    architectures: ["CLIPModel"],
    projection_dim: 6,
    vision_config: vision,
    text_config: text,
  },
} as const;
type Model = nn.VisionEncoder | nn.DualEncoder;

const pixels = randn([2, 3, 8, 8], { generator: new Generator(1) });

describe.each(Object.keys(configs) as (keyof typeof configs)[])("LoRA adapters of the vision model %s", (name) => {
  const made = (): Model => {
    manualSeed(5);
    return nn.createModel<nn.VisionEncoder>(configs[name]) as Model;
  };
  const outputOf = (model: Model): Tensor =>
    model instanceof DualEncoder ? model.embedImages(pixels) : model.forward(pixels);

  test("training changes adapters only, and a saved adapter has the same results", async () => {
    const [model, other] = [made(), made()];
    const before = noGrad(() => outputOf(model).clone());
    const adapter = nn.lora(model, { rank: 3, alpha: 6, targets: ["query", "value", "down"] });
    expect(
      errorOf(
        noGrad(() => outputOf(model)),
        before,
      ),
    ).toBe(0);
    const frozen = Object.entries(model.stateDict()).map(([key, x]) => [key, x.detach().clone()] as const);
    const optimizer = new optim.AdamW(adapter.parameters(), { lr: 0.05 });
    const losses = Array.from({ length: 4 }, () => {
      const loss = sum(square(outputOf(model).narrow(-1, 0, 1)));
      optimizer.zeroGrad();
      backward(loss);
      optimizer.step();
      return Number(loss.item());
    });
    expect(losses.at(-1)).toBeLessThan(losses[0]);
    // images do not reach the text encoder
    const trained = [...adapter.namedParameters().keys()].filter((key) => !key.startsWith("text."));
    const after = model.stateDict();
    expect(
      frozen
        .filter(([key, x]) => errorOf(after[key], x) > 0)
        .map(([key]) => key)
        .sort(),
    ).toEqual(trained.sort());
    const path = folder.file(name);
    await nn.saveLora(adapter, path);
    const names = Object.keys(io.loadSafetensors(join(path, "adapter_model.safetensors")));
    const block = { vit: "vit.encoder.layer.0.attention.attention.query", dinov2: "encoder.layer.1.mlp.fc2" };
    const wanted = { ...block, clip: "vision_model.encoder.layers.0.self_attn.q_proj" }[name];
    expect(names).toContain(`base_model.model.${wanted}.lora_A.weight`);
    nn.loadLora(other, path);
    const [got, want] = [other, model].map((each) => noGrad(() => outputOf(each)));
    expect(errorOf(got, want)).toBe(0);
    adapter.merge();
    expect(
      errorOf(
        noGrad(() => outputOf(model)),
        want,
      ),
    ).toBeLessThan(1e-5);
    adapter.remove();
    expect(
      errorOf(
        noGrad(() => outputOf(model)),
        before,
      ),
    ).toBe(0);
  });
});
