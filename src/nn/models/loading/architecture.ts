/** How a row of the table of architectures states differences from Llama. */
import type { Json } from "../../../io/json.ts";
import type {
  AttentionDescription,
  FeedForwardDescription,
  LayerDescription,
  NormPlaces,
  RecurrentDescription,
} from "../decoder/description.ts";
import type { Settings } from "./settings.ts";

type Parallel = LayerDescription["parallel"];
type Activation = FeedForwardDescription["activation"];

/** LayerNorm of an architecture. */
interface LayerNormRow {
  readonly eps: string | number;
  /** Whether the norm has a bias. Default true. */
  readonly bias?: boolean;
  /** Whether the norm has a weight. Default true. */
  readonly weight?: boolean;
}

/** `true`, `false`, or the name of the config field with this setting. */
type Bias = boolean | string;

/** The biases of an architecture. */
interface BiasesRow {
  readonly queryKeyValue?: Bias;
  readonly output?: Bias;
  readonly feedForward?: Bias;
  readonly head?: Bias;
}

/** A mixture of experts. */
interface ExpertsRow {
  /** The probabilities of the chosen experts are divided by their sum. Default: as `norm_topk_prob` says. */
  readonly normalized?: true;
  /** Whether the router has a bias. */
  readonly routerBias?: boolean;
  /** The experts have no biases, even if the shared expert has. */
  readonly bias?: false;
  /** DeepSeek's router: a sigmoid of each logit, a correction for the choice, groups, and a factor. */
  readonly grouped?: boolean;
  /** DeepSeek-V2's router: a factor, and groups if `topk_method` is `group_limited_greedy`. */
  readonly limited?: boolean;
  /** MiniMax-M2's router: a sigmoid of each logit, a bias for the choice only, and a factor if the config has one. */
  readonly sigmoid?: boolean;
  /** Llama 4's router: the sigmoid of an expert's logit multiplies its input. */
  readonly scalesInputs?: boolean;
  /** Phi-3.5-MoE's router, SparseMixer. */
  readonly sparseMixer?: boolean;
  /** Whether a bias is added to the softmax's probabilities for the choice of experts, but not for their weights. */
  readonly corrected?: boolean;
  /** Added to the sum of the chosen experts' probabilities, by which they are divided. Default 0. */
  readonly epsilon?: number;
  /** The field with the size of a shared expert without a gate. There is none if the size is 0. */
  readonly beside?: string;
  /**
   * The size of the shared expert, which computes all tokens: the value of this field, with a sigmoid gate; or the size
   * of `n_shared_experts` experts.
   */
  readonly shared?: string;
}

