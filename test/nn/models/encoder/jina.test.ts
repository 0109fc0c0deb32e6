/**
 * Jina Embeddings v2, whose code is on the hub instead of in `transformers`, compared with its formulas in float64:
 * BERT with ALiBi in both directions and a gated feed-forward. Names match its checkpoints.
 */
import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { io, nn, noGrad, type Tensor, tensor } from "../../../../src/index.ts";
import type { GgufInput } from "../../../../src/io/gguf/encode.ts";
import { testFolder } from "../../../support/folder.ts";
import { errorOf, weight } from "../weights.ts";

const [WIDTH, HEADS, HIDDEN, LAYERS, WORDS] = [12, 3, 10, 2, 13];
const folder = testFolder("jina");
const config = {
  model_type: "bert",
  architectures: ["JinaBertForMaskedLM"],
  position_embedding_type: "alibi",
  feed_forward_type: "geglu",
  emb_pooler: "mean",
  attn_implementation: null,
  model_max_length: 64,
  hidden_size: WIDTH,
  num_attention_heads: HEADS,
  intermediate_size: HIDDEN,
  num_hidden_layers: LAYERS,
  vocab_size: WORDS,
  type_vocab_size: 2,
  max_position_embeddings: 64,
  layer_norm_eps: 1e-12,
  hidden_act: "gelu",
  auto_map: { AutoConfig: "jinaai/jina-bert-implementation--configuration_bert.JinaBertConfig" },
};

const block = (index: number): Record<string, number[]> => {
  const at = `encoder.layer.${index}.`;
  const linear = (name: string, rows: number, columns: number) => ({
    [`${at}${name}.weight`]: [rows, columns],
    [`${at}${name}.bias`]: [rows],
  });
  const norm = (name: string) => ({ [`${at}${name}.weight`]: [WIDTH], [`${at}${name}.bias`]: [WIDTH] });
  return {
    ...Object.assign({}, ...["query", "key", "value"].map((part) => linear(`attention.self.${part}`, WIDTH, WIDTH))),
    ...linear("attention.output.dense", WIDTH, WIDTH),
    ...norm("attention.output.LayerNorm"),
    [`${at}mlp.gated_layers.weight`]: [2 * HIDDEN, WIDTH],
    ...linear("mlp.wo", WIDTH, HIDDEN),
    ...norm("mlp.layernorm"),
  };
};
const shapes: Record<string, number[]> = {
  "embeddings.word_embeddings.weight": [WORDS, WIDTH],
  "embeddings.token_type_embeddings.weight": [2, WIDTH],
  "embeddings.LayerNorm.weight": [WIDTH],
  "embeddings.LayerNorm.bias": [WIDTH],
  ...Object.assign({}, ...Array.from({ length: LAYERS }, (_, index) => block(index))),
};
const state = Object.fromEntries(Object.entries(shapes).map(([key, shape]) => [key, weight(key, shape)]));

type Rows = number[][];
const numbersOf = (key: string): number[] => Array.from(state[key].dataSync(), Number);
const rowsOf = (key: string): Rows => {
  const [numbers, columns] = [numbersOf(key), state[key].shape.at(-1)!];
  return Array.from({ length: numbers.length / columns }, (_, row) =>
    numbers.slice(row * columns, (row + 1) * columns),
  );
};
const dot = (a: readonly number[], b: readonly number[]) => a.reduce((sum, value, at) => sum + value * b[at], 0);
const linear = (x: Rows, name: string, hasBias = true): Rows => {
  const [rows, bias] = [rowsOf(`${name}.weight`), hasBias ? numbersOf(`${name}.bias`) : undefined];
  return x.map((row) => rows.map((own, at) => dot(row, own) + (bias?.[at] ?? 0)));
};
const normalized = (x: Rows, name: string): Rows => {
  const [scale, bias] = [numbersOf(`${name}.weight`), numbersOf(`${name}.bias`)];
  return x.map((row) => {
    const mean = row.reduce((sum, value) => sum + value, 0) / row.length;
    const variance = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / row.length;
    return row.map((value, at) => ((value - mean) / Math.sqrt(variance + 1e-12)) * scale[at] + bias[at]);
  });
};
const plus = (a: Rows, b: Rows): Rows => a.map((row, at) => row.map((value, column) => value + b[at][column]));

/** The normal cumulative distribution function, by its series. */
function normal(x: number): number {
  let [term, sum] = [x, x];
  for (let n = 1; n < 200; n++) {
    term *= (-x * x) / (2 * n);
    sum += term / (2 * n + 1);
  }
  return 0.5 + sum / Math.sqrt(2 * Math.PI);
}

/** The slopes for three heads: both slopes of two heads, then the first slope of four heads. */
const slopes = [2 ** -4, 2 ** -8, 2 ** -2];

