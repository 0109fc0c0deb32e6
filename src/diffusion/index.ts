/** Diffusion models: schedulers, networks, and pictures from texts. Exported as `diffusion`. */
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
  type DiffusionModel,
  type SampleOptions,
  Sampler,
  Scheduler,
  type SchedulerKind,
  type StepOptions,
} from "./scheduler.ts";
export { ddim, ddpm, dpmSolver, euler, eulerAncestral, flowMatch, pndm } from "./schedulers.ts";

import "../ops/methods.ts";
