/**
 * Draws awkward folders of a model of every architecture: configs without defaults, indexes that are wrong, weights
 * stored twice, and dtypes that differ between tensors. Logits must be those of `transformers` for the usual folder.
 */
import { beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  ArgumentError,
  Generator,
  io,
  nn,
  noGrad,
  type OrchardError,
  randint,
  type Tensor,
  tensor,
} from "../../../../src/index.ts";
import { type ArchitectureName, rowOf } from "../../../../src/nn/models/loading/architectures.ts";
import { fieldsOf } from "../../../../src/nn/models/loading/fields.ts";
import { testFolder } from "../../../support/folder.ts";
import { repeats } from "../../../support/repeats.ts";
import { seed } from "../../../support/some.ts";
import { errorOf, writeHashed } from "./oracle.ts";
import { answers, drawn } from "./rows_of.ts";

type Weights = Readonly<Record<string, Tensor>>;
type Config = Readonly<Record<string, unknown>>;

const folder = testFolder("awkward-rows");
const names = Object.keys(drawn) as ArchitectureName[];
const CLOSE = 1e-5;

class Draws {
  readonly #generator: Generator;
  constructor(own: number) {
    this.#generator = new Generator(own);
  }
  below(limit: number): number {
    return Number(randint(0, limit, [1], { generator: this.#generator }).item());
  }
  one<T>(list: readonly T[]): T {
    return list[this.below(list.length)]!;
  }
}

const INDEX = "model.safetensors.index.json";
const shardAt = (at: number, count: number) => `model-0000${at + 1}-of-0000${count}.safetensors`;
const write = (path: string, name: string, contents: object) =>
  writeFileSync(join(path, name), JSON.stringify(contents));

/** Writes shards. Returns the file of each tensor. */
async function writeShards(path: string, weights: Weights, draws: Draws): Promise<Record<string, string>> {
  const count = 2 + draws.below(2);
  const shards = Array.from({ length: count }, (): Record<string, Tensor> => ({}));
  const keys = Object.keys(weights);
  for (const [at, key] of keys.entries()) (at < count ? shards[at]! : draws.one(shards))[key] = weights[key]!;
  for (const [at, shard] of shards.entries()) await io.saveSafetensors(join(path, shardAt(at, count)), shard);
  return Object.fromEntries(
    keys.map((key) => [
      key,
      shardAt(
        shards.findIndex((shard) => key in shard),
        count,
      ),
    ]),
  );
}

/** Ways to store the weights, by name. */
const stores: Readonly<Record<string, (path: string, weights: Weights, draws: Draws) => Promise<void>>> = {
  "one file": (path, weights) => io.saveSafetensors(join(path, "model.safetensors"), weights),
  "an index of files that do not exist, beside one file": async (path, weights) => {
    await io.saveSafetensors(join(path, "model.safetensors"), weights);
    write(path, INDEX, { weight_map: Object.fromEntries(Object.keys(weights).map((key) => [key, shardAt(0, 9)])) });
  },
  "an index that lacks tensors": async (path, weights, draws) => {
    const map = await writeShards(path, weights, draws);
    const files = [...new Set(Object.values(map))];
    const kept = files.map((file) => Object.entries(map).find(([, own]) => own === file)!);
    write(path, INDEX, { metadata: {}, weight_map: Object.fromEntries(kept) });
  },
  "an index with the wrong files": async (path, weights, draws) => {
    const map = await writeShards(path, weights, draws);
    const files = [...new Set(Object.values(map))];
    const next = (file: string) => files[(files.indexOf(file) + 1) % files.length];
    write(path, INDEX, { weight_map: Object.fromEntries(Object.entries(map).map(([key, file]) => [key, next(file)])) });
  },
};

/** Changes of the weights that must not change results. */
const weightChanges: Readonly<Record<string, (weights: Weights, draws: Draws, config: Config) => Weights>> = {
  "some tensors in float64": (weights, draws) =>
    Object.fromEntries(Object.entries(weights).map(([key, x]) => [key, draws.below(2) ? x.to("float64") : x])),
  "a head that equals the embedding": (weights, _, config) => {
    const embedding = Object.keys(weights).find((key) =>
      /(embed_tokens|wte|word_embeddings|embeddings)\.weight$/.test(key),
    );
    const isTied = !("lm_head.weight" in weights) && !("embed_out.weight" in weights);
    return isTied && config["model_type"] !== "gpt_neox"
      ? { ...weights, "lm_head.weight": weights[embedding!]!.clone() }
      : weights;
  },
  buffers: (weights) => ({ ...weights, "model.rotary_emb.inv_freq": tensor([1, 0.5]) }),
};

/** Changes of the config that must not change results. */
const configChanges: Readonly<Record<string, (config: Config, name: ArchitectureName) => Config>> = {
  "without defaults": (config, name) =>
    Object.fromEntries(
      Object.entries(config).filter(
        ([key, value]) => JSON.stringify(fieldsOf[name][key]) !== JSON.stringify(value) || key === "model_type",
      ),
    ),
  "without architectures": ({ architectures: _, ...config }) => config,
  "with notes": (config) => ({ ...config, torch_dtype: "bfloat16", transformers_version: "4.40.1", use_cache: false }),
  "in another order": (config) => Object.fromEntries(Object.entries(config).toReversed()),
};

describe.each(names.map((name, at) => [name, at] as const))("awkward folders of %s", (name, at) => {
  const { key, seed: own, config, shapes } = drawn[name][0]!;
  const [tokens, logits] = ["tokens", "logits"].map((part) => answers[`${key}.${part}`]!);
  const usual = folder.file(`usual-${name}`);
  let given: Weights;

  beforeAll(async () => {
    mkdirSync(usual);
    await writeHashed(usual, shapes, rowOf(name).normsFromOne === true, `${own}.`);
    given = io.loadSafetensors(join(usual, "model.safetensors"));
  });

  test("have the logits of transformers", async () => {
    for (let draw = 0; draw < repeats({ usual: 2, all: 12 }); draw++) {
      const draws = new Draws(seed + 100 * at + draw);
      const some = <T>(changes: Readonly<Record<string, T>>) =>
        Object.entries(changes).filter(() => draws.below(2) === 0);
      const [ofConfig, ofWeights] = [some(configChanges), some(weightChanges)];
      const store = draws.one(Object.keys(stores));
      const path = folder.file(`${name}-${draw}`);
      mkdirSync(path);
      write(
        path,
        "config.json",
        ofConfig.reduce((found, [, change]) => change(found, name), config),
      );
      const weights = ofWeights.reduce((found, [, change]) => change(found, draws, config), given);
      await stores[store]!(path, weights, draws);
      const how = [...ofConfig, ...ofWeights].map(([title]) => title).join(", ");
      const error = await nn
        .loadModel(path, { dtype: "float32" })
        .then(({ model }) =>
          errorOf(
            noGrad(() => model.forward(tokens!)),
            logits!,
          ),
        )
        .catch((cause: Error) => cause.message);
      expect([how, store, typeof error === "number" ? error < CLOSE : error]).toEqual([how, store, true]);
      rmSync(path, { recursive: true });
    }
  });

  test("are rejected if a tensor is missing or unknown", async () => {
    const draws = new Draws(seed + at);
    const path = folder.file(`bad-${name}`);
    mkdirSync(path);
    write(path, "config.json", config);
    const keys = Object.keys(given).filter((key) => key.includes("layers.") || key.includes(".h."));
    const key = draws.one(keys.length > 0 ? keys : Object.keys(given));
    const { [key]: _, ...without } = given;
    await io.saveSafetensors(join(path, "model.safetensors"), without);
    await expect(nn.loadModel(path)).rejects.toMatchObject({ code: "stateDiffers", missing: expect.any(Array) });
    await io.saveSafetensors(join(path, "model.safetensors"), { ...given, "model.extra.weight": tensor([1]) });
    await expect(nn.loadModel(path)).rejects.toThrow("unexpected in the files (delete tensors of other models");
  });
});

/** Methods of quantization, with settings as their tools write them. */
const methods: Readonly<Record<string, object>> = {
  bitsandbytes: { load_in_4bit: true, bnb_4bit_quant_type: "nf4" },
  "compressed-tensors": { format: "pack-quantized", config_groups: {} },
  bitnet: { linear_class: "autobitlinear", quantization_mode: "offline" },
  hqq: { quant_config: {} },
  torchao: { quant_type: { default: {} } },
  quanto: { weights: "int8" },
  aqlm: { nbits_per_codebook: 16 },
};

test.each(Object.entries(methods))("weights quantized by %s are rejected with advice", async (method, settings) => {
  const path = folder.file(method);
  mkdirSync(path);
  const { seed: own, config, shapes } = drawn.apertus[0]!;
  write(path, "config.json", { ...config, quantization_config: { quant_method: method, ...settings } });
  await writeHashed(path, shapes, false, `${own}.`);
  const error = await nn.loadModel(path).catch((cause: unknown) => cause);
  expect(error).toBeInstanceOf(ArgumentError);
  expect((error as OrchardError).code).toBe("unknownQuantization");
  expect((error as Error).message).toContain(`got "${method}"; load the original model with { quantize`);
});

test("a head that differs from the embedding is used, as in transformers, even if the config ties them", async () => {
  const path = folder.file("untied");
  mkdirSync(path);
  const { seed: own, config, shapes } = drawn.apertus.find(({ shapes }) => "lm_head.weight" in shapes)!;
  await writeHashed(path, shapes, false, `${own}.`);
  const write2 = (tied: boolean) => write(path, "config.json", { ...config, tie_word_embeddings: tied });
  const logits: Tensor[] = [];
  for (const tied of [false, true]) {
    write2(tied);
    const { model } = await nn.loadModel(path, { dtype: "float32" });
    logits.push(noGrad(() => model.forward(tensor([[1, 2, 3]], { dtype: "int32" }))));
  }
  expect(errorOf(logits[1]!, logits[0]!)).toBe(0);
  const file = join(path, "model.safetensors");
  const weights = Object.entries(io.loadSafetensors(file)).map(([key, x]) => [key, x.clone()] as const);
  const { "model.embed_tokens.weight": embedding, ...others } = Object.fromEntries(weights);
  await io.saveSafetensors(file, { ...others, "model.embed_tokens.weight": embedding!, "lm_head.weight": embedding! });
  expect((await nn.loadModel(path)).model.head).toBeNull();
});

test("the error for a config without model_type says what to add", async () => {
  const path = folder.file("untyped");
  mkdirSync(path);
  write(path, "config.json", { architectures: ["LlamaForCausalLM"], hidden_size: 8 });
  await expect(nn.loadModel(path)).rejects.toThrow("got none; add model_type, as in the original model's file");
});

test("tokens that end texts may be in the text part's config, or a list", async () => {
  const path = folder.file("ends");
  mkdirSync(path);
  const { seed: own, config, shapes } = drawn.gemma4_text[0]!;
  await writeHashed(path, shapes, false, `${own}.`);
  const text = { ...config, eos_token_id: [7, 8], bos_token_id: 2 };
  write(path, "config.json", {
    model_type: "gemma4",
    text_config: text,
    tie_word_embeddings: config["tie_word_embeddings"],
  });
  const { generation } = await nn.loadModel(path);
  expect(generation).toMatchObject({ stopTokens: [7, 8], beginToken: 2 });
  write(path, "generation_config.json", { eos_token_id: [1, 106], pad_token_id: 0 });
  expect((await nn.loadModel(path)).generation).toMatchObject({ stopTokens: [1, 106], paddingToken: 0 });
});

test("the error for the folder of an adapter says how to load it", async () => {
  const path = folder.file("adapter");
  mkdirSync(path);
  write(path, "adapter_config.json", { peft_type: "LORA" });
  await expect(nn.loadModel(path)).rejects.toThrow("load its base model, then call nn.loadLora(model, path)");
});
