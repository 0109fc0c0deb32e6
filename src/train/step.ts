/** The optimizer step (loss, gradients, gradient norm, update), and the evaluation on held-out data. */
import { noGrad } from "../autograd/modes.ts";
import type { LanguageModel } from "../nn/models/language_model.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { tidy } from "../tensor/tidy.ts";
import { type AnyBatch, type Exchange, lossOf, sumOf } from "./gradients.ts";
import { checkFinite } from "./not_finite.ts";
import { plainParts } from "./parts.ts";
import { Team } from "./team.ts";
import type { StepResult, Trainee } from "./trainee.ts";

/**
 * Takes one step with the mean gradient of all batches.
 *
 * @throws {NotFiniteError} if the loss or the gradients are not finite. Then nothing was changed.
 */
export async function takeStep(trainee: Trainee, batches: readonly AnyBatch[]): Promise<StepResult> {
  const { optimizer, generator, parts = plainParts(trainee) } = trainee;
  optimizer.scaleLearningRate(trainee.schedule(trainee.step));
  const before = generator.getState();
  optimizer.zeroGrad();
  const exchange = exchangeOf(trainee, batches);
  const found = parts.gradients(batches, exchange);
  using mean = found.mean;
  using norm = found.norm;
  const result = { loss: exchange.team.mean(await numberIn(mean)), gradientNorm: await numberIn(norm) };
  checkFinite(result, trainee, batches, before);
  parts.update();
  trainee.step++;
  return result;
}

/** Returns the weights of this rank's batches. Windows count equally; chats are weighted by their number of targets. */
function exchangeOf({ team = Team.alone, batch }: Trainee, batches: readonly AnyBatch[]): Exchange {
  if ("from" in batches[0]) return { team, weight: 1, targets: team.sum([sumOf(batches)])[0] };
  const windows = batches[0].x.shape[0];
  return { team, weight: team.size === 1 ? 1 : team.weightOf(windows, batch ?? windows * team.size) };
}

/**
 * Computes the mean loss over batches, without gradients and dropout. Chats are weighted by their number of targets.
 * The batches are divided among the ranks.
 */
export async function evaluate(model: LanguageModel, batches: Iterable<AnyBatch>, team = Team.alone): Promise<number> {
  const losses: number[] = [];
  let count = 0;
  const wasTraining = model.training;
  model.eval();
  try {
    for (const batch of batches) {
      const isOwn = losses.length % team.size === team.rank;
      const weight = "from" in batch ? batch.targets : 1;
      losses.push(isOwn ? weight * (await lossWithout(model, batch)) : 0);
      count += weight;
    }
  } finally {
    model.train(wasTraining);
  }
  return team.sum(losses).reduce((sum, loss) => sum + loss, 0) / count;
}

async function lossWithout(model: LanguageModel, batch: AnyBatch): Promise<number> {
  using loss = tidy(() => noGrad(() => lossOf(model, batch)));
  return numberIn(loss);
}

const numberIn = async (scalar: Tensor): Promise<number> => Number((await scalar.data())[0]);
