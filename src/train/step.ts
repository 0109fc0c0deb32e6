/** One optimizer step: loss, gradients, gradient norm, update. And the evaluation on held-out data. */
import { noGrad } from "../autograd/modes.ts";
import type { Batch } from "../data/windows.ts";
import type { LanguageModel } from "../nn/language_model.ts";
import { clipGradNorm } from "../optim/clip.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { tidy } from "../tensor/tidy.ts";
import { accumulateGradients, type Exchange, lossOf } from "./gradients.ts";
import { checkFinite } from "./not_finite.ts";
import { Team } from "./team.ts";
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
  const exchange = exchangeOf(trainee, batches);
  using mean = accumulateGradients(model, batches, scaler, exchange);
  scaler?.unscale(optimizer);
  using norm = clipGradients(model.parameters(), trainee.clip);
  const result = { loss: exchange.team.mean(await numberIn(mean)), gradientNorm: await numberIn(norm) };
  checkFinite(result, trainee, batches, before);
  if (scaler) {
    scaler.step(optimizer);
    scaler.update();
  } else optimizer.step();
  trainee.step++;
  return result;
}

/** The batches of a rank are shares of as large ones. */
function exchangeOf({ team = Team.alone, batch }: Trainee, batches: readonly Batch[]): Exchange {
  const windows = batches[0]!.x.shape[0]!;
  return { team, weight: team.size === 1 ? 1 : team.weightOf(windows, batch ?? windows * team.size) };
}

/** A `maxNorm` of 0 means no clipping. */
const clipGradients = (parameters: readonly Tensor[], maxNorm: number): Tensor =>
  clipGradNorm(parameters, maxNorm === 0 ? Infinity : maxNorm);

/** The mean loss over batches, without gradients and without dropout. Ranks take turns. */
export async function evaluate(model: LanguageModel, batches: Iterable<Batch>, team = Team.alone): Promise<number> {
  const losses: number[] = [];
  const wasTraining = model.training;
  model.eval();
  try {
    for (const batch of batches) {
      const isOwn = losses.length % team.size === team.rank;
      losses.push(isOwn ? await lossWithout(model, batch) : 0);
    }
  } finally {
    model.train(wasTraining);
  }
  return team.sum(losses).reduce((sum, loss) => sum + loss, 0) / losses.length;
}

async function lossWithout(model: LanguageModel, batch: Batch): Promise<number> {
  using loss = tidy(() => noGrad(() => lossOf(model, batch)));
  return numberIn(loss);
}

const numberIn = async (scalar: Tensor): Promise<number> => Number((await scalar.data())[0]);
