/**
 * The keys of an encoder's `config.json`. Each key is read, has no effect on results, or is rejected with an error that
 * names it. Fields and defaults match the config classes of Hugging Face's `transformers` 5.23.0.
 */
import type { Json } from "../../../../io/json.ts";
import { checkKeys, hasNoEffectAnywhere } from "../config_fields.ts";
import type { Settings } from "../settings.ts";
import type { EncoderName } from "./architectures.ts";
import { withoutCustomKeys } from "./published.ts";

type Fields = Readonly<Record<string, Json>>;

/** Fields of every encoder. `is_decoder` and `add_cross_attention` must be false. */
const common = {
  is_decoder: false,
  add_cross_attention: false,
  tie_word_embeddings: true,
  architectures: null,
  id2label: null,
  num_labels: null,
  problem_type: null,
  sentence_transformers: null,
  sbert_ce_default_activation_function: null,
  position_embedding_type: "absolute",
} as const satisfies Fields;

const bert = {
  ...common,
  vocab_size: 30_522,
  hidden_size: 768,
  num_hidden_layers: 12,
  num_attention_heads: 12,
  intermediate_size: 3072,
  hidden_act: "gelu",
  max_position_embeddings: 512,
  type_vocab_size: 2,
  layer_norm_eps: 1e-12,
} as const satisfies Fields;

const rotary = {
  ...bert,
  rope_parameters: null,
  rope_scaling: null,
  rope_theta: 10_000,
  partial_rotary_factor: null,
} as const satisfies Fields;

const roberta = { ...bert, pad_token_id: 1 } as const satisfies Fields;
const { type_vocab_size: _, ...withoutTypes } = bert;

/** The fields by the `model_type` of a config, with their default values. */
export const encoderFields: Readonly<Record<EncoderName, Fields>> = {
  bert,
  jina_bert: {
    ...bert,
    max_position_embeddings: 8192,
    position_embedding_type: "alibi",
    feed_forward_type: "geglu",
  },
  roberta: { ...roberta, vocab_size: 50_265 },
  "xlm-roberta": roberta,
  camembert: roberta,
  "data2vec-text": roberta,
  "roberta-prelayernorm": { ...roberta, vocab_size: 50_265 },
  "xlm-roberta-xl": {
    ...roberta,
    vocab_size: 250_880,
    hidden_size: 2560,
    num_hidden_layers: 36,
    num_attention_heads: 32,
    intermediate_size: 10_240,
    max_position_embeddings: 514,
    type_vocab_size: 1,
    layer_norm_eps: 1e-5,
  },
  "megatron-bert": {
    ...bert,
    vocab_size: 29_056,
    hidden_size: 1024,
    num_hidden_layers: 24,
    num_attention_heads: 16,
    intermediate_size: 4096,
  },
  ernie: { ...bert, use_task_id: false, task_type_vocab_size: 3 },
  distilbert: {
    ...common,
    vocab_size: 30_522,
    max_position_embeddings: 512,
    n_layers: 6,
    n_heads: 12,
    dim: 768,
    hidden_dim: 3072,
    activation: "gelu",
  },
  mpnet: { ...withoutTypes, vocab_size: 30_527, relative_attention_num_buckets: 32 },
  albert: {
    ...bert,
    vocab_size: 30_000,
    embedding_size: 128,
    hidden_size: 4096,
    num_hidden_groups: 1,
    num_attention_heads: 64,
    intermediate_size: 16_384,
    inner_group_num: 1,
    hidden_act: "gelu_new",
  },
  electra: { ...bert, embedding_size: 128, hidden_size: 256, num_attention_heads: 4, intermediate_size: 1024 },
  modernbert: {
    ...common,
    vocab_size: 50_368,
    hidden_size: 768,
    intermediate_size: 1152,
    num_hidden_layers: 22,
    num_attention_heads: 12,
    hidden_activation: "gelu",
    max_position_embeddings: 8192,
    norm_eps: 1e-5,
    norm_bias: false,
    attention_bias: false,
    layer_types: null,
    rope_parameters: null,
    local_attention: 128,
    mlp_bias: false,
    decoder_bias: true,
    classifier_pooling: "cls",
    classifier_bias: false,
    rope_scaling: null,
    classifier_activation: "gelu",
    global_rope_theta: 160_000,
    local_rope_theta: 10_000,
    global_attn_every_n_layers: 3,
    partial_rotary_factor: null,
  },
  nomic_bert: {
    ...rotary,
    vocab_size: 30_528,
    hidden_act: "silu",
    max_position_embeddings: 2048,
    rope_theta: 1000,
    head_dim: null,
  },
  gte: { ...rotary, vocab_size: 250_048, max_position_embeddings: 8192, type_vocab_size: 1, rope_theta: 160_000 },
  jina_embeddings_v3: {
    ...rotary,
    vocab_size: 250_002,
    hidden_size: 1024,
    num_hidden_layers: 24,
    num_attention_heads: 16,
    intermediate_size: 4096,
    max_position_embeddings: 8194,
    type_vocab_size: 1,
    layer_norm_eps: 1e-5,
    rope_theta: 20_000,
  },
  deberta: {
    ...withoutTypes,
    vocab_size: 50_265,
    type_vocab_size: 0,
    layer_norm_eps: 1e-7,
    relative_attention: false,
    max_relative_positions: -1,
    position_biased_input: true,
    pos_att_type: null,
    pooler_hidden_act: "gelu",
    legacy: true,
    embedding_size: null,
    pooler_hidden_size: null,
  },
  "deberta-v2": {
    ...withoutTypes,
    vocab_size: 128_100,
    hidden_size: 1536,
    num_hidden_layers: 24,
    num_attention_heads: 24,
    intermediate_size: 6144,
    type_vocab_size: 0,
    layer_norm_eps: 1e-7,
    relative_attention: false,
    max_relative_positions: -1,
    position_biased_input: true,
    pos_att_type: null,
    pooler_hidden_act: "gelu",
    legacy: true,
    position_buckets: -1,
    norm_rel_ebd: "none",
    share_att_key: false,
    embedding_size: null,
    pooler_hidden_size: null,
    attention_head_size: null,
    conv_kernel_size: 0,
  },
};

