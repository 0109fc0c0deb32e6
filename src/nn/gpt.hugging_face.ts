/** GPT-2 in Hugging Face's `transformers`: `config.json` and tensor names. */
import { ArgumentError } from "../core/errors.ts";
import type { LayerDescription } from "./decoder/description.ts";
import type { GPT, GPTOptions } from "./gpt.ts";
import { conv1D, type LayerViews, layerMappings, type TensorMapping } from "./hugging_face/mappings.ts";
import { describeConfig } from "./loading/hugging_face.ts";

/** The fields of a GPT-2's `config.json` that are read. Those that are missing have the defaults of `transformers`. */
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

/**
 * @internal The options of the model that a config describes. @throws {ArgumentError} for a config that is not
 * supported.
 */
export function optionsOfGpt2(config: Gpt2Config): GPTOptions {
  const { norm, layers, ...described } = describeConfig("GPT", "gpt2", config);
  const { attention, feedForward } = layers[0]!;
  const { activation } = feedForward;
  if (activation === "silu") throw unsupported(`activation_function "${config.activation_function}"`);
  if (attention.bidirectional) throw unsupported("is_causal: false");
  const isScaled = (own: LayerDescription) => own.attention.scale === 1 / Math.sqrt(own.attention.headWidth);
  if (!layers.every(isScaled)) throw unsupported("attention with another scale than 1 / √(n_embd / n_head)");
  return {
    ...{ vocabularySize: described.vocabularySize, contextLength: described.contextLength, layers: layers.length },
    ...{ heads: attention.heads, width: described.width, hidden: feedForward.hidden, activation },
    ...{ eps: norm.eps, tied: described.tied },
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
    `${what} is not supported by nn.GPT. Load the folder with nn.loadModel`,
  );

/** @internal GPT-2's tensor names. Its `Conv1D` has weights [inputs, outputs]. */
export function gpt2Mappings(model: GPT): TensorMapping[] {
  const layer = (parameter: string, name: string, views?: LayerViews) =>
    layerMappings(model, parameter, [`transformer.${name}`, name], views);
  const tied = model.head ? [] : ["lm_head"];
  return [
    ...layerMappings(model, "tokenEmbedding", ["transformer.wte", "wte", ...tied]),
    ...layer("positionEmbedding", "wpe"),
    ...model.blocks.flatMap((_, index) => [
      ...layer(`blocks.${index}.attentionNorm`, `h.${index}.ln_1`),
      ...layer(`blocks.${index}.attention.queryKeyValue`, `h.${index}.attn.c_attn`, conv1D),
      ...layer(`blocks.${index}.attention.output`, `h.${index}.attn.c_proj`, conv1D),
      ...layer(`blocks.${index}.feedForwardNorm`, `h.${index}.ln_2`),
      ...layer(`blocks.${index}.feedForward.up`, `h.${index}.mlp.c_fc`, conv1D),
      ...layer(`blocks.${index}.feedForward.down`, `h.${index}.mlp.c_proj`, conv1D),
    ]),
    ...layer("finalNorm", "ln_f"),
    ...(model.head ? layerMappings(model, "head", ["lm_head"]) : []),
  ];
}
