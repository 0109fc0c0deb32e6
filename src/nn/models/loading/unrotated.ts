/**
 * Describes decoders with other fields than Llama: GPT-2, StarCoder, GPT-Neo and OPT with learned positions, Bloom and
 * MPT, GPT-J and CodeGen.
 */
import type { DecoderDescription, LayerDescription } from "../decoder/description.ts";
import { activationOf } from "./activations.ts";
import { checkKeys, hasNoEffectAnywhere } from "./config_fields.ts";
import type { Settings } from "./settings.ts";

const layersOf = (count: number, layer: (index: number) => LayerDescription): LayerDescription[] =>
  Array.from({ length: count }, (_, index) => layer(index));

function headWidthOf(config: Settings, width: number, heads: number, names: readonly [width: string, heads: string]) {
  if (width % heads === 0) return width / heads;
  throw config.wrong(names[0], `a multiple of ${names[1]}`, width);
}

export const gpt2 = (config: Settings, count: number): DecoderDescription => likeGpt2("gpt2", config, count);

/** StarCoder: GPT-2 whose heads share one key and value if `multi_query` is true. */
export const gptBigCode = (config: Settings, count: number): DecoderDescription =>
  likeGpt2("gpt_bigcode", config, count);

function likeGpt2(architecture: "gpt2" | "gpt_bigcode", config: Settings, count: number): DecoderDescription {
  const [width, heads, contextLength] = [config.whole("n_embd"), config.whole("n_head"), config.whole("n_positions")];
  const headWidth = headWidthOf(config, width, heads, ["n_embd", "n_head"]);
  const activation = activationOf(config, "activation_function");
  const scale = config.flag("scale_attn_weights") ? 1 / Math.sqrt(headWidth) : 1;
  const isByLayer = config.flag("scale_attn_by_inverse_layer_idx", false);
  const isShared = config.flag("multi_query", false);
  return {
    architecture,
    vocabularySize: config.whole("vocab_size"),
    contextLength,
    width,
    norm: { kind: "layerNorm", eps: config.positive("layer_norm_epsilon") },
    learnedPositions: true,
    tied: config.flag("tie_word_embeddings"),
    layers: layersOf(count, (index) => ({
      norms: "before",
      attention: {
        heads,
        keyValueHeads: isShared ? 1 : heads,
        headWidth,
        fused: architecture === "gpt2",
        queryKeyValueBias: true,
        outputBias: true,
        scale: isByLayer ? scale / (index + 1) : scale,
        bidirectional: !config.flag("is_causal"),
      },
      feedForward: { hidden: config.wholeIfAny("n_inner") ?? 4 * width, gated: false, activation, bias: true },
    })),
  };
}

/** GPT-Neo: scores are not scaled, and layers of the type `local` have a window. */
export function gptNeo(config: Settings, count: number): DecoderDescription {
  checkCausal(config);
  const [width, heads] = [config.whole("hidden_size"), config.whole("num_heads")];
  const headWidth = headWidthOf(config, width, heads, ["hidden_size", "num_heads"]);
  const activation = activationOf(config, "activation_function");
  const kinds = kindsOf(config, count);
  const window = config.whole("window_size");
  return {
    architecture: "gpt_neo",
    vocabularySize: config.whole("vocab_size"),
    contextLength: config.whole("max_position_embeddings"),
    width,
    norm: { kind: "layerNorm", eps: config.positive("layer_norm_epsilon") },
    learnedPositions: true,
    tied: config.flag("tie_word_embeddings"),
    layers: layersOf(count, (index) => ({
      norms: "before",
      attention: {
        heads,
        keyValueHeads: heads,
        headWidth,
        queryKeyValueBias: false,
        outputBias: true,
        scale: 1,
        window: kinds[index] === "local" ? window : undefined,
      },
      feedForward: {
        hidden: config.wholeIfAny("intermediate_size") ?? 4 * width,
        gated: false,
        activation,
        bias: true,
      },
    })),
  };
}

