/**
 * The supported encoder-decoder models, as differences from BART. Each row follows the architecture's paper or its code
 * in Hugging Face's `transformers`; `docs/translation.md` documents them. BART has learned positions from row 2 on, a
 * norm of the embeddings, LayerNorm after each part of a block, and biases.
 */
import type { Json } from "../../../../io/json.ts";

/** How a model differs from BART. */
export interface EncoderDecoderRow {
  /** Whether the model is a T5: RMSNorm before each part, no biases, scores of distances, and other names of fields. */
  readonly t5?: boolean;
  /** Whether each block has scores of distances. Default: all blocks share the first block's scores. */
  readonly distancesPerBlock?: boolean;
  /** When hidden states are divided by √width before the head: only if the config ties the head, always, or never. */
  readonly headScale?: "ifTied" | "always";
  /** Positions that are sines and cosines: the paper's, or fairseq's, which count from the padding token. */
  readonly sinusoids?: "paper" | "fairseq";
  /** Whether embeddings have no norm. */
  readonly noEmbeddingNorm?: boolean;
  /** Whether norms are before each part of a block, with one after the last block. */
  readonly normsBefore?: boolean;
  /** Whether the checkpoint may have two tables of token embeddings, as the config says. */
  readonly separateEmbeddings?: boolean;
  /** Whether the decoder's input for labels begins with their last token, which is a language. */
  readonly shiftsLast?: boolean;
}

const fairseq = { sinusoids: "fairseq", noEmbeddingNorm: true, normsBefore: true } as const;

/** The models by the `model_type` of a `config.json`. */
export const encoderDecoderRows = {
  // T5, FLAN-T5
  t5: { t5: true, headScale: "ifTied" },
  mt5: { t5: true },
  umt5: { t5: true, distancesPerBlock: true, headScale: "always" },
  bart: {},
  // mBART, mBART-50
  mbart: { normsBefore: true, shiftsLast: true },
  // Marian, OPUS-MT
  marian: { sinusoids: "paper", noEmbeddingNorm: true, separateEmbeddings: true },
  // M2M100, NLLB-200
  m2m_100: fairseq,
  pegasus: { sinusoids: "paper", noEmbeddingNorm: true, normsBefore: true },
} as const satisfies Readonly<Record<string, EncoderDecoderRow>>;

/** The name of an architecture. */
export type EncoderDecoderName = keyof typeof encoderDecoderRows;

/** Whether a `model_type` belongs to an encoder-decoder model. */
export const isEncoderDecoder = (type: unknown): type is EncoderDecoderName =>
  typeof type === "string" && Object.hasOwn(encoderDecoderRows, type);

/** Returns a row with the general type. */
export const rowOf = (name: EncoderDecoderName): EncoderDecoderRow => encoderDecoderRows[name];

type Fields = Readonly<Record<string, Json>>;

const common = {
  is_encoder_decoder: true,
  is_decoder: false,
  tie_word_embeddings: true,
  architectures: null,
  decoder_start_token_id: null,
  pad_token_id: null,
  bos_token_id: null,
  eos_token_id: null,
} as const satisfies Fields;

const t5 = {
  ...common,
  d_model: 512,
  d_kv: 64,
  num_decoder_layers: null,
  relative_attention_num_buckets: 32,
  relative_attention_max_distance: 128,
  layer_norm_epsilon: 1e-6,
  pad_token_id: 0,
  eos_token_id: 1,
} as const satisfies Fields;

const mt5 = {
  ...t5,
  vocab_size: 250_112,
  d_ff: 1024,
  num_layers: 8,
  num_heads: 6,
  feed_forward_proj: "gated-gelu",
  decoder_start_token_id: 0,
} as const satisfies Fields;

const bart = {
  ...common,
  vocab_size: 50_265,
  max_position_embeddings: 1024,
  encoder_layers: 12,
  encoder_ffn_dim: 4096,
  encoder_attention_heads: 16,
  decoder_layers: 12,
  decoder_ffn_dim: 4096,
  decoder_attention_heads: 16,
  activation_function: "gelu",
  d_model: 1024,
  scale_embedding: false,
  pad_token_id: 1,
  bos_token_id: 0,
  eos_token_id: 2,
  decoder_start_token_id: 2,
  forced_eos_token_id: 2,
} as const satisfies Fields;

/**
 * The fields by the `model_type` of a config, with their default values: those of the config classes of `transformers`
 * 5.23.0.
 */
export const encoderDecoderFields: Readonly<Record<EncoderDecoderName, Fields>> = {
  t5: { ...t5, vocab_size: 32_128, d_ff: 2048, num_layers: 6, num_heads: 8, feed_forward_proj: "relu" },
  mt5,
  umt5: mt5,
  bart,
  mbart: { ...bart, decoder_start_token_id: null },
  marian: {
    ...bart,
    vocab_size: 58_101,
    decoder_vocab_size: null,
    decoder_start_token_id: 58_100,
    pad_token_id: 58_100,
    eos_token_id: 0,
    bos_token_id: null,
    share_encoder_decoder_embeddings: true,
    forced_eos_token_id: 0,
  },
  m2m_100: {
    ...bart,
    vocab_size: 128_112,
    activation_function: "relu",
    scale_embedding: true,
    forced_eos_token_id: null,
  },
  pegasus: {
    ...bart,
    decoder_start_token_id: 0,
    pad_token_id: 0,
    eos_token_id: 1,
    bos_token_id: null,
    forced_eos_token_id: 1,
  },
};
