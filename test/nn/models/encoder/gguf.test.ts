/**
 * GGUF files of BERT, with the names of tensors and metadata of llama.cpp's `convert_hf_to_gguf.py`, compared with the
 * folders that they were made from.
 */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { io, nn, type Tensor, text } from "../../../../src/index.ts";
import type { GgufInput } from "../../../../src/io/gguf/encode.ts";
import { Random } from "../../../ops/samples.ts";
import { testFolder } from "../../../support/folder.ts";
import { seed } from "../../../support/some.ts";
import { folderOf } from "../../tasks/models.ts";
import { errorOf, families, loadEncoder, outputOf, writeModel } from "./oracle.ts";

const folder = testFolder("encoder-gguf");
const random = new Random(seed);
const uint32 = (value: number): GgufInput => ({ type: "uint32", value });

/** The names as `gguf.TensorNameMap` of the package `gguf` maps them. */
const names: readonly (readonly [RegExp, string])[] = [
  [/^bert\./, ""],
  [/^embeddings\.word_embeddings/, "token_embd"],
  [/^embeddings\.token_type_embeddings/, "token_types"],
  [/^embeddings\.position_embeddings/, "position_embd"],
  [/^embeddings\.LayerNorm/, "token_embd_norm"],
  [/^encoder\.layer\.(\d+)\.attention\.self\.(.)\w+/, "blk.$1.attn_$2"],
  [/^encoder\.layer\.(\d+)\.attention\.output\.dense/, "blk.$1.attn_output"],
  [/^encoder\.layer\.(\d+)\.attention\.output\.LayerNorm/, "blk.$1.attn_output_norm"],
  [/^encoder\.layer\.(\d+)\.intermediate\.dense/, "blk.$1.ffn_up"],
  [/^encoder\.layer\.(\d+)\.output\.dense/, "blk.$1.ffn_down"],
  [/^encoder\.layer\.(\d+)\.output\.LayerNorm/, "blk.$1.layer_output_norm"],
];
const nameOf = (name: string) => names.reduce((found, [pattern, by]) => found.replace(pattern, by), name);

interface Options {
  readonly pooling?: number;
  readonly more?: Readonly<Record<string, GgufInput>>;
}

async function converted(path: string, from: string, { pooling = 1, more }: Options = {}): Promise<string> {
  const read = (name: string) => JSON.parse(readFileSync(join(from, name), "utf8"));
  const [config, tokenizer] = [read("config.json"), read("tokenizer.json")];
  const specials = new Map<number, string>(
    tokenizer.added_tokens.map(({ id, content }: { id: number; content: string }) => [id, content]),
  );
  const tokens: string[] = [];
  for (const [token, id] of Object.entries<number>(tokenizer.model.vocab))
    tokens[id] = token.startsWith("##") ? token.slice(2) : `▁${token}`;
  for (const [id, content] of specials) tokens[id] = content;
  const weights = Object.entries(io.loadSafetensors(join(from, "model.safetensors")) as Record<string, Tensor>);
  const tensors = weights
    .filter(([name]) => !/pooler|classifier/.test(name))
    .map(([name, x]) => [nameOf(name), x] as const);
  await io.saveGguf(path, Object.fromEntries(tensors), {
    metadata: {
      "general.architecture": "bert",
      "bert.context_length": uint32(config.max_position_embeddings),
      "bert.embedding_length": uint32(config.hidden_size),
      "bert.feed_forward_length": uint32(config.intermediate_size),
      "bert.block_count": uint32(config.num_hidden_layers),
      "bert.attention.head_count": uint32(config.num_attention_heads),
      "bert.attention.layer_norm_epsilon": { type: "float32", value: 1e-12 },
      "bert.attention.causal": { type: "bool", value: false },
      "bert.pooling_type": uint32(pooling),
      "tokenizer.ggml.model": "bert",
      "tokenizer.ggml.tokens": { type: "array", of: "string", value: tokens },
      "tokenizer.ggml.token_type": {
        type: "array",
        of: "int32",
        value: tokens.map((_, id) => (specials.has(id) ? 3 : 1)),
      },
      "tokenizer.ggml.unknown_token_id": uint32(tokens.indexOf("[UNK]")),
      "tokenizer.ggml.seperator_token_id": uint32(tokens.indexOf("[SEP]")),
      ...more,
    },
  });
  return path;
}

const source = await folderOf(folder.file("bert"), "classify", { isBare: true });
const alphabet = [..."cefimnorst12 ,:;()Éé中文"];
const drawnText = () =>
  Array.from({ length: random.integer(1, 60) }, () => alphabet[random.integer(0, alphabet.length - 1)]).join("");
const texts = Array.from({ length: 12 }, drawnText);

test("the tokens match the folder's tokenizer", async () => {
  const path = await converted(folder.file("tokens.gguf"), source);
  const [expected, found] = [text.loadTokenizer(source), text.loadTokenizer(path)];
  for (const own of [...texts, ...Array.from({ length: 200 }, drawnText)]) {
    expect(found.encode(own)).toEqual(expected.encode(own));
    expect(found.encodePair(own, texts[0])).toEqual(expected.encodePair(own, texts[0]));
  }
});

