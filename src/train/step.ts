/** One step of the optimiser: loss, gradients, their norm, and the change. */
import { backward, detach } from "../autograd/backward.ts";
import { noGrad } from "../autograd/modes.ts";
import type { Batch } from "../data/windows.ts";
import type { LanguageModel } from "../nn/language_model.ts";
import { add } from "../ops/elementwise/arithmetic.ts";
import { div } from "../ops/elementwise/division.ts";
import { crossEntropy } from "../ops/loss/cross_entropy.ts";
import { mean } from "../ops/reduction/mean.ts";
import type { AdamW } from "../optim/adam.ts";
import { clipGradNorm } from "../optim/clip.ts";
import type { GradScaler } from "../optim/grad_scaler.ts";
import type { Generator } from "../random/generator.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { tidy } from "../tensor/tidy.ts";
import { checkFinite } from "./not_finite.ts";

/** What is trained, and with what. */
export interface Trainee {
  readonly model: LanguageModel;
  readonly optimizer: AdamW;
  readonly scaler: GradScaler | undefined;
  /** Of dropout. */
  readonly generator: Generator;
  /** The largest global norm of a step's gradients; 0: any. */
  readonly clip: number;
  /** What the learning rate is multiplied with in a step, counted from 0. */
  schedule(step: number): number;
  /** Steps taken. */
  step: number;
}

/** What a step found before it changed anything. */
export interface StepResult {
  /** The mean loss over the batches. */
  readonly loss: number;
  /** The global norm of its gradients, before they were clipped. */
  readonly gradientNorm: number;
}

/**
 * Takes one step, by the mean gradient of all batches.
 *
 * @throws {NotFiniteError} where the loss or the gradients are not finite; nothing was changed then.
 */
export async function takeStep(trainee: Trainee, batches: readonly Batch[]): Promise<StepResult> {
  const { model, optimizer, scaler, generator } = trainee;
  optimizer.scaleLearningRate(trainee.schedule(trainee.step));
  const before = generator.getState();
  optimizer.zeroGrad();
  using mean = accumulateGradients(model, batches, scaler);
  scaler?.unscale(optimizer);
  using norm = clipGradients(model.parameters(), trainee.clip);
  const found = { loss: await numberIn(mean), gradientNorm: await numberIn(norm) };
  checkFinite(found, trainee, batches, before);
  if (scaler) {
    scaler.step(optimizer);
    scaler.update();
  } else optimizer.step();
  trainee.step++;
  return found;
}

/** The mean of −log p(target), a scalar in float32: of losses in 16 bits, too, whose mean has more digits than each of them. */
function lossOf(model: LanguageModel, { x, y }: Batch): Tensor {
  const logits = model.forward(x);
  if (logits.dtype === "float32") return crossEntropy(logits, y, { dim: -1 });
  return mean(crossEntropy(logits, y, { dim: -1, reduction: "none" }), { dtype: "float32" });
}

/**
 * Adds the gradients of the mean loss over all batches to those that the parameters have, times the scaler's factor where there is one.
 * Returns the mean loss, a scalar without history.
 */
export function accumulateGradients(model: LanguageModel, batches: readonly Batch[], scaler?: GradScaler): Tensor {
  return tidy(() => {
    const losses = batches.map((batch) =>
      tidy(() => {
        const loss = lossOf(model, batch);
        const share = batches.length === 1 ? loss : div(loss, batches.length);
        backward(scaler ? scaler.scale(share) : share);
        return detach(share);
      }),
    );
    return noGrad(() => losses.reduce((total, loss) => add(total, loss)));
  });
}

/** A limit of 0 is none. */
const clipGradients = (parameters: readonly Tensor[], most: number): Tensor =>
  clipGradNorm(parameters, most === 0 ? Infinity : most);

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
