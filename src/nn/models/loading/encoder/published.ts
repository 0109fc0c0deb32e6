/**
 * Configs that the authors of Nomic Embed and GTE published for custom code, before `transformers` had these
 * architectures: their keys as those of `transformers`, and the values that each key may have.
 */
import type { Json } from "../../../../io/json.ts";
import type { Settings } from "../settings.ts";
import type { EncoderName } from "./architectures.ts";

/** How keys of an older config are read. */
interface Published {
  /** Fields of `transformers` by the older names. */
  readonly names: Readonly<Record<string, string>>;
  /** Keys for which only one value is supported. */
  readonly only: Readonly<Record<string, Json>>;
  /** Keys without an effect on results. */
  readonly notes: readonly string[];
}

const published: Readonly<Partial<Record<EncoderName, Published>>> = {
  // Source: `configuration_hf_nomic_bert.py` of nomic-ai/nomic-bert-2048
  nomic_bert: {
    names: {
      n_embd: "hidden_size",
      n_head: "num_attention_heads",
      n_layer: "num_hidden_layers",
      n_inner: "intermediate_size",
      n_positions: "max_position_embeddings",
      rotary_emb_base: "rope_theta",
      layer_norm_epsilon: "layer_norm_eps",
    },
    only: {
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
      scale_attn_weights: true,
      scale_attn_by_inverse_layer_idx: false,
      num_experts: 0,
      moe_every_n_layers: 0,
    },
    notes: [
      "dense_seq_output",
      "fused_bias_fc",
      "fused_dropout_add_ln",
      "use_xentropy",
      "pad_vocab_size_multiple",
      "last_layer_subset",
      "max_trained_positions",
      "n_ctx",
      "window_size",
      "mlp_checkpoint_lvl",
    ],
  },
  // Source: `configuration.py` of Alibaba-NLP/new-impl
  gte: {
    names: {},
    only: {
      layer_norm_type: "layer_norm",
      pack_qkv: true,
      logn_attention_scale: false,
      position_embedding_type: "rope",
    },
    notes: ["unpad_inputs", "use_memory_efficient_attention", "logn_attention_clip1", "matryoshka_dimensions"],
  },
};

/** Returns the `model_type` of `transformers`: GTE's older configs have the type `new`. */
export const encoderTypeOf = (type: unknown): unknown => (type === "new" ? "gte" : type);

/** Whether a config has keys of custom code that `transformers` does not have. */
const isPublished = ({ names, only }: Published, config: Settings): boolean =>
  config.names.some(
    (key) => key !== "position_embedding_type" && (Object.hasOwn(names, key) || Object.hasOwn(only, key)),
  );

/** Returns a config with the keys of `transformers`. @throws {ArgumentError} `unsupportedConfig` for other values. */
export function withoutCustomKeys(name: EncoderName, config: Settings): Settings {
  const row = published[name];
  if (!row || !isPublished(row, config)) return config;
  const { names, only, notes } = row;
  const entries = config.entries().flatMap(([key, value]): (readonly [string, unknown])[] => {
    if (Object.hasOwn(names, key)) return [[names[key], value]];
    if (!Object.hasOwn(only, key)) return notes.includes(key) ? [] : [[key, value]];
    if (value === null || JSON.stringify(value) === JSON.stringify(only[key])) return [];
    const [expected, got] = [JSON.stringify(only[key]), JSON.stringify(value)];
    throw config.refused("unsupportedConfig", `expected ${config.nameOf(key)} to be ${expected}, got ${got}`);
  });
  return withNtk(config.with(new Map(entries)));
}

/**
 * Replaces GTE's `ntk` scaling by a base and a linear factor. The frequency of pair i of a head of d elements is
 *
 *     (s · base)^(−2i/d) / s^(2/d)
 *
 * so that the slowest pair is s times slower. Source: `NTKScalingRotaryEmbedding` of Alibaba-NLP/new-impl.
 */
function withNtk(config: Settings): Settings {
  const scaling = config.inner("rope_scaling");
  if (scaling?.textIfAny("type") !== "ntk" && scaling?.textIfAny("rope_type") !== "ntk") return config;
  const [factor, base] = [scaling.positive("factor"), config.positiveIfAny("rope_theta") ?? 160_000];
  if (scaling.get("mixed_b") !== undefined) throw scaling.wrong("mixed_b", "null", scaling.get("mixed_b"));
  const width = (config.wholeIfAny("hidden_size") ?? 768) / (config.wholeIfAny("num_attention_heads") ?? 12);
  const linear = { rope_type: "linear", factor: factor ** (2 / width) };
  return config.with(new Map([...config.entries(), ["rope_theta", factor * base], ["rope_scaling", linear]]));
}