test.each([
  [1, "mean"],
  [2, "first"],
  [3, "last"],
] as const)("vectors with pooling %d equal those of the folder with %s", async (number, pooling) => {
  const path = await converted(folder.file(`${pooling}.gguf`), source, { pooling: number });
  const [{ model: expected }, { model, source: style }] = [
    await nn.loadModel<nn.Encoder>(source),
    await nn.loadModel<nn.Encoder>(path),
  ];
  expect(style).toBe("gguf");
  expect(errorOf(await nn.embed(model, texts), await nn.embed(expected, texts, { pooling }))).toBeLessThan(1e-6);
});

test("other models are rejected with an error that names the setting", async () => {
  const reranker = await converted(folder.file("reranker.gguf"), source, { pooling: 4 });
  await expect(nn.loadModel(reranker)).rejects.toThrow(
    "bert.pooling_type to be 0 to 3; rerankers are not supported, got 4",
  );
  const more = { "bert.attention.causal": { type: "bool", value: true } } as const;
  const causal = await converted(folder.file("causal.gguf"), source, { more });
  await expect(nn.loadModel(causal)).rejects.toThrow("bert.attention.causal to be false, got true");
});

/** llama.cpp's names of the tensors of ModernBERT, Nomic BERT and Jina Embeddings v3. */
const otherNames: readonly (readonly [RegExp, string])[] = [
  [/^embeddings\.(tok|word)_embeddings/, "token_embd"],
  [/^embeddings\.token_type_embeddings/, "token_types"],
  [/^(embeddings\.norm|emb_ln)/, "token_embd_norm"],
  [/^final_norm/, "output_norm"],
  [/^(encoder\.)?layers\.(\d+)\.(attn|mixer)\.Wqkv/, "blk.$2.attn_qkv"],
  [/^(encoder\.)?layers\.(\d+)\.(attn|mixer)\.(Wo|out_proj)/, "blk.$2.attn_output"],
  [/^layers\.(\d+)\.attn_norm/, "blk.$1.attn_norm"],
  [/^layers\.(\d+)\.mlp_norm/, "blk.$1.ffn_norm"],
  [/^(encoder\.)?layers\.(\d+)\.mlp\.(Wi|fc11|fc1)\./, "blk.$2.ffn_up."],
  [/^encoder\.layers\.(\d+)\.mlp\.fc12/, "blk.$1.ffn_gate"],
  [/^(encoder\.)?layers\.(\d+)\.mlp\.(Wo|fc2)\./, "blk.$2.ffn_down."],
  [/^encoder\.layers\.(\d+)\.norm1/, "blk.$1.attn_output_norm"],
  [/^encoder\.layers\.(\d+)\.norm2/, "blk.$1.layer_output_norm"],
];
const float32 = (value: number): GgufInput => ({ type: "float32", value });

test.each([
  ["modernbert", "modern-bert", { norm_eps: 1e-3, global_rope_theta: 300, local_rope_theta: 70 }],
  ["nomic_bert", "nomic-bert", { rope_theta: 200, layer_norm_eps: 1e-3 }],
  ["jina_embeddings_v3", "jina-bert-v3", { rope_theta: 200, layer_norm_eps: 1e-3 }],
] as const)("%s: hidden states equal those of the folder", async (name, architecture, changes) => {
  const from = folder.file(name);
  const change = { ...changes, num_hidden_layers: 4 };
  const shapes = Object.entries(families[name].shapes.none).flatMap(([key, shape]) => {
    const copies = [2, 3].map((layer) => [key.replace(/layers\.1\./, `layers.${layer}.`), shape] as const);
    return /layers\.1\./.test(key) ? copies : [];
  });
  await writeModel(from, name, { task: "none", change, output: null, shapes: Object.fromEntries(shapes) });
  const weights = Object.entries(io.loadSafetensors(join(from, "model.safetensors")) as Record<string, Tensor>);
  const tensors = weights
    .filter(([key]) => !key.includes("pooler"))
    .map(([key, x]) => [otherNames.reduce((found, [pattern, by]) => found.replace(pattern, by), key), x] as const);
  const { config } = families[name];
  const local = "local_rope_theta" in changes ? changes.local_rope_theta : undefined;
  const settings: Record<string, GgufInput> = {
    context_length: uint32(64),
    embedding_length: uint32(16),
    feed_forward_length: uint32(20),
    block_count: uint32(4),
    "attention.head_count": uint32(4),
    "attention.layer_norm_epsilon": float32(1e-3),
    "attention.causal": { type: "bool", value: false },
    "rope.freq_base": float32("rope_theta" in changes ? changes.rope_theta : changes.global_rope_theta),
    ...(local !== undefined && {
      "rope.freq_base_swa": float32(local),
      "attention.sliding_window": uint32(Number(config["local_attention"])),
      "attention.sliding_window_pattern": uint32(3),
    }),
  };
  const path = folder.file(`${name}.gguf`);
  await io.saveGguf(path, Object.fromEntries(tensors), {
    metadata: {
      "general.architecture": architecture,
      ...Object.fromEntries(Object.entries(settings).map(([key, value]) => [`${architecture}.${key}`, value])),
    },
  });
  const [expected, model] = [await loadEncoder(from), await loadEncoder(path)];
  expect(errorOf(outputOf(model, {}), outputOf(expected, {}))).toBeLessThan(1e-6);
});
