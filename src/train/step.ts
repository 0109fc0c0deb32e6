/** One optimizer step: loss, gradients, gradient norm, update. And the evaluation on held-out data. */
import { noGrad } from "../autograd/modes.ts";
import type { Batch } from "../data/windows.ts";
import type { LanguageModel } from "../nn/language_model.ts";
import { clipGradNorm } from "../optim/clip.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { tidy } from "../tensor/tidy.ts";
import { accumulateGradients, lossOf } from "./gradients.ts";
import { checkFinite } from "./not_finite.ts";
import type { StepResult, Trainee } from "./trainee.ts";

/**
 * Takes one step with the mean gradient of all batches.
 *
 * @throws {NotFiniteError} where the loss or the gradients are not finite. Nothing was changed then.
 */
export async function takeStep(trainee: Trainee, batches: readonly Batch[]): Promise<StepResult> {
  const { model, optimizer, scaler, generator } = trainee;
  optimizer.scaleLearningRate(trainee.schedule(trainee.step));
  const before = generator.getState();
  optimizer.zeroGrad();
  using mean = accumulateGradients(model, batches, scaler);
  scaler?.unscale(optimizer);
  using norm = clipGradients(model.parameters(), trainee.clip);
  const result = { loss: await numberIn(mean), gradientNorm: await numberIn(norm) };
  checkFinite(result, trainee, batches, before);
  if (scaler) {
    scaler.step(optimizer);
    scaler.update();
  } else optimizer.step();
  trainee.step++;
  return result;
}

/** A `maxNorm` of 0 means no clipping. */
const clipGradients = (parameters: readonly Tensor[], maxNorm: number): Tensor =>
  clipGradNorm(parameters, maxNorm === 0 ? Infinity : maxNorm);

/** The mean loss over batches, without gradients and without dropout. */
export async function evaluate(model: LanguageModel, batches: Iterable<Batch>): Promise<number> {
  let [sum, count] = [0, 0];
  const wasTraining = model.training;
  model.eval();
  try {
    for (const batch of batches) {
      using loss = tidy(() => noGrad(() => lossOf(model, batch)));
      sum += await numberIn(loss);
      count++;
    }
  } finally {
    model.train(wasTraining);
  }
  return sum / count;
}

const numberIn = async (scalar: Tensor): Promise<number> => Number((await scalar.data())[0]);