/** Alternative names of fields, which take precedence. */
const otherNames: Readonly<Partial<Record<EncoderName, Readonly<Record<string, string>>>>> = {
  distilbert: { hidden_size: "dim", num_attention_heads: "n_heads", num_hidden_layers: "n_layers" },
};

/** Keys that have no effect in encoders: notes of programs that wrote files, and other parts of a config class. */
const notes: ReadonlySet<string> = new Set([
  "directionality",
  "pooler_fc_size",
  "pooler_num_attention_heads",
  "pooler_num_fc_layers",
  "pooler_size_per_head",
  "pooler_type",
  "net_structure_type",
  "num_memory_blocks",
  "down_scale_factor",
  "gap_size",
  "sinusoidal_pos_embds",
  "tie_weights_",
  "initializer_cutoff_factor",
  "deterministic_flash_attn",
  "sparse_prediction",
  "sparse_pred_ignore_index",
  "reference_compile",
  "repad_logits_with_grad",
  "classifier_dropout",
  "summary_last_dropout",
  "pad_token_id",
  "label_smoothing",
]);

/** Keys that have no effect in one architecture, though they have in others. */
const unused: Readonly<Partial<Record<EncoderName, readonly string[]>>> = {
  distilbert: ["type_vocab_size", "layer_norm_eps", "hidden_act"],
  mpnet: ["type_vocab_size"],
  // the files of sentence-transformers state the pooling instead
  jina_bert: ["hidden_act", "emb_pooler"],
  // the last two are notes of training on several tasks
  modernbert: ["layer_norm_eps", "type_vocab_size", "classifiers_size", "tasks"],
  "deberta-v2": ["conv_act", "conv_groups"],
  // the size of the generator with which the discriminator was trained
  electra: ["generator_size", "generator_hidden_size"],
};

/**
 * Returns the settings of a config, with the defaults of its class.
 *
 * @throws {ArgumentError} `unsupportedConfig` for unknown keys, naming them.
 */
export function completedEncoder(name: EncoderName, given: Settings): Settings {
  const config = withoutCustomKeys(name, given);
  if (config.get("lora_adaptations") !== undefined)
    throw config.refused(
      "unsupportedConfig",
      "lora_adaptations: adapters of tasks are not supported; load a folder of model_type jina_embeddings_v3, or a " +
        "GGUF file of jina-bert-v3",
    );
  const [fields, names] = [encoderFields[name], otherNames[name] ?? {}];
  const isKnown = (key: string) =>
    Object.hasOwn(fields, key) ||
    Object.hasOwn(names, key) ||
    notes.has(key) ||
    unused[name]?.includes(key) === true ||
    hasNoEffectAnywhere(key);
  checkKeys(config, isKnown, `is not a setting of ${name}`, name === "deberta" ? { talking_head: false } : {});
  const renamed = Object.entries(names).filter(([key]) => config.get(key) !== undefined);
  return config.with(
    new Map([
      ...Object.entries(fields),
      ...config.names.flatMap((key) => (config.get(key) === undefined ? [] : [[key, config.get(key)] as const])),
      ...renamed.map(([key, field]) => [field, config.get(key)] as const),
    ]),
  );
}
