/** Checks for non-finite losses and gradients. Such a step is not taken, and the operation that caused it is found. */
import { AnomalyError, detectAnomaly } from "../backend/anomaly.ts";
import { OrchardError } from "../core/errors.ts";
import { isfinite } from "../ops/elementwise/predicates.ts";
import { all } from "../ops/reduction/logic.ts";
import type { GeneratorState } from "../random/generator.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { tidy } from "../tensor/tidy.ts";
import { type AnyBatch, accumulateGradients } from "./gradients.ts";
import type { StepResult, Trainee } from "./trainee.ts";

/** A loss or gradients that are not finite. */
export class NotFiniteError extends OrchardError {
  override readonly name = "NotFiniteError";

  constructor(
    what: string,
    /** The step that was not taken, counted from 1. */
    readonly step: number,
    /** The operation that returned the first NaN, or the first infinity from finite operands, if one was found. */
    readonly firstOperation: string | undefined,
    /** The first parameter that is not finite; undefined if all are finite. */
    readonly brokenParameter: string | undefined,
    origin: string,
  ) {
    super("train", "notFinite", `${what} in step ${step}, which was not taken${origin}`);
  }
}

/**
 * Checks a step before it changes anything. With a loss scaler the gradients may overflow: the scaler skips such a
 * step.
 *
 * @throws {NotFiniteError} unless everything is finite.
 */
export function checkFinite(
  { loss, gradientNorm }: StepResult,
  trainee: Trainee,
  batches: readonly AnyBatch[],
  before: GeneratorState,
): void {
  if (Number.isFinite(loss) && (Number.isFinite(gradientNorm) || trainee.scaler)) return;
  const [value, what] = Number.isFinite(loss)
    ? [gradientNorm, `gradients of norm ${gradientNorm}`]
    : [loss, `a loss of ${loss}`];
  const broken = [...trainee.model.namedParameters()].find(([, parameter]) => !isAllFinite(parameter))?.[0];
  const cause = firstAnomaly(trainee, batches, before, !Number.isNaN(value));
  throw new NotFiniteError(what, trainee.step + 1, cause?.operation, broken, originOf(broken, cause));
}

function originOf(broken: string | undefined, cause: AnomalyError | undefined): string {
  if (broken !== undefined) return `: the weights ${broken} are not finite`;
  return cause ? `: ${cause.message}` : ": every result is finite, but the global norm of the gradients is not";
}

const isAllFinite = (parameter: Tensor): boolean => tidy(() => Boolean(all(isfinite(parameter)).item()));

/** Computes the gradients again with the same random numbers and anomaly detection on. */
function firstAnomaly(
  trainee: Trainee,
  batches: readonly AnyBatch[],
  before: GeneratorState,
  infinity: boolean,
): AnomalyError | undefined {
  trainee.optimizer.zeroGrad();
  trainee.generator.setState(before);
  try {
    const again = () => accumulateGradients(trainee.model, batches, trainee.scaler).dispose();
    detectAnomaly(() => (trainee.team ? trainee.team.apart(again) : again()), { infinity });
  } catch (error) {
    if (error instanceof AnomalyError) return error;
    throw error;
  }
  return undefined;
}
