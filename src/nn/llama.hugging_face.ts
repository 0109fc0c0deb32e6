/** Llama in Hugging Face's `transformers`: `config.json` and tensor names. */
import { ArgumentError } from "../core/errors.ts";
import type { RopeScaling } from "../ops/position/rope.ts";
import { narrow } from "../ops/view/slice.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { checkConfig } from "./hugging_face/config.ts";
import { layerMappings, type TensorMapping } from "./hugging_face/mappings.ts";
import type { Llama, LlamaOptions } from "./llama.ts";

/** The scaling of rotary position embeddings in a `config.json`. */
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
  readonly truncate?: boolean;
}

/** The fields of a Llama's `config.json` that are read. */
export interface LlamaConfig {
  readonly model_type?: string;
  readonly vocab_size: number;
  readonly max_position_embeddings: number;
  readonly hidden_size: number;
  readonly intermediate_size: number;
  readonly num_hidden_layers: number;
  readonly num_attention_heads: number;
  readonly num_key_value_heads?: number | null;
  readonly head_dim?: number | null;
  readonly rms_norm_eps?: number;
  readonly rope_theta?: number;
  readonly rope_scaling?: RopeConfig | null;
  /** `rope_theta` and `rope_scaling` in one, since version 5 of `transformers`. */
  readonly rope_parameters?: RopeConfig | null;
  readonly attention_bias?: boolean;
  readonly mlp_bias?: boolean;
  readonly attention_dropout?: number;
  readonly tie_word_embeddings?: boolean;
  readonly hidden_act?: string;
  readonly pretraining_tp?: number;
}

/**
 * @internal The options of the model that a config describes. @throws {ArgumentError} for a config that is not
 * supported.
 */
export function optionsOfLlama(config: LlamaConfig): LlamaOptions {
  const sizes = ["vocab_size", "max_position_embeddings", "hidden_size", "intermediate_size"];
  const counts = ["num_hidden_layers", "num_attention_heads"];
  checkConfig("Llama", config, "llama", [...sizes, ...counts], { hidden_act: "silu" });
  const rope = config.rope_parameters ?? config.rope_scaling ?? {};
  return {
    ...{ vocabularySize: config.vocab_size, contextLength: config.max_position_embeddings },
    ...{ layers: config.num_hidden_layers, heads: config.num_attention_heads, width: config.hidden_size },
    ...{ keyValueHeads: config.num_key_value_heads ?? undefined, headWidth: config.head_dim ?? undefined },
    ...{ hidden: config.intermediate_size, eps: config.rms_norm_eps ?? 1e-6 },
    ...{ ropeBase: rope.rope_theta ?? config.rope_theta ?? 10_000, ropeScaling: scalingOf(rope, config) },
    ...{ attentionBias: config.attention_bias ?? false, feedForwardBias: config.mlp_bias ?? false },
    ...{ attentionDropout: config.attention_dropout ?? 0, tied: config.tie_word_embeddings ?? false },
  };
}

type Scaling = (rope: RopeConfig, original: number) => RopeScaling | undefined;

/** A missing number becomes NaN, which `rope` refuses by name. */
const scalings: Readonly<Record<string, Scaling>> = {
  default: () => undefined,
  linear: ({ factor = Number.NaN }) => ({ type: "linear", factor }),
  llama3: ({ factor = Number.NaN, ...rope }, originalContextLength) => ({
    ...{ type: "llama3", factor, originalContextLength },
    lowFrequencyFactor: rope.low_freq_factor ?? Number.NaN,
    highFrequencyFactor: rope.high_freq_factor ?? Number.NaN,
  }),
  yarn: ({ factor = Number.NaN, ...rope }, originalContextLength) => ({
    ...{ type: "yarn", factor, originalContextLength, truncate: rope.truncate },
    ...{ betaFast: rope.beta_fast, betaSlow: rope.beta_slow, attentionFactor: rope.attention_factor },
  }),
};

function scalingOf(rope: RopeConfig, config: LlamaConfig): RopeScaling | undefined {
  const type = rope.rope_type ?? rope.type ?? "default";
  const scaling = scalings[type];
  if (scaling) return scaling(rope, rope.original_max_position_embeddings ?? config.max_position_embeddings);
  throw new ArgumentError(
    "Llama",
    "unknownScaling",
    `expected rope_type to be one of ${Object.keys(scalings).join(", ")}, got "${type}"`,
  );
}

/** @internal Llama's tensor names. Its three attention projections are rows of one weight here. */
export function llamaMappings(model: Llama): TensorMapping[] {
  const layer = (parameter: string, name: string) => layerMappings(model, parameter, [`model.${name}`]);
  const tied = model.head ? [] : ["lm_head"];
  return [
    ...layerMappings(model, "tokenEmbedding", ["model.embed_tokens", ...tied]),
    ...model.blocks.flatMap(({ attention }, index) => [
      ...layer(`blocks.${index}.attentionNorm`, `layers.${index}.input_layernorm`),
      ...projections(model, index, attention),
      ...layer(`blocks.${index}.attention.output`, `layers.${index}.self_attn.o_proj`),
      ...layer(`blocks.${index}.feedForwardNorm`, `layers.${index}.post_attention_layernorm`),
      ...layer(`blocks.${index}.feedForward.gate`, `layers.${index}.mlp.gate_proj`),
      ...layer(`blocks.${index}.feedForward.up`, `layers.${index}.mlp.up_proj`),
      ...layer(`blocks.${index}.feedForward.down`, `layers.${index}.mlp.down_proj`),
    ]),
    ...layer("finalNorm", "norm"),
    ...(model.head ? layerMappings(model, "head", ["lm_head"]) : []),
  ];
}

function projections(
  model: Llama,
  index: number,
  { heads, keyValueHeads, headWidth }: Llama["blocks"][number]["attention"],
): TensorMapping[] {
  const rows = (from: number, count: number) => (x: Tensor) => narrow(x, 0, from * headWidth, count * headWidth);
  const parts: readonly (readonly [string, TensorMapping["view"]])[] = [
    ["q_proj", rows(0, heads)],
    ["k_proj", rows(heads, keyValueHeads)],
    ["v_proj", rows(heads + keyValueHeads, keyValueHeads)],
  ];
  const parameter = `blocks.${index}.attention.queryKeyValue`;
  return parts.flatMap(([name, view]) =>
    layerMappings(model, parameter, [`model.layers.${index}.self_attn.${name}`], { weight: view, bias: view }),
  );
}
