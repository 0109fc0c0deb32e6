/** GPT-2 in Hugging Face's `transformers`: `config.json` and tensor names. */
import { ArgumentError } from "../core/errors.ts";
import type { GPT, GPTOptions } from "./gpt.ts";
import { checkConfig } from "./hugging_face/config.ts";
import { conv1D, type LayerViews, layerMappings, type TensorMapping } from "./hugging_face/mappings.ts";

/** The fields of a GPT-2's `config.json` that are read. */
export interface Gpt2Config {
  readonly model_type?: string;
  readonly vocab_size: number;
  readonly n_positions: number;
  readonly n_embd: number;
  readonly n_layer: number;
  readonly n_head: number;
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

const activations: Readonly<Record<string, NonNullable<GPTOptions["activation"]>>> = {
  gelu: "gelu",
  gelu_new: "geluTanh",
  gelu_pytorch_tanh: "geluTanh",
};

/**
 * @internal The options of the model that a config describes. @throws {ArgumentError} for a config that is not
 * supported.
 */
export function optionsOfGpt2(config: Gpt2Config): GPTOptions {
  checkConfig("GPT", config, "gpt2", ["vocab_size", "n_positions", "n_embd", "n_layer", "n_head"], {
    scale_attn_weights: true,
    scale_attn_by_inverse_layer_idx: false,
    add_cross_attention: false,
  });
  const { activation_function = "gelu_new" } = config;
  const activation = activations[activation_function];
  if (activation === undefined)
    throw new ArgumentError(
      "GPT",
      "unknownActivation",
      `expected activation_function to be one of ${Object.keys(activations).join(", ")}, got "${activation_function}"`,
    );
  return {
    ...{ vocabularySize: config.vocab_size, contextLength: config.n_positions, layers: config.n_layer },
    ...{ heads: config.n_head, width: config.n_embd, hidden: config.n_inner ?? undefined, activation },
    ...{ eps: config.layer_norm_epsilon ?? 1e-5, tied: config.tie_word_embeddings ?? true },
    dropout: {
      embedding: config.embd_pdrop ?? 0.1,
      attention: config.attn_pdrop ?? 0.1,
      residual: config.resid_pdrop ?? 0.1,
    },
  };
}

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