function attended(x: Rows, at: string): Rows {
  const [q, k, v] = ["query", "key", "value"].map((part) => linear(x, `${at}attention.self.${part}`)) as [
    Rows,
    Rows,
    Rows,
  ];
  const size = WIDTH / HEADS;
  const joined = x.map((_, i) =>
    slopes.flatMap((slope, head) => {
      const own = (row: readonly number[]) => row.slice(head * size, (head + 1) * size);
      const scores = x.map((_, j) => dot(own(q[i]), own(k[j])) / Math.sqrt(size) - slope * Math.abs(i - j));
      const powers = scores.map((score) => Math.exp(score));
      const total = powers.reduce((sum, value) => sum + value, 0);
      return own(v[0]).map((_, column) =>
        powers.reduce((sum, power, j) => sum + (power / total) * own(v[j])[column], 0),
      );
    }),
  );
  return normalized(plus(linear(joined, `${at}attention.output.dense`), x), `${at}attention.output.LayerNorm`);
}

function statesOf(tokens: readonly number[]): Rows {
  const [words, types] = [
    rowsOf("embeddings.word_embeddings.weight"),
    rowsOf("embeddings.token_type_embeddings.weight"),
  ];
  let x = normalized(
    tokens.map((token) => words[token].map((value, at) => value + types[0][at])),
    "embeddings.LayerNorm",
  );
  for (let index = 0; index < LAYERS; index++) {
    const at = `encoder.layer.${index}.`;
    const middle = attended(x, at);
    const gated = linear(middle, `${at}mlp.gated_layers`, false).map((row) =>
      row.slice(0, HIDDEN).map((value, column) => value * normal(value) * row[HIDDEN + column]),
    );
    x = normalized(plus(linear(gated, `${at}mlp.wo`), middle), `${at}mlp.layernorm`);
  }
  return x;
}

const texts = [
  [3, 1, 4, 1, 5, 9, 2, 6],
  [5, 8, 7, 0, 0, 0, 0, 0],
];

function check(model: nn.Encoder): void {
  const states = noGrad(() => model.hiddenStates(tensor(texts, { dtype: "int32" }), { lengths: [8, 3] }));
  for (const [row, length] of [8, 3].entries()) {
    const want = tensor([statesOf(texts[row].slice(0, length))]);
    expect(errorOf(states.narrow(0, row, 1).narrow(1, 0, length), want)).toBeLessThan(1e-5);
  }
}

test("hidden states are right for a model loaded from a folder", async () => {
  const path = folder.file("folder");
  mkdirSync(path);
  writeFileSync(join(path, "config.json"), JSON.stringify({ ...config, architectures: ["JinaBertModel"] }));
  await io.saveSafetensors(join(path, "model.safetensors"), state);
  const { model } = await nn.loadModel<nn.Encoder>(path);
  check(model);
  expect(model.contextLength).toBe(64);
  writeFileSync(join(path, "config.json"), JSON.stringify({ ...config, feed_forward_type: "original" }));
  expect(nn.loadModel(path)).rejects.toThrow("feed_forward_type");
});

/** llama.cpp's names; its converter splits the gated layers. */
const names: readonly (readonly [RegExp, string])[] = [
  [/^embeddings\.word_embeddings/, "token_embd"],
  [/^embeddings\.token_type_embeddings/, "token_types"],
  [/^embeddings\.LayerNorm/, "token_embd_norm"],
  [/^encoder\.layer\.(\d+)\.attention\.self\.(.)\w+/, "blk.$1.attn_$2"],
  [/^encoder\.layer\.(\d+)\.attention\.output\.dense/, "blk.$1.attn_output"],
  [/^encoder\.layer\.(\d+)\.attention\.output\.LayerNorm/, "blk.$1.attn_output_norm"],
  [/^encoder\.layer\.(\d+)\.mlp\.wo/, "blk.$1.ffn_down"],
  [/^encoder\.layer\.(\d+)\.mlp\.layernorm/, "blk.$1.layer_output_norm"],
];

test("hidden states are right for a model loaded from a GGUF file", async () => {
  const named = Object.entries(state).flatMap(([key, x]): [string, Tensor][] => {
    const [, layer] = /layer\.(\d+)\.mlp\.gated_layers/.exec(key) ?? [];
    if (layer === undefined) return [[names.reduce((found, [pattern, by]) => found.replace(pattern, by), key), x]];
    const half = (first: number) => x.narrow(0, first, HIDDEN).contiguous();
    return [
      [`blk.${layer}.ffn_gate.weight`, half(0)],
      [`blk.${layer}.ffn_up.weight`, half(HIDDEN)],
    ];
  });
  const uint32 = (value: number): GgufInput => ({ type: "uint32", value });
  const path = folder.file("jina.gguf");
  await io.saveGguf(path, Object.fromEntries(named), {
    metadata: {
      "general.architecture": "jina-bert-v2",
      "jina-bert-v2.context_length": uint32(64),
      "jina-bert-v2.embedding_length": uint32(WIDTH),
      "jina-bert-v2.feed_forward_length": uint32(HIDDEN),
      "jina-bert-v2.block_count": uint32(LAYERS),
      "jina-bert-v2.attention.head_count": uint32(HEADS),
      "jina-bert-v2.attention.layer_norm_epsilon": { type: "float32", value: 1e-12 },
      "jina-bert-v2.attention.causal": { type: "bool", value: false },
      "jina-bert-v2.pooling_type": uint32(1),
    },
  });
  check((await nn.loadModel<nn.Encoder>(path)).model);
});
