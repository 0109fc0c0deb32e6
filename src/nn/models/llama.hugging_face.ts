/** Reads the `config.json` of a Llama from Hugging Face's `transformers`. */
import { ArgumentError } from "../../core/errors.ts";
import type { LlamaOptions } from "./llama.ts";
import { describeConfig } from "./loading/hugging_face.ts";

/** The fields of rotary position embeddings in a `config.json`. */
export interface RopeConfig {
  readonly rope_type?: string;
  readonly type?: string;
  readonly rope_theta?: number;
  readonly factor?: number;
  readonly low_freq_factor?: number;
  readonly high_freq_factor?: number;
  readonly original_max_position_embeddings?: number;
  readonly beta_fast?: number;
  readonly beta_slow?: number;
  readonly attention_factor?: number;
  readonly mscale?: number;
  readonly mscale_all_dim?: number;
  readonly truncate?: boolean;
}

/** The supported fields of a Llama's `config.json`. Missing fields have the defaults of `transformers`. */
export interface LlamaConfig {
  readonly model_type?: string;
  readonly vocab_size?: number;
  readonly max_position_embeddings?: number;
  readonly hidden_size?: number;
  readonly intermediate_size?: number;
  readonly num_hidden_layers?: number;
  readonly num_attention_heads?: number;
  readonly num_key_value_heads?: number | null;
  readonly head_dim?: number | null;
  readonly rms_norm_eps?: number;
  readonly rope_theta?: number;
  readonly rope_scaling?: RopeConfig | null;
  /** `rope_theta` and `rope_scaling` in one object, since version 5 of `transformers`. */
  readonly rope_parameters?: RopeConfig | null;
  readonly attention_bias?: boolean;
  readonly mlp_bias?: boolean;
  readonly attention_dropout?: number;
  readonly tie_word_embeddings?: boolean;
  readonly hidden_act?: string;
  readonly pretraining_tp?: number;
}

/** @internal Converts a config to options of {@link Llama}. @throws {ArgumentError} for an unsupported config. */
export function optionsOfLlama(config: LlamaConfig): LlamaOptions {
  const { norm, layers, ...described } = describeConfig("Llama", "llama", config);
  const { attention, feedForward } = layers[0];
  const scaling = attention.rope!.scaling;
  if (scaling?.type === "dynamic" || scaling?.type === "longrope")
    throw unsupported("unknownScaling", `rope_type "${scaling.type}"`);
  if (attention.bidirectional) throw unsupported("unsupportedConfig", "is_causal: false");
  if (feedForward.activation !== "silu") throw unsupported("unsupportedConfig", `hidden_act "${config.hidden_act}"`);
  return {
    vocabularySize: described.vocabularySize,
    contextLength: described.contextLength,
    width: described.width,
    layers: layers.length,
    heads: attention.heads,
    keyValueHeads: attention.keyValueHeads,
    headWidth: attention.headWidth,
    hidden: feedForward.hidden,
    eps: norm.eps,
    tied: described.tied,
    ropeBase: attention.rope!.base,
    ropeScaling: scaling,
    attentionBias: attention.outputBias,
    feedForwardBias: feedForward.bias,
    attentionDropout: config.attention_dropout ?? 0,
  };
}

const unsupported = (code: string, what: string): ArgumentError =>
  new ArgumentError("Llama", code, `${what} is not supported by nn.Llama; load the folder with nn.loadModel`);
