/** The loss of a model on batches of text, and its gradients. */

import { noGrad } from "../autograd/modes.ts";
import type { Batch } from "../data/windows.ts";
import type { LanguageModel } from "../nn/models/language_model.ts";
import { add } from "../ops/elementwise/arithmetic.ts";
import { div } from "../ops/elementwise/division.ts";
import { backward, detach } from "../ops/gradient/backward.ts";
import { indexSelect } from "../ops/indexing/gather.ts";
import { crossEntropy } from "../ops/loss/cross_entropy.ts";
import { mean } from "../ops/reduction/mean.ts";
import { reshape } from "../ops/view/reshape.ts";
import { unsqueeze } from "../ops/view/squeeze.ts";
import type { GradScaler } from "../optim/grad_scaler.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { tidy } from "../tensor/tidy.ts";
import { Team } from "./team.ts";
import type { ExampleBatch } from "./tuning/batches.ts";

/** Windows of text, or chats with loss on some tokens. */
export type AnyBatch = Batch | ExampleBatch;

/** Computes the mean of −log p(target), a float32 scalar. 16-bit losses are averaged in float32 for precision. */
export function lossOf(model: LanguageModel, batch: AnyBatch): Tensor {
  const { y } = batch;
  const logits = "from" in batch ? learnedLogits(model, batch) : model.forward(batch.x);
  if (logits.dtype === "float32") return crossEntropy(logits, y, { dim: -1 });
  return mean(crossEntropy(logits, y, { dim: -1, reduction: "none" }), { dtype: "float32" });
}

/** Computes only the logits of targets, [targets, vocabulary]. Logits of all tokens would dominate memory. */
function learnedLogits(model: LanguageModel, { x, from, segments, checkpoint }: ExampleBatch): Tensor {
  const states = model.hiddenStates(x, { segments, checkpoint });
  const rows = reshape(states, [-1, states.shape[2]]);
  const logits = model.logitsOf(unsqueeze(indexSelect(rows, 0, from), 0));
  return reshape(logits, [-1, logits.shape[2]]);
}

/** The weight of a rank's batches among those of all ranks. */
export interface Exchange {
  readonly team: Team;
  /** The factor of this rank's losses. */
  readonly weight: number;
  /** The number of targets in all batches of all ranks; only if batches have different numbers of targets. */
  readonly targets?: number | undefined;
}

const OWN: Exchange = { team: Team.alone, weight: 1 };

/**
 * Accumulates the gradients of the mean loss over all batches, scaled by the loss scaler if there is one. Ranks
 * exchange them in the last pass. Returns the mean loss of this rank's batches, a scalar without autograd history.
 */
export function accumulateGradients(
  model: LanguageModel,
  batches: readonly AnyBatch[],
  scaler?: GradScaler,
  { team, weight, targets = sumOf(batches) }: Exchange = OWN,
): Tensor {
  return tidy(() => {
    const losses = batches.map((batch, index) =>
      tidy(() => {
        const loss = lossOf(model, batch);
        const divisor = "from" in batch ? targets / (batch.targets * team.size) : batches.length / weight;
        const share = divisor === 1 ? loss : div(loss, divisor);
        const pass = () => backward(scaler ? scaler.scale(share) : share);
        if (index < batches.length - 1) team.apart(pass);
        else pass();
        return detach(share);
      }),
    );
    return noGrad(() => losses.reduce((total, loss) => add(total, loss)));
  });
}

/** Returns the number of targets in batches of chats. */
export const sumOf = (batches: readonly AnyBatch[]): number =>
  batches.reduce((sum, batch) => sum + ("from" in batch ? batch.targets : 0), 0);
