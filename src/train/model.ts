/** Creates the model and the optimizer of a run from its settings. */
import { GPT } from "../nn/models/gpt.ts";
import type { LanguageModel } from "../nn/models/language_model.ts";
import { Llama } from "../nn/models/llama.ts";
import { AdamW } from "../optim/adam.ts";
import { EarlyStopping } from "../optim/early_stopping.ts";
import { GradScaler } from "../optim/grad_scaler.ts";
import { cosineWithWarmup, type Schedule } from "../optim/schedule.ts";
import type { Generator } from "../random/generator.ts";
import type { Settings } from "./settings.ts";

/** Returns a model with float32 weights from the generator, converted to the dtype of the settings. */
export function makeModel(settings: Settings, vocabularySize: number, generator: Generator): LanguageModel {
  const { architecture, layers, heads, width, context, dropout, dtype } = settings;
  const sizes = { vocabularySize, contextLength: context, layers, heads, width, generator };
  const model: LanguageModel =
    architecture === "gpt"
      ? new GPT({ ...sizes, dropout })
      : new Llama({ ...sizes, attentionDropout: dropout, tied: true });
  return model.to(dtype);
}

/**
 *  Creates AdamW with weight decay for matrices, but not biases and norms. 16-bit weights have float32 master weights.
 */
export function makeOptimizer(model: LanguageModel, settings: Settings): AdamW {
  const { learningRate: lr, beta2, weightDecay, dtype } = settings;
  const named = [...model.namedParameters()];
  const matrices = new Map(named.filter(([, { rank }]) => rank >= 2));
  const others = new Map(named.filter(([, { rank }]) => rank < 2));
  const groups = [
    { parameters: matrices, weightDecay },
    { parameters: others, weightDecay: 0 },
  ];
  return new AdamW(
    groups.filter(({ parameters }) => parameters.size > 0),
    { lr, betas: [0.9, beta2], masterWeights: dtype !== "float32" },
  );
}

/** Loss scaling for float16, in which small gradients would underflow. */
export const makeScaler = ({ dtype }: Settings): GradScaler | undefined =>
  dtype === "float16" ? new GradScaler() : undefined;

/** Returns the learning rate schedule: linear warmup, then cosine decay. */
export const makeSchedule = ({
  warmup,
  steps,
  learningRate,
  finalLearningRate,
}: Pick<Settings, "warmup" | "steps" | "learningRate" | "finalLearningRate">): Schedule =>
  cosineWithWarmup({ warmup, total: steps, floor: finalLearningRate / learningRate });

/** Ends runs with a patience early. */
export const makeStopping = ({ patience }: Pick<Settings, "patience">): EarlyStopping | undefined =>
  patience > 0 ? new EarlyStopping({ patience }) : undefined;
