/** The two parts of an optimizer step, between which the host reads the loss: gradients, and the update. */
import { getBackend } from "../backend/policy.ts";
import { compile } from "../compile/compile.ts";
import { ArgumentError } from "../core/errors.ts";
import { clipGradNorm } from "../optim/clip.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { type AnyBatch, accumulateGradients, type Exchange } from "./gradients.ts";
import type { Team } from "./team.ts";
import type { Trainee } from "./trainee.ts";

/** The parts of a step. A trainee keeps compiled ones from step to step. */
export interface StepParts {
  /** Computes the mean loss, the gradients, and their global norm before clipping. */
  gradients(batches: readonly AnyBatch[], exchange: Exchange): { readonly mean: Tensor; readonly norm: Tensor };
  /** Updates the parameters. */
  update(): void;
}

type StepTrainee = Pick<Trainee, "model" | "optimizer" | "scaler" | "clip">;

/** Returns the parts of an eager step: each operation runs immediately. */
export function plainParts({ model, optimizer, scaler, clip }: StepTrainee): StepParts {
  return {
    gradients(batches, exchange) {
      const mean = accumulateGradients(model, batches, scaler, exchange);
      scaler?.unscale(optimizer);
      return { mean, norm: clipGradNorm(model.parameters(), clip === 0 ? Infinity : clip) };
    },
    update() {
      if (scaler) {
        scaler.step(optimizer);
        scaler.update();
      } else optimizer.step();
    },
  };
}

/**
 * Returns parts that are recorded once and then replayed, with the same results: see `docs/compile.md`.
 *
 * @throws {ArgumentError} with a loss scaler, which reads numbers in the update, and with several ranks, which exchange
 * gradients in the backward pass.
 */
export function compiledParts(trainee: StepTrainee, team: Team): StepParts {
  const problem = trainee.scaler ? "float16 with loss scaling" : team.size > 1 ? "several processes" : undefined;
  if (problem !== undefined)
    throw new ArgumentError("train", "invalidSetting", `compiled steps do not support ${problem}; use --no-compile`);
  const parts = plainParts(trainee);
  const exchange: Exchange = { team, weight: 1 };
  const options = { state: [trainee.model, trainee.optimizer] };
  const gradients = compile((batches: readonly AnyBatch[]) => parts.gradients(batches, exchange), options);
  const update = compile(() => parts.update(), options);
  return { gradients: (batches) => gradients(batches), update };
}

/** Whether a run compiles its steps by default: on cpu, where that is faster, if {@link compiledParts} supports it. */
export const compilesByDefault = ({ scaler, team }: Pick<Trainee, "scaler" | "team">): boolean =>
  getBackend() === "cpu" && scaler === undefined && (team?.size ?? 1) === 1;
