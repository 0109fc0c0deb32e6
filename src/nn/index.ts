/** Layers, models and generation. Exported as `nn`. */

export type { TokenConstraint } from "../text/constraint/token_constraint.ts";
export { KeyValueCacheBatch } from "./cache/batch.ts";
export {
  AttentionCache,
  type AttentionCacheOptions,
  KeyValueCache,
  type KeyValueCacheOptions,
} from "./cache/cache.ts";
export type { CacheFormat, KeysAndValues } from "./cache/store.ts";
export {
  type GeneratedText,
  generateBatch,
} from "./generation/batch/generate_batch.ts";
export type { GenerateBatchOptions } from "./generation/batch/options.ts";
export { Batcher, type BatcherOptions } from "./generation/batcher.ts";
export { type EmbedOptions, embed } from "./generation/embed.ts";
export { generate } from "./generation/generate.ts";
export type { BatchOptions, GenerateOptions, SamplingOptions } from "./generation/options.ts";
export type { FinishReason, GeneratedToken, TokenChance } from "./generation/sequence.ts";
export { type GenerateTextOptions, generateText, type TextCodec } from "./generation/text.ts";
export {
  type SummarizeOptions,
  summarize,
  type TextToTextOptions,
  type TranslateOptions,
  textToText,
  translate,
} from "./generation/texts/text_to_text.ts";
export { TokenStream } from "./generation/token_stream.ts";
export * as init from "./init/index.ts";
export * from "./layers/activations.ts";
export {
  BatchNorm1d,
  BatchNorm2d,
  BatchNorm3d,
  type BatchNormLayerOptions,
  type ChannelNormLayerOptions,
  GroupNorm,
  InstanceNorm1d,
  InstanceNorm2d,
  InstanceNorm3d,
  type InstanceNormLayerOptions,
} from "./layers/batch_norm.ts";
export { Bilinear, type BilinearOptions } from "./layers/bilinear.ts";
export { type CheckpointBody, checkpoint } from "./layers/checkpoint.ts";
export { Flatten, type FlattenOptions, Identity, ModuleDict, ModuleList, Unflatten } from "./layers/containers.ts";
export {
  Conv1d,
  Conv2d,
  Conv3d,
  type ConvOptions,
  ConvTranspose1d,
  ConvTranspose2d,
  ConvTranspose3d,
  type ConvTransposeOptions,
} from "./layers/convolution.ts";
export { Dropout } from "./layers/dropout.ts";
export {
  Embedding,
  EmbeddingBag,
  type EmbeddingBagInputs,
  type EmbeddingBagOptions,
  type EmbeddingOptions,
} from "./layers/embedding.ts";
export {
  FractionalMaxPool2d,
  FractionalMaxPool3d,
  type FractionalMaxPoolLayerOptions,
} from "./layers/fractional_pooling.ts";
export type { BackwardHook, BackwardPreHook, ForwardHook, ForwardPreHook, Gradients } from "./layers/hooks.ts";
export {
  gpt2Initialization,
  type Initialization,
  type Initializer,
  type LayerOptions,
  llamaInitialization,
  noInitialization,
  normalOf,
  pytorchInitialization,
} from "./layers/initialization.ts";
export { Linear, type LinearOptions } from "./layers/linear.ts";
export { LocalResponseNorm } from "./layers/local_response_norm.ts";
export * from "./layers/losses.ts";
export { Module } from "./layers/module.ts";
export {
  LayerNorm,
  type LayerNormOptions,
  type Normalization,
  RMSNorm,
  type RMSNormOptions,
} from "./layers/normalization.ts";
export {
  CircularPad1d,
  CircularPad2d,
  CircularPad3d,
  ConstantPad1d,
  ConstantPad2d,
  ConstantPad3d,
  ReflectionPad1d,
  ReflectionPad2d,
  ReflectionPad3d,
  ReplicationPad1d,
  ReplicationPad2d,
  ReplicationPad3d,
  ZeroPad1d,
  ZeroPad2d,
  ZeroPad3d,
} from "./layers/padding.ts";
export * from "./layers/parameter_containers.ts";
export {
  type Parametrization,
  type RemoveParametrizationsOptions,
  registerParametrization,
  removeParametrizations,
} from "./layers/parametrization.ts";
export {
  AdaptiveAvgPool1d,
  AdaptiveAvgPool2d,
  AdaptiveAvgPool3d,
  AdaptiveMaxPool1d,
  AdaptiveMaxPool2d,
  AdaptiveMaxPool3d,
  type AdaptiveMaxPoolLayerOptions,
  AvgPool1d,
  AvgPool2d,
  AvgPool3d,
  LPPool1d,
  LPPool2d,
  LPPool3d,
  MaxPool1d,
  MaxPool2d,
  MaxPool3d,
  type MaxPoolLayerOptions,
  MaxUnpool1d,
  MaxUnpool2d,
  MaxUnpool3d,
  type MaxUnpoolLayerOptions,
  type Pooled,
} from "./layers/pooling.ts";
export * from "./layers/rearrangement.ts";
export * from "./layers/recurrent/cells.ts";
export * from "./layers/recurrent/layers.ts";
export { AlphaDropout, Dropout1d, Dropout2d, Dropout3d, FeatureAlphaDropout } from "./layers/regularization.ts";
export { Sequential, type Step } from "./layers/sequential.ts";
export { type LoadOptions, type LoadReport, type StateDict, StateDictError } from "./layers/state_dict.ts";
export { summary } from "./layers/traced_summary.ts";
export * from "./layers/upsample.ts";
export * from "./layers/weight_norms.ts";
export { type AttentionOptions, MultiHeadAttention, type RotaryOptions } from "./models/attention.ts";
export { type BlockOptions, TransformerBlock } from "./models/block.ts";
export type { AttentionInputs } from "./models/decoder/attention.ts";
export type { Decoder } from "./models/decoder/decoder.ts";
export type {
  AttentionDescription,
  DecoderDescription,
  DynamicScaling,
  ExpertsDescription,
  FeedForwardDescription,
  LatentDescription,
  LayerDescription,
  LongScaling,
  NormDescription,
  RopeDescription,
  TemperatureDescription,
} from "./models/decoder/description.ts";
export type {
  BucketsDescription,
  DenseDescription,
  DisentangledDescription,
  DistanceProjections,
  EmbeddingsDescription,
  EncoderActivation,
  EncoderAttentionDescription,
  EncoderDescription,
  EncoderLayerDescription,
  EncoderTask,
  HeadDescription,
  PositionsDescription,
  SinusoidsDescription,
} from "./models/encoder/description.ts";
export type { Encoder, EncoderInputs } from "./models/encoder/encoder.ts";
export type { EncoderLabels, LabelScores } from "./models/encoder/labels.ts";
export type { Pooling, SentenceDescription, SentenceHead, SentenceStep } from "./models/encoder/sentence.ts";
export type { EncoderDecoderDescription } from "./models/encoder_decoder/description.ts";
export type { EncodedTexts } from "./models/encoder_decoder/encoded.ts";
export type { DecodeInputs, EncoderDecoder, Seq2SeqLossInputs } from "./models/encoder_decoder/encoder_decoder.ts";
export type { BatchDefaults, EarlyStopping } from "./models/encoder_decoder/texts.ts";
export { type FeedForwardOptions, MLP, type MLPOptions, SwiGLU } from "./models/feed_forward.ts";
export type { Gpt2Config } from "./models/gpt.hugging_face.ts";
export { GPT, type GPTDropout, type GPTOptions } from "./models/gpt.ts";
export type { TensorSource } from "./models/hugging_face/mappings.ts";
export {
  type CacheOptions,
  type DecodingBlock,
  LanguageModel,
  type LanguageModelInputs,
} from "./models/language_model.ts";
export type { LlamaConfig, RopeConfig } from "./models/llama.hugging_face.ts";
export { Llama, type LlamaOptions } from "./models/llama.ts";
export { createModel } from "./models/loading/create_model.ts";
export type { GenerationSettings } from "./models/loading/generation.ts";
export { type LoadedModel, type LoadModelOptions, loadModel } from "./models/loading/load_model.ts";
export type { LoadableModel } from "./models/loading/opened.ts";
export type { MemoryReport } from "./models/loading/plan.ts";
export { loadChatProcessor } from "./models/loading/vision_language/processor.ts";
export { type LoraAdapter, type LoraOptions, lora } from "./models/lora/lora.ts";
export { loadLora, saveLora } from "./models/lora/peft.ts";
export type { ImageClassifier } from "./models/vision/classifier/classifier.ts";
export type { DepthDescription, DepthLevel } from "./models/vision/depth/description.ts";
export type { DepthEstimator } from "./models/vision/depth/estimator.ts";
export type { Fusion, Reassemble, ResidualConvolutions } from "./models/vision/depth/neck.ts";
export type {
  DetectorDescription,
  DualDescription,
  LearnedGrid,
  PatchesDescription,
  TextPooling,
  VisionDescription,
  VisionHead,
  VisionPooling,
} from "./models/vision/description.ts";
export type { DetectionHead, Detections, ObjectDetector } from "./models/vision/detector.ts";
export type { DetrBlock, DetrBlockSizes, DetrMemory } from "./models/vision/detr/block.ts";
export type { DetrDescription, DetrStack } from "./models/vision/detr/description.ts";
export type { Detr } from "./models/vision/detr/detr.ts";
export type { DualEncoder } from "./models/vision/dual_encoder.ts";
export type { FixedBatchNorm, Grid } from "./models/vision/planes.ts";
export type { ImageFilter, ImageProcessing, ImageSize } from "./models/vision/processor/description.ts";
export { loadImageProcessor } from "./models/vision/processor/load_processor.ts";
export { ImageProcessor } from "./models/vision/processor/processor.ts";
export type { ProjectedAttention } from "./models/vision/projected_attention.ts";
export type { ResNetDescription, ResNetStageDescription } from "./models/vision/resnet/description.ts";
export type { NormedConvolution, ResNet, ResNetBlock } from "./models/vision/resnet/resnet.ts";
export type { RtDetrBlock } from "./models/vision/rt_detr/block.ts";
export type { DeformableAttention, LevelStates } from "./models/vision/rt_detr/deformable_attention.ts";
export type { RtDetrDescription } from "./models/vision/rt_detr/description.ts";
export type { CrossStageLayer, Pyramid, RepVggBlock } from "./models/vision/rt_detr/pyramid.ts";
export type { RtDetr } from "./models/vision/rt_detr/rt_detr.ts";
export type {
  HieraDescription,
  HieraStageDescription,
  PromptedDescription,
  Sam2Description,
  SamDecoderDescription,
  SamDescription,
  SamEncoderDescription,
} from "./models/vision/sam/description.ts";
export type { Hiera, HieraAttention, HieraBlock } from "./models/vision/sam/hiera.ts";
export type { SamAttention, SamBlock, SamImageEncoder } from "./models/vision/sam/image_encoder.ts";
export type { SamHead, SamMaskDecoder, SamMasks } from "./models/vision/sam/mask_decoder.ts";
export type { ImagePoint, PromptedModel, SamPrompt } from "./models/vision/sam/prompted.ts";
export type { Sam } from "./models/vision/sam/sam.ts";
export type { Sam2, Sam2Features } from "./models/vision/sam/sam2.ts";
export type { TwoWayBlock, TwoWayStates, TwoWayTransformer } from "./models/vision/sam/two_way.ts";
export type { SegmenterDescription, SegmenterStageDescription } from "./models/vision/segformer/description.ts";
export type { SemanticSegmenter } from "./models/vision/segformer/segmenter.ts";
export type { MixFeedForward, SegmenterBlock, SegmenterStage } from "./models/vision/segformer/stage.ts";
export type { VisionEncoder, VisionStatesOptions } from "./models/vision/vision_encoder.ts";
export type { ChatProcessor } from "./models/vision_language/chat_processor.ts";
export type {
  EncoderTowerDescription,
  PatchTowerDescription,
  ProjectorDescription,
  VisionLanguageDescription,
} from "./models/vision_language/description.ts";
export type { EncoderTower } from "./models/vision_language/encoder_tower.ts";
export type { ImageInputs, ImagePrompt } from "./models/vision_language/images.ts";
export type { ChatImage, ContentPart } from "./models/vision_language/messages.ts";
export type { VisionLanguageModel } from "./models/vision_language/model.ts";
export type { PatchTower } from "./models/vision_language/patch_tower.ts";
export type { ConvolutionDescription, Wav2Vec2Description } from "./models/wav2vec2/description.ts";
export type { ConvolutionalPositions, SpeechConvolution } from "./models/wav2vec2/feature_encoder.ts";
export type { CtcSettings } from "./models/wav2vec2/settings.ts";
export type { Wav2Vec2 } from "./models/wav2vec2/wav2vec2.ts";
export type { WhisperDescription, WhisperStack } from "./models/whisper/description.ts";
export type { WhisperSettings } from "./models/whisper/settings.ts";
export type { Whisper, WhisperCache } from "./models/whisper/whisper.ts";
export {
  type CalibrateOptions,
  type Calibration,
  calibrate,
  type LayerCalibration,
} from "./quantized/calibration/calibrate.ts";
export { QuantizedEmbedding } from "./quantized/embedding.ts";
export {
  Int4Linear,
  type Int4LinearOptions,
  QuantizedLinear,
  type QuantizedLinearOptions,
} from "./quantized/linear.ts";
export type { LoraLinear } from "./quantized/lora_linear.ts";
export {
  type LayerNames,
  type LoadQuantizedOptions,
  loadQuantized,
  type ModelRounding,
  type QuantizationReport,
  type QuantizedLayer,
  type QuantizeModelOptions,
  quantizeModel,
} from "./quantized/model.ts";
export { type ClassifyAudioOptions, classifyAudio } from "./speech/classify_audio.ts";
export { type LogMelOptions, logMelFeatures } from "./speech/features.ts";
export { formatTranscription, type TranscriptFormat } from "./speech/format.ts";
export type { TranscribeOptions } from "./speech/options.ts";
export type { AudioInput } from "./speech/samples.ts";
export type { SpeechDetector } from "./speech/silence.ts";
export { type SpeechModel, transcribe } from "./speech/transcribe.ts";
export {
  type AudioChunk,
  type TranscribeStreamOptions,
  transcribeStream,
} from "./speech/transcribe_stream.ts";
export type { Transcription, TranscriptionSegment } from "./speech/transcription.ts";
export type { WordTime } from "./speech/words.ts";
export { type Answer, type AnswerOptions, answer } from "./tasks/answer.ts";
export type { BatchingOptions } from "./tasks/batches.ts";
export { type Classification, classify } from "./tasks/classify.ts";
export { classifyImages, type LabelImagesOptions } from "./tasks/classify_images.ts";
export { type DetectedObject, type DetectObjectsOptions, detectObjects } from "./tasks/detect_objects.ts";
export { type DetectionLossOptions, detectionLoss } from "./tasks/detection_loss.ts";
export type { DetectionTarget } from "./tasks/detection_matching.ts";
export { type DrawObjectsOptions, drawDepth, drawObjects, drawSegmentation } from "./tasks/draw.ts";
export type { EmbedDualOptions } from "./tasks/embed_dual.ts";
export { type EmbedImagesOptions, embedImages } from "./tasks/embed_images.ts";
export type { EmbedTextsOptions } from "./tasks/embed_texts.ts";
export { type EmbeddingLoss, embeddingBackward } from "./tasks/embedding_backward.ts";
export {
  cosentLoss,
  type EmbeddingLossOptions,
  multipleNegativesRankingLoss,
  type RankingLossOptions,
} from "./tasks/embedding_losses.ts";
export { estimateDepth } from "./tasks/estimate_depth.ts";
export { type FilledMask, type FillMaskOptions, fillMask } from "./tasks/fill_mask.ts";
export { type FocalDetectionLossOptions, focalDetectionLoss } from "./tasks/focal_detection_loss.ts";
export type { ImageBatchingOptions, ImageInput } from "./tasks/images.ts";
export type { Tokens } from "./tasks/prompt.ts";
export type { ObjectMask, PromptOptions } from "./tasks/prompted_masks.ts";
export { type Ranked, type RerankOptions, rerank } from "./tasks/rerank.ts";
export { type Segmentation, segmentImage } from "./tasks/segment_image.ts";
export { type Tagged, type TagOptions, tag } from "./tasks/tag.ts";
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

import "../ops/methods.ts";