/** Returns the kind of each layer of GPT-Neo. `attention_types` lists kinds with the number of their repetitions. */
function kindsOf(config: Settings, count: number): unknown[] {
  const types = config.get("attention_types") ?? [[["global", "local"], 12]];
  const repeated = Array.isArray(types)
    ? types.flatMap((each) => {
        const [kinds, times] = Array.isArray(each) ? each : [];
        return Array.isArray(kinds) && Number.isInteger(times) && times >= 0 && times <= count
          ? Array.from({ length: times }, () => kinds).flat()
          : [undefined];
      })
    : [];
  const kinds = config.get("attention_layers") ?? repeated;
  const isKnown = (kind: unknown) => kind === "global" || kind === "local";
  if (Array.isArray(kinds) && kinds.length === count && kinds.every(isKnown)) return kinds;
  throw config.wrong(
    "attention_types",
    `kinds (global or local) of ${count} layers (num_layers), such as [[["global"], 2]]`,
    types,
  );
}

/** GPT-J: attention and MLP share one norm, and only a part of each head rotates, in adjacent pairs. */
export const gptj = (config: Settings, count: number): DecoderDescription => likeGptj("gptj", config, count);

/** CodeGen: GPT-J whose queries, values and keys are one weight in four parts. */
export function codegen(config: Settings, count: number): DecoderDescription {
  const heads = config.whole("n_head");
  if (heads % 4 !== 0) throw config.wrong("n_head (or num_attention_heads)", "a multiple of 4", heads);
  return likeGptj("codegen", config, count);
}

function likeGptj(architecture: "gptj" | "codegen", config: Settings, count: number): DecoderDescription {
  checkCausal(config);
  const [width, heads, contextLength] = [config.whole("n_embd"), config.whole("n_head"), config.whole("n_positions")];
  const headWidth = headWidthOf(config, width, heads, ["n_embd", "n_head"]);
  const dim = config.whole("rotary_dim");
  if (dim > headWidth || dim % 2 === 1)
    throw config.wrong("rotary_dim", `an even number up to n_embd / n_head, ${headWidth}`, dim);
  if (config.flag("tie_word_embeddings"))
    throw config.refused("tiedBias", "expected tie_word_embeddings to be false, since the head has a bias, got true");
  const activation = activationOf(config, "activation_function");
  return {
    architecture,
    vocabularySize: config.whole("vocab_size"),
    contextLength,
    width,
    norm: { kind: "layerNorm", eps: config.positive("layer_norm_epsilon") },
    tied: false,
    headBias: true,
    layers: layersOf(count, () => ({
      norms: "before",
      parallel: "sharedNorm",
      attention: {
        heads,
        keyValueHeads: heads,
        headWidth,
        queryKeyValueBias: false,
        outputBias: false,
        rope: { base: 10_000, interleaved: true, dim: dim === headWidth ? undefined : dim },
      },
      feedForward: { hidden: config.wholeIfAny("n_inner") ?? 4 * width, gated: false, activation, bias: true },
    })),
  };
}

/** The eps of OPT's norms, which no config changes. */
const OPT_EPS = 1e-5;

export function opt(config: Settings, count: number): DecoderDescription {
  const [width, heads] = [config.whole("hidden_size"), config.whole("num_attention_heads")];
  const headWidth = headWidthOf(config, width, heads, ["hidden_size", "num_attention_heads"]);
  const only = (name: string, value: unknown) => {
    const got = config.get(name);
    if (got === undefined || got === value) return;
    const wanted = `expected ${name} to be ${JSON.stringify(value)}, the only supported value`;
    throw config.refused("unsupportedConfig", `${wanted}, got ${JSON.stringify(got)}`);
  };
  only("do_layer_norm_before", true);
  only("_remove_final_layer_norm", false);
  only("word_embed_proj_dim", width);
  const bias = config.flag("enable_bias");
  const activation = activationOf(config, "activation_function");
  const hasWeight = config.flag("layer_norm_elementwise_affine");
  return {
    architecture: "opt",
    vocabularySize: config.whole("vocab_size"),
    width,
    contextLength: config.whole("max_position_embeddings"),
    norm: { kind: "layerNorm", eps: OPT_EPS, weight: hasWeight, bias: hasWeight },
    learnedPositions: true,
    tied: config.flag("tie_word_embeddings"),
    layers: layersOf(count, () => ({
      norms: "before",
      attention: {
        heads,
        keyValueHeads: heads,
        headWidth,
        queryKeyValueBias: bias,
        outputBias: bias,
        bidirectional: !config.flag("is_causal"),
      },
      feedForward: { hidden: config.whole("ffn_dim"), gated: false, activation, bias },
    })),
  };
}

