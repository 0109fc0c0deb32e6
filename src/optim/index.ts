/** Optimizers, gradient clipping, loss scaling and learning rate schedules. Exported as `optim`. */
export type { Json } from "../io/json.ts";
export { Adadelta, type AdadeltaOptions } from "./adadelta.ts";
export { Adafactor, type AdafactorOptions } from "./adafactor.ts";
export { Adagrad, type AdagradOptions } from "./adagrad.ts";
export { Adam, type AdamOptions, AdamW } from "./adam.ts";
export {
  Adamax,
  type AdamaxOptions,
  NAdam,
  type NAdamOptions,
  RAdam,
  type RAdamOptions,
} from "./adam_variants.ts";
export { ASGD, type ASGDOptions } from "./asgd.ts";
export { type AveragedState, AveragedWeights, type AveragedWeightsOptions } from "./averaged.ts";
export { type ClipGradNormOptions, clipGradNorm, clipGradValue } from "./clip.ts";
export type { ComposedOptions } from "./composed.ts";
export { EarlyStopping, type EarlyStoppingOptions, type EarlyStoppingState } from "./early_stopping.ts";
export type { FusedOptions } from "./fused.ts";
export { GradScaler, type GradScalerOptions, type GradScalerState } from "./grad_scaler.ts";
export type { GroupOptions, LearningRate, ParameterGroup, ParameterList, Parameters } from "./groups.ts";
export { LBFGS, type LBFGSOptions } from "./lbfgs.ts";
export { Lion, type LionOptions } from "./lion.ts";
export * from "./more_schedules.ts";
export { Muon, type MuonOptions } from "./muon.ts";
export { Optimizer } from "./optimizer.ts";
export { type PlateauState, ReduceOnPlateau, type ReduceOnPlateauOptions } from "./plateau.ts";
export { RMSprop, type RMSpropOptions } from "./rmsprop.ts";
export { Rprop, type RpropOptions } from "./rprop.ts";
export {
  type CosineOptions,
  constant,
  cosineWithWarmup,
  type LinearOptions,
  linear,
  type OneCycleOptions,
  oneCycle,
  type Schedule,
} from "./schedule.ts";
export { SGD, type SGDOptions } from "./sgd.ts";
export { sharded } from "./sharded.ts";
export type { GroupState, OptimizerStateDict } from "./state_dict.ts";

import "../ops/methods.ts";
