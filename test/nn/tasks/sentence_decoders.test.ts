/** Compares models that embed texts with `transformers`: scripts/fixtures/models/sentences.py. */
import { describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../../src/core/paths.ts";
import { io, nn, noGrad, tensor } from "../../../src/index.ts";
import { Encoder } from "../../../src/nn/models/encoder/encoder.ts";
import { type ArchitectureName, architectures, rowOf } from "../../../src/nn/models/loading/architectures.ts";
import { testFolder } from "../../support/folder.ts";
import { writeHashed } from "../models/loading/oracle.ts";
import { errorOf, hashed } from "../models/weights.ts";

interface Dense {
  readonly in_features: number;
  readonly out_features: number;
  readonly bias: boolean;
}
interface Model {
  readonly config: { readonly model_type: string };
  readonly pooling: object;
  readonly dense: readonly Dense[];
  readonly normalize: boolean;
  /** The number of elements of a vector; null for all. */
  readonly truncate: number | null;
  readonly shapes: Readonly<Record<string, number[]>>;
  readonly texts: readonly number[][];
}

const fixture = join(packageRoot, "test", "fixtures", "encoders", "sentences");
const { models }: { models: Record<string, Model> } = JSON.parse(readFileSync(`${fixture}.json`, "utf8"));
const answers = io.loadSafetensors(`${fixture}.safetensors`);
const folder = testFolder("sentences");

/** Writes a folder in the format of sentence-transformers. */
async function written(seed: string, model: Model): Promise<string> {
  const { config, pooling, dense, normalize, truncate, shapes } = model;
  const path = folder.file(seed.replace(" ", "."));
  const json = (place: string, contents: unknown) => {
    mkdirSync(join(path, place, ".."), { recursive: true });
    writeFileSync(join(path, place), JSON.stringify(contents));
  };
  const type = (name: string) => `sentence_transformers.models.${name}`;
  const steps = dense.map((_, at) => ({ path: `${at + 2}_Dense`, type: type("Dense") }));
  const modules = [
    { path: "", type: type("Transformer") },
    { path: "1_Pooling", type: type("Pooling") },
    ...steps,
    ...(normalize ? [{ path: "9_Normalize", type: type("Normalize") }] : []),
  ];
  json("config.json", config);
  json("modules.json", modules);
  json("1_Pooling/config.json", pooling);
  json("config_sentence_transformers.json", {
    prompts: { query: "task: search result | query: " },
    truncate_dim: truncate,
  });
  const modelType = config.model_type;
  const isFromOne = modelType in architectures && rowOf(modelType as ArchitectureName).normsFromOne === true;
  await writeHashed(path, shapes, isFromOne, `${seed.trim()}.`);
  for (const [at, layer] of dense.entries()) {
    json(`${at + 2}_Dense/config.json`, layer);
    const { in_features: inputs, out_features: outputs, bias } = layer;
    await io.saveSafetensors(join(path, `${at + 2}_Dense`, "model.safetensors"), {
      "linear.weight": hashed(`${seed}.${at}.weight`, [outputs, inputs], 0),
      ...(bias && { "linear.bias": hashed(`${seed}.${at}.bias`, [outputs], 0) }),
    });
  }
  return path;
}

describe.each(Object.entries(models))("vectors of sentences by %s", (seed, own) => {
  test("texts of different lengths have the same vectors in batches and alone", async () => {
    const { model } = await nn.loadModel<nn.Encoder>(await written(seed, own), { dtype: "float32" });
    expect(model).toBeInstanceOf(Encoder);
    for (const batch of [1, 3, 32]) {
      const vectors = await nn.embed(model, own.texts, { batch });
      expect(errorOf(vectors, answers[seed])).toBeLessThan(1e-5);
    }
  });
});

test("a saved state, gradients and adapters of the language model's layers work", async () => {
  const [[seed, own]] = Object.entries(models) as [[string, Model]];
  const { model } = await nn.loadModel<nn.Encoder>(await written(`${seed} `, own), { dtype: "float32" });
  const copy = new Encoder(model.description).eval();
  copy.loadStateDict(
    Object.fromEntries(Object.entries(model.stateDict()).filter(([key]) => key.startsWith("decoder."))),
  );
  const tokens = tensor([own.texts[0]], { dtype: "int32" });
  const [got, want] = [copy, model].map((each) => noGrad(() => each.hiddenStates(tokens)));
  expect(errorOf(got, want)).toBe(0);
  const adapter = nn.lora(model, { rank: 2 });
  const rows = own.texts.slice(0, 2).map((text) => text.slice(0, 3));
  model
    .hiddenStates(tensor(rows, { dtype: "int32" }), { lengths: [2, 3] })
    .sum()
    .backward();
  expect(adapter.parameters().every(({ grad }) => grad !== null)).toBe(true);
});

test("a language model without its output head loads as an encoder", async () => {
  const config = {
    model_type: "llama",
    vocab_size: 24,
    hidden_size: 16,
    intermediate_size: 20,
    num_hidden_layers: 2,
    num_attention_heads: 2,
    max_position_embeddings: 16,
    tie_word_embeddings: false,
  };
  const whole = nn.createModel<nn.Decoder>(config).eval();
  const path = folder.file("headless");
  mkdirSync(path, { recursive: true });
  const state = Object.entries(whole.huggingFaceState()).filter(([name]) => name !== "lm_head.weight");
  await io.saveSafetensors(
    join(path, "model.safetensors"),
    Object.fromEntries(state.map(([name, x]) => [name.replace(/^model\./, ""), x])),
  );
  writeFileSync(join(path, "config.json"), JSON.stringify({ ...config, architectures: ["LlamaModel"] }));
  const { model } = await nn.loadModel<nn.Encoder>(path);
  const texts = [
    [3, 9, 4],
    [7, 1],
  ];
  const vectors = await nn.embed(model, texts, { pooling: "last", normalize: false });
  const expected = texts.map((text) => noGrad(() => whole.hiddenStates(tensor([text], { dtype: "int32" }))));
  for (const [row, states] of expected.entries())
    expect(errorOf(vectors.narrow(0, row, 1), states.narrow(1, states.shape[1] - 1, 1).squeeze(1))).toBeLessThan(1e-5);
  writeFileSync(join(path, "config.json"), JSON.stringify({ ...config, architectures: ["LlamaForCausalLM"] }));
  await expect(nn.loadModel(path)).rejects.toThrow("lm_head.weight");
});
