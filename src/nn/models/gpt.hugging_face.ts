/** Reads the `config.json` of a GPT-2 from Hugging Face's `transformers`. */
import { ArgumentError } from "../../core/errors.ts";
import type { LayerDescription } from "./decoder/description.ts";
import type { GPTOptions } from "./gpt.ts";
import { describeConfig } from "./loading/hugging_face.ts";

/** The supported fields of a GPT-2's `config.json`. Missing fields have the defaults of `transformers`. */
export interface Gpt2Config {
  readonly model_type?: string;
  readonly vocab_size?: number;
  readonly n_positions?: number;
  readonly n_embd?: number;
  readonly n_layer?: number;
  readonly n_head?: number;
  readonly n_inner?: number | null;
  readonly activation_function?: string;
  readonly layer_norm_epsilon?: number;
  readonly embd_pdrop?: number;
  readonly attn_pdrop?: number;
  readonly resid_pdrop?: number;
  readonly tie_word_embeddings?: boolean;
  readonly scale_attn_weights?: boolean;
  readonly scale_attn_by_inverse_layer_idx?: boolean;
  readonly reorder_and_upcast_attn?: boolean;
  readonly add_cross_attention?: boolean;
}

/** @internal Converts a config to options of {@link GPT}. @throws {ArgumentError} for an unsupported config. */
export function optionsOfGpt2(config: Gpt2Config): GPTOptions {
  const { norm, layers, ...described } = describeConfig("GPT", "gpt2", config);
  const { attention, feedForward } = layers[0];
  const { activation } = feedForward;
  if (activation !== "gelu" && activation !== "geluTanh")
    throw unsupported(`activation_function "${config.activation_function}"`);
  if (attention.bidirectional) throw unsupported("is_causal: false");
  const isScaled = (layer: LayerDescription) => layer.attention.scale === 1 / Math.sqrt(layer.attention.headWidth);
  if (!layers.every(isScaled)) throw unsupported("attention with a scale other than 1 / √(n_embd / n_head)");
  return {
    vocabularySize: described.vocabularySize,
    contextLength: described.contextLength,
    layers: layers.length,
    heads: attention.heads,
    width: described.width,
    hidden: feedForward.hidden,
    activation,
    eps: norm.eps,
    tied: described.tied,
    dropout: {
      embedding: config.embd_pdrop ?? 0.1,
      attention: config.attn_pdrop ?? 0.1,
      residual: config.resid_pdrop ?? 0.1,
    },
  };
}

const unsupported = (what: string): ArgumentError =>
  new ArgumentError(
    "GPT",
    "unsupportedConfig",
    `${what} is not supported by nn.GPT; load the folder with nn.loadModel`,
  );
