/** Diffusion models: schedulers, networks, and pictures from texts. Exported as `diffusion`. */
export { Autoencoder, type AutoencoderOptions, type LatentDistribution } from "./autoencoder.ts";
export type { DiffusionStep } from "./methods.ts";
export type { BetaSchedule, TimestepSpacing } from "./numbers.ts";
export type {
  ClippingOptions,
  DdimOptions,
  DdpmOptions,
  DpmSolverOptions,
  EulerOptions,
  FlowMatchOptions,
  PndmOptions,
  PredictionType,
  ScheduleOptions,
  ThresholdingOptions,
} from "./options.ts";
export {
  type GeneratePictureOptions,
  type GenerationProgress,
  type LoadPipelineOptions,
  loadPipeline,
  Pipeline,
} from "./pipeline.ts";
export {
  type DiffusionModel,
  type SampleOptions,
  Sampler,
  Scheduler,
  type SchedulerKind,
  type StepOptions,
} from "./scheduler.ts";
export { ddim, ddpm, dpmSolver, euler, eulerAncestral, flowMatch, pndm } from "./schedulers.ts";
export { TextEncoder, type TextEncoderOptions } from "./text_encoder.ts";
export { type TimestepEmbeddingOptions, timestepEmbedding } from "./time_embedding.ts";
export { UNet, type UNetOptions } from "./unet.ts";

import "../ops/methods.ts";
