/** Optimizers, public as `optim`. */
export { Adam, type AdamOptions, AdamW } from "./adam.ts";
export type { FusedOptions } from "./fused.ts";
export type { GroupOptions, LearningRate, ParameterGroup, ParameterList, Parameters } from "./groups.ts";
export { Optimizer } from "./optimizer.ts";
export { SGD, type SGDOptions } from "./sgd.ts";
export type { GroupState, Json, OptimizerStateDict } from "./state_dict.ts";
