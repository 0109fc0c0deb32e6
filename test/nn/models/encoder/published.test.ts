/** Configs that the authors of Nomic Embed and GTE published for custom code. */
import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { nn } from "../../../../src/index.ts";
import { rotationOf } from "../../../../src/ops/position/frequencies.ts";
import { testFolder } from "../../../support/folder.ts";
import { answers, configOf, errorOf, families, loadEncoder, outputOf, writeModel } from "./oracle.ts";

type Config = Readonly<Record<string, unknown>>;

const folder = testFolder("published");

/** The other settings of nomic-ai/nomic-embed-text-v1.5. */
const nomic: Config = {
  activation_function: "swiglu",
  prenorm: false,
  parallel_block: false,
  parallel_block_tied_norm: false,
  qkv_proj_bias: false,
  mlp_fc1_bias: false,
  mlp_fc2_bias: false,
  causal: false,
  use_rms_norm: false,
  rotary_emb_fraction: 1,
  rotary_emb_interleaved: false,
  rotary_emb_scale_base: null,
  scale_attn_weights: true,
  rotary_scaling_factor: null,
  scale_attn_by_inverse_layer_idx: false,
  reorder_and_upcast_attn: false,
  attn_pdrop: 0,
  embd_pdrop: 0,
  resid_pdrop: 0,
  dense_seq_output: true,
  fused_bias_fc: true,
  use_xentropy: true,
  fused_dropout_add_ln: true,
  last_layer_subset: false,
  max_trained_positions: 2048,
  mlp_checkpoint_lvl: 0,
  pad_vocab_size_multiple: 64,
  summary_activation: null,
  summary_first_dropout: 0,
  use_flash_attn: true,
  auto_map: { AutoModel: "modeling_hf_nomic_bert.NomicBertModel" },
};
const nomicNames: Readonly<Record<string, string>> = {
  hidden_size: "n_embd",
  num_attention_heads: "n_head",
  num_hidden_layers: "n_layer",
  intermediate_size: "n_inner",
  max_position_embeddings: "n_positions",
  layer_norm_eps: "layer_norm_epsilon",
};
/** The other settings of Alibaba-NLP/gte-base-en-v1.5. */
const gte: Config = {
  model_type: "new",
  layer_norm_type: "layer_norm",
  pack_qkv: true,
  position_embedding_type: "rope",
  unpad_inputs: false,
  use_memory_efficient_attention: false,
  logn_attention_scale: false,
  logn_attention_clip1: false,
  auto_map: { AutoModel: "modeling.NewModel" },
};

function published(name: "nomic_bert" | "gte", { rope_parameters, head_dim: _, ...config }: Config): Config {
  const base = (rope_parameters as Config | null | undefined)?.["rope_theta"];
  if (name === "gte") return { ...config, ...gte, rope_theta: base ?? 160_000, rope_scaling: null };
  const { hidden_act: __, ...others } = config;
  const renamed = Object.entries(others).map(([key, value]) => [nomicNames[key] ?? key, value] as const);
  return { ...Object.fromEntries(renamed), ...nomic, rotary_emb_base: base ?? 1000 };
}

test.each(["nomic_bert", "gte"] as const)("%s computes the same from its published config", async (name) => {
  const own = families[name].cases[0];
  const path = folder.file(name);
  await writeModel(path, name, own);
  writeFileSync(join(path, "config.json"), JSON.stringify(published(name, configOf(name, own))));
  const got = outputOf(await loadEncoder(path), own);
  expect(errorOf(got, answers[own.output!])).toBeLessThan(1e-5);
});

test("GTE's ntk scaling has the frequencies of its formula", () => {
  const [factor, base, width] = [8, 20_000, 16];
  const sizes = { hidden_size: 2 * width, num_attention_heads: 2, intermediate_size: 8, num_hidden_layers: 1 };
  const config = { ...gte, ...sizes, rope_theta: base, rope_scaling: { type: "ntk", factor } };
  const { rope } = nn.createModel<nn.Encoder>(config).description.layers[0].attention;
  const scaling = rope?.scaling as { readonly type: "linear"; readonly factor: number };
  const { frequencies } = rotationOf(width, rope!.base, scaling);
  const expected = Array.from(
    { length: width / 2 },
    (_, pair) => (factor * base) ** ((-2 * pair) / width) / factor ** (2 / width),
  );
  for (const [pair, frequency] of frequencies.entries()) expect(frequency / expected[pair]).toBeCloseTo(1, 12);
});

test.each([
  ["nomic_bert", { n_embd: 16, activation_function: "gelu" }, "activation_function"],
  ["nomic_bert", { n_embd: 16, rotary_emb_fraction: 0.5 }, "rotary_emb_fraction"],
  ["nomic_bert", { n_embd: 16, prenorm: true }, "prenorm"],
  ["new", { pack_qkv: true, layer_norm_type: "rms_norm" }, "layer_norm_type"],
  ["new", { pack_qkv: true, logn_attention_scale: true }, "logn_attention_scale"],
] as const)("an unsupported setting of %s is rejected by name", (model_type, config, key) => {
  expect(() => nn.createModel({ model_type, ...config })).toThrow(key);
});