/** How an architecture differs from Llama. */
export interface Architecture {
  /** The field with the number of layers. Default `num_hidden_layers`. */
  readonly layersField?: string;
  /** If given, norms are LayerNorm, not RMSNorm. States the field with the eps, or the eps itself. */
  readonly norm?: LayerNormRow;
  /** Where norms are applied. Default: before attention and feed-forward. */
  readonly norms?: NormPlaces;
  /** The flag that adds norms after attention and feed-forward. Default: as `norms` says. */
  readonly postNormField?: string;
  /**
   * Whether attention and feed-forward read the same input, through one norm or two. With `key`, only if this field is
   * true.
   */
  readonly parallel?: { readonly norms: 1 | 2; readonly key?: string } | ((config: Settings) => Parallel);
  /** Whether weights of norms are stored as differences from 1. */
  readonly normsFromOne?: boolean;
  /** Which layers have a recurrent layer instead of attention, and its description. Default: none. */
  readonly recurrent?: (config: Settings, index: number) => RecurrentDescription | undefined;
  /** Whether the recurrent layer runs in parallel with attention, and both have factors, as in Falcon-H1. */
  readonly besideAttention?: boolean;
  /**
   * Whether a sigmoid gate multiplies the heads' results. Its projection has the weight's rows after those of each
   * head's queries, or with `"apart"` a separate weight without a bias. Default: no gate.
   */
  readonly gatedHeads?: true | "apart";
  /** The norm of queries and keys. */
  readonly queryKeyNorm?: NonNullable<AttentionDescription["queryKeyNorm"]>;
  /** The field that says whether there is such a norm. Default: there is one. */
  readonly queryKeyNormField?: string;
  /**
   * Which layers have biases: always, or as a field says. Default: `attention_bias` for the four projections of
   * attention, `mlp_bias` for the feed-forward, none for the head.
   */
  readonly biases?: BiasesRow;
  /**
   * Whether queries, keys and values are one weight, and gate and up are another. `gateUp` and `queryKeyValue`: only
   * these are fused.
   */
  readonly fused?: boolean | "gateUp" | "queryKeyValue";
  /** Whether the queries, the key and the value of each key head are rows next to each other in one weight. */
  readonly groupedHeads?: boolean;
  /** Returns the settings of one layer, if layers differ. */
  readonly ofLayer?: (config: Settings, index: number) => Settings;
  /** Adds parts that Llama's layers lack. */
  readonly parts?: (config: Settings, index: number, layer: LayerDescription) => LayerDescription;
  /** Computes fields whose names in the config differ from Llama's. */
  readonly derived?: (config: Settings) => Readonly<Record<string, unknown>>;
  /** Whether queries, keys and values come from latent vectors. */
  readonly latent?: boolean;
  /** Whether `head_dim` repeats the number of elements of a head that rotate. */
  readonly latentHeadDim?: boolean;
  /** Whether a part of each head of latent attention rotates. Default true. */
  readonly latentRotates?: false;
  /** Whether each head has a learned score without a value. */
  readonly sinks?: boolean;
  /** Whether gate and up are clamped by `swiglu_limit`, and the gate is multiplied by `swiglu_alpha` in its sigmoid. */
  readonly clampedGate?: boolean;
  /** Whether RMSNorms precede the output projection of attention and the down projection of the feed-forward. */
  readonly innerNorms?: boolean;
  /** Whether the activation may be xIELU, with learned parameters. */
  readonly xielu?: boolean;
  /** Whether queries, keys and values are clamped to ±`clip_qkv`. */
  readonly clips?: boolean;
  readonly activation?: Activation;
  /** The field with the activation. Default `hidden_act`. */
  readonly activationField?: string;
  /** Whether the activation `gelu` means its tanh approximation. */
  readonly tanhGelu?: boolean;
  /** Whether the feed-forward is an MLP without a gate. */
  readonly plain?: boolean;
  /** Whether positions have learned embeddings instead of rotations. */
  readonly learnedPositions?: boolean;
  /** Whether embeddings are multiplied by √width, always or as this field says. */
  readonly scaledEmbeddings?: Bias;
  /**
   * Whether `embedding_multiplier`, `attention_multiplier` and `residual_multiplier` scale embeddings, scores, and
   * outputs of attention and feed-forward, and logits are divided by `logits_scaling`.
   */
  readonly multipliers?: boolean;
  /** Multiplies logits by `logit_scale`, or by the field with this name. */
  readonly logitScale?: boolean | string;
  /** Whether scores are multiplied by 1 / √query_pre_attn_scalar instead of 1 / √headWidth. */
  readonly queryScalar?: boolean;
  /** Whether scores are soft-capped by `attn_logit_softcapping`. */
  readonly softcaps?: boolean;
  /**
   * Which layers have a sliding window. `all`: every layer. `every`: all but the last layer in each group of that many
   * layers, or all but its `first`. `upper`: all but the first `max_window_layers`. `unrotated`: layers without
   * rotation. `layer_types` takes precedence. Default: none.
   */
  readonly windows?: "all" | "upper" | "unrotated" | { readonly every: number; readonly first?: true };
  /** The base of the rotation in layers with a window, which have no scaling; or the name of its field. */
  readonly localBase?: string | number;
  /** Whether `layer_rope_theta` lists the base of each layer's rotation, or 0 for layers without rotation. */
  readonly layerThetas?: boolean;
  /** Whether the rotation may have settings for image tokens. They have no effect on text. */
  readonly axes?: boolean;
  /** Whether pairs of adjacent elements rotate, instead of elements of two halves. */
  readonly interleaved?: boolean;
  /**
   * The layers without rotation. `listed`: layers whose entry in `no_rope_layers` is 0. `unwindowed`: layers without a
   * window. `unwindowedOfMixed`: layers without a window, if other layers have one. `unlessRope`: all layers, unless
   * `position_embedding_type` is rope. Default: none.
   */
  readonly unrotated?: "listed" | "unwindowed" | "unwindowedOfMixed" | "unlessRope";
  /** Whether `llama_4_scaling_beta` of the rotation scales queries by their positions. */
  readonly tempered?: boolean;
  /** Llama 4's attention: chunks, a norm after the rotation, and scaled queries in layers without rotation. */
  readonly chunked?: boolean;
  /** The rotation settings of a config that has none. */
  readonly rotation?: Readonly<Record<string, Json>>;
  /** How experts are chosen and weighted. Default: no experts. */
  readonly experts?: ExpertsRow;
  /**
   * The fraction of each head that rotates if `partial_rotary_factor` is missing. Default: the whole head rotates, and
   * the field is ignored.
   */
  readonly partialRotation?: number;
  /** Whether the whole of each head must rotate: partial rotation is an error. */
  readonly wholeRotation?: true;
  /** The field that replaces `partial_rotary_factor`. */
  readonly partialField?: string;
  /** The field with the base of the rotation. Default `rope_theta`. */
  readonly baseField?: string;
  /** Whether `alpha` of the scaling `dynamic` replaces it by a larger base. */
  readonly alphaBase?: boolean;
  /** Whether LongRoPE is the only scaling; older files call it `su` or `yarn`. */
  readonly longRopeOnly?: boolean;
  /** Whether LongRoPE's attention factor is `short_mscale`, which `long_mscale` must repeat. */
  readonly mscales?: boolean;
}
