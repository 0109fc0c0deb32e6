/** The loss of a model on batches of text, and its gradients. */

import { noGrad } from "../autograd/modes.ts";
import type { Batch } from "../data/windows.ts";
import type { LanguageModel } from "../nn/language_model.ts";
import { add } from "../ops/elementwise/arithmetic.ts";
import { div } from "../ops/elementwise/division.ts";
import { backward, detach } from "../ops/gradient/backward.ts";
import { crossEntropy } from "../ops/loss/cross_entropy.ts";
import { mean } from "../ops/reduction/mean.ts";
import type { GradScaler } from "../optim/grad_scaler.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { tidy } from "../tensor/tidy.ts";
import { Team } from "./team.ts";

/**
 * The mean of −log p(target), a float32 scalar. Losses in 16 bits are averaged in float32, which has more digits than
 * each of them.
 */
export function lossOf(model: LanguageModel, { x, y }: Batch): Tensor {
  const logits = model.forward(x);
  if (logits.dtype === "float32") return crossEntropy(logits, y, { dim: -1 });
  return mean(crossEntropy(logits, y, { dim: -1, reduction: "none" }), { dtype: "float32" });
}

/** How a rank's batches count among those of all ranks. */
export interface Exchange {
  readonly team: Team;
  /** The factor of this rank's losses. */
  readonly weight: number;
}

const OWN: Exchange = { team: Team.alone, weight: 1 };

/**
 * Accumulates the gradients of the mean loss over all batches, scaled by the loss scaler if there is one. Ranks
 * exchange them in the last pass. Returns the mean loss of this rank's batches, a scalar without autograd history.
 */
export function accumulateGradients(
  model: LanguageModel,
  batches: readonly Batch[],
  scaler?: GradScaler,
  { team, weight }: Exchange = OWN,
): Tensor {
  return tidy(() => {
    const losses = batches.map((batch, index) =>
      tidy(() => {
        const loss = lossOf(model, batch);
        const divisor = batches.length / weight;
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