/**
 * ALiBi slopes: powers of 2^(−8 / n) for n heads. If n is not a power of 2, let m be the largest power of 2 below n:
 * the first m heads have the slopes for m heads, the others every second slope for 2m heads.
 *
 * Source: O. Press et al., "Train short, test long", 2022; Hugging Face's `_get_alibi_slopes` of Bloom and Jina AI's
 * `_get_alibi_head_slopes`.
 */
export function alibiSlopes(heads: number): number[] {
  const most = 2 ** Math.floor(Math.log2(heads));
  const power = (exponent: number, of: number) => 2 ** ((-8 * exponent) / of);
  return Array.from({ length: heads }, (_, head) =>
    head < most ? power(head + 1, most) : power(2 * (head - most) + 1, 2 * most),
  );
}

/** Returns ALiBi's slopes in MPT's order. Source: `build_mpt_alibi_tensor`. */
function mptSlopes(heads: number): number[] {
  const most = 2 ** Math.ceil(Math.log2(heads));
  const all = Array.from({ length: most }, (_, head) => 2 ** ((-8 * (head + 1)) / most));
  if (most === heads) return all;
  const every = (first: number) => all.filter((_, head) => head % 2 === first);
  return [...every(1), ...every(0)].slice(0, heads);
}

/** ALiBi is not defined for later tokens. @throws {ArgumentError} `unsupportedConfig` */
function checkCausal(config: Settings): void {
  if (!config.flag("is_causal"))
    throw config.refused("unsupportedConfig", "expected is_causal to be true, the only supported value, got false");
}

/** The length of Bloom's training texts; ALiBi has no limit, and no config has one. */
const BLOOM_CONTEXT = 2048;

export function bloom(config: Settings, count: number): DecoderDescription {
  checkCausal(config);
  const [width, heads] = [config.whole("hidden_size"), config.whole("n_head")];
  const headWidth = headWidthOf(config, width, heads, ["hidden_size", "n_head"]);
  return {
    architecture: "bloom",
    vocabularySize: config.whole("vocab_size"),
    contextLength: BLOOM_CONTEXT,
    width,
    norm: { kind: "layerNorm", eps: config.positive("layer_norm_epsilon") },
    embeddingNorm: true,
    tied: config.flag("tie_word_embeddings"),
    layers: layersOf(count, () => ({
      norms: "before",
      attention: {
        heads,
        keyValueHeads: heads,
        headWidth,
        queryKeyValueBias: true,
        outputBias: true,
        alibi: alibiSlopes(heads),
      },
      feedForward: { hidden: 4 * width, gated: false, activation: "geluTanh", bias: true },
    })),
  };
}

/** MPT's attention settings: those without an effect, and the only supported value of the others. */
const mptUnused = ["attn_pdrop", "attn_impl"];
const mptOnly: Readonly<Record<string, unknown>> = {
  attn_type: "multihead_attention",
  prefix_lm: false,
  qk_ln: false,
  attn_uses_sequence_id: false,
  alibi: true,
  alibi_bias_max: 8,
};

export function mpt(config: Settings, count: number): DecoderDescription {
  checkCausal(config);
  const [width, heads] = [config.whole("d_model"), config.whole("n_heads")];
  const headWidth = headWidthOf(config, width, heads, ["d_model", "n_heads"]);
  const attention = config.inner("attn_config") ?? config.with(new Map());
  const isRead = (key: string) => key === "clip_qkv" || key === "softmax_scale" || mptUnused.includes(key);
  const isKnown = (key: string) => isRead(key) || hasNoEffectAnywhere(key) || mptOnly[key] === attention.get(key);
  checkKeys(attention, isKnown, "has another value than MPT's");
  const clip = attention.get("clip_qkv") === 0 ? undefined : attention.positiveIfAny("clip_qkv");
  return {
    architecture: "mpt",
    vocabularySize: config.whole("vocab_size"),
    width,
    contextLength: config.whole("max_seq_len"),
    norm: { kind: "layerNorm", eps: config.positive("layer_norm_epsilon"), bias: false },
    tied: config.flag("tie_word_embeddings"),
    layers: layersOf(count, () => ({
      norms: "before",
      attention: {
        heads,
        keyValueHeads: heads,
        headWidth,
        fused: true,
        queryKeyValueBias: false,
        outputBias: false,
        alibi: mptSlopes(heads),
        clip,
        scale: attention.numberIfAny("softmax_scale"),
      },
      feedForward: { hidden: 4 * width, gated: false, activation: "gelu", bias: false },
    })),
  };
}
