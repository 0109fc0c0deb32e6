import type { LanguageModel } from "../nn/models/language_model.ts";
import type { AdamW } from "../optim/adam.ts";
import type { GradScaler } from "../optim/grad_scaler.ts";
import type { Generator } from "../random/generator.ts";
import type { StepParts } from "./parts.ts";
import type { Team } from "./team.ts";

/** A model in training, with its optimizer. */
export interface Trainee {
  readonly model: LanguageModel;
  readonly optimizer: AdamW;
  readonly scaler: GradScaler | undefined;
  /** The random number generator of dropout. */
  readonly generator: Generator;
  /** The largest global norm of a step's gradients; 0: no clipping. */
  readonly clip: number;
  /** The factor of the learning rate in a step, counted from 0. */
  schedule(step: number): number;
  /** The ranks that train the model; by default this process alone. */
  readonly team?: Team;
  /** Windows of text per pass over all ranks. */
  readonly batch?: number;
  /** The parts of a step, if they are compiled. */
  readonly parts?: StepParts | undefined;
  /** The number of steps taken. */
  step: number;
}

/** The values of a step before its update. */
export interface StepResult {
  /** The mean loss over the batches of all ranks. */
  readonly loss: number;
  /** The global norm of the gradients, before clipping. */
  readonly gradientNorm: number;
}
