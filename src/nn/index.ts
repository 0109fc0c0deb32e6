/** Layers, models and generation. Exported as `nn`. */
export * from "./activations.ts";
export { type AttentionOptions, MultiHeadAttention, type RotaryOptions } from "./attention.ts";
export * from "./batch_norm.ts";
export { Bilinear, type BilinearOptions } from "./bilinear.ts";
export { type BlockOptions, TransformerBlock } from "./block.ts";
export {
  AttentionCache,
  type AttentionCacheOptions,
  KeyValueCache,
  type KeyValueCacheOptions,
} from "./cache.ts";
export { KeyValueCacheBatch } from "./cache_batch.ts";
export type { CacheFormat, KeysAndValues } from "./cache_store.ts";
export {
  type CalibrateOptions,
  type Calibration,
  calibrate,
  type LayerCalibration,
} from "./calibration/calibrate.ts";
export { type CheckpointBody, checkpoint } from "./checkpoint.ts";
export { Flatten, type FlattenOptions, Identity, ModuleDict, ModuleList, Unflatten } from "./containers.ts";
export * from "./convolution.ts";
export type { AttentionInputs } from "./decoder/attention.ts";
export type { Decoder } from "./decoder/decoder.ts";
export type {
  AttentionDescription,
  DecoderDescription,
  DynamicScaling,
  ExpertsDescription,
  FeedForwardDescription,
  LayerDescription,
  LongScaling,
  NormDescription,
  RopeDescription,
} from "./decoder/description.ts";
export { Dropout } from "./dropout.ts";
export {
  Embedding,
  EmbeddingBag,
  type EmbeddingBagInputs,
  type EmbeddingBagOptions,
  type EmbeddingOptions,
} from "./embedding.ts";
export { type FeedForwardOptions, MLP, type MLPOptions, SwiGLU } from "./feed_forward.ts";
export { Batcher, type BatcherOptions } from "./generation/batcher.ts";
export type { TokenConstraint } from "./generation/constraint.ts";
export { type EmbedOptions, embed } from "./generation/embed.ts";
export { generate } from "./generation/generate.ts";
export type { BatchOptions, GenerateOptions, SamplingOptions } from "./generation/options.ts";
export type { Tokens } from "./generation/prompt.ts";
export type { FinishReason, GeneratedToken, TokenChance } from "./generation/sequence.ts";
export { type GenerateTextOptions, generateText, type TextCodec } from "./generation/text.ts";
export { TokenStream } from "./generation/token_stream.ts";
export type { Gpt2Config } from "./gpt.hugging_face.ts";
export { GPT, type GPTDropout, type GPTOptions } from "./gpt.ts";
export type { BackwardHook, BackwardPreHook, ForwardHook, ForwardPreHook, Gradients } from "./hooks.ts";
export type { TensorSource } from "./hugging_face/mappings.ts";
export {
  gpt2Initialization,
  type Initialization,
  type Initializer,
  type LayerOptions,
  llamaInitialization,
  noInitialization,
  normalOf,
  pytorchInitialization,
} from "./initialization.ts";
export { type CacheOptions, type DecodingBlock, LanguageModel, type LanguageModelInputs } from "./language_model.ts";
export { Linear, type LinearOptions } from "./linear.ts";
export type { LlamaConfig, RopeConfig } from "./llama.hugging_face.ts";
export { Llama, type LlamaOptions } from "./llama.ts";
export type { GenerationSettings } from "./loading/generation.ts";
export { type LoadedModel, type LoadModelOptions, loadModel } from "./loading/load_model.ts";
export type { MemoryReport } from "./loading/plan.ts";
export { LocalResponseNorm } from "./local_response_norm.ts";
export type { LoraLinear } from "./lora/layer.ts";
export { type LoraAdapter, type LoraOptions, lora } from "./lora/lora.ts";
export { loadLora, saveLora } from "./lora/peft.ts";
export * from "./losses.ts";
export * from "./lp_pooling.ts";
export * from "./max_pooling.ts";
export { Module } from "./module.ts";
export {
  LayerNorm,
  type LayerNormOptions,
  type Normalization,
  RMSNorm,
  type RMSNormOptions,
} from "./normalization.ts";
export * from "./padding.ts";
export * from "./parameter_containers.ts";
export {
  type Parametrization,
  type RemoveParametrizationsOptions,
  registerParametrization,
  removeParametrizations,
} from "./parametrization.ts";
export {
  AdaptiveAvgPool1d,
  AdaptiveAvgPool2d,
  AdaptiveAvgPool3d,
  AvgPool1d,
  AvgPool2d,
  AvgPool3d,
  MaxPool1d,
  MaxPool2d,
  MaxPool3d,
  type MaxPoolLayerOptions,
  type Pooled,
} from "./pooling.ts";
export { QuantizedEmbedding } from "./quantized_embedding.ts";
export {
  Int4Linear,
  type Int4LinearOptions,
  QuantizedLinear,
  type QuantizedLinearOptions,
} from "./quantized_linear.ts";
export {
  type LayerNames,
  type LoadQuantizedOptions,
  loadQuantized,
  type ModelRounding,
  type QuantizationReport,
  type QuantizedLayer,
  type QuantizeModelOptions,
  quantizeModel,
} from "./quantized_model.ts";
export * from "./rearrangement.ts";
export * from "./recurrent/cells.ts";
export * from "./recurrent/layers.ts";
export { AlphaDropout, Dropout1d, Dropout2d, Dropout3d, FeatureAlphaDropout } from "./regularization.ts";
export { Sequential, type Step } from "./sequential.ts";
export { type LoadOptions, type LoadReport, type StateDict, StateDictError } from "./state_dict.ts";
export * from "./thresholds.ts";
export { summary } from "./traced_summary.ts";
export * from "./transformer/attention.ts";
export {
  type DecoderInputs,
  type EncoderLayerInputs,
  type LayerOrder,
  type TransformerActivation,
  TransformerDecoderLayer,
  TransformerEncoderLayer,
  type TransformerLayerOptions,
} from "./transformer/layers.ts";
export * from "./transformer/stacks.ts";
export {
  Upsample,
  type UpsampleOptions,
  UpsamplingBilinear2d,
  UpsamplingNearest2d,
  type UpsamplingOptions,
} from "./upsample.ts";
export * from "./weight_norms.ts";
export * from "./weighted_losses.ts";
