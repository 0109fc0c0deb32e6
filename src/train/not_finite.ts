/** What happens when the loss, or the gradients, are not finite: the step is not taken, and the operation that made the first NaN, or infinity, is named. */
import { AnomalyError, detectAnomaly } from "../backend/anomaly.ts";
import { OrchardError } from "../core/errors.ts";
import type { Batch } from "../data/windows.ts";
import { isfinite } from "../ops/elementwise/predicates.ts";
import { all } from "../ops/reduction/logic.ts";
import type { GeneratorState } from "../random/generator.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { tidy } from "../tensor/tidy.ts";
import { accumulateGradients, type StepResult, type Trainee } from "./step.ts";

/** A loss, or gradients, that are not finite. */
export class NotFiniteError extends OrchardError {
  override readonly name = "NotFiniteError";

  constructor(
    what: string,
    /** The step that was not taken, counted from 1. */
    readonly step: number,
    /** The operation that made the first NaN out of numbers, or the first infinity out of finite ones, where one could be found. */
    readonly firstOperation: string | undefined,
    /** The first parameter that is not finite itself; undefined where all are. */
    readonly brokenParameter: string | undefined,
    origin: string,
  ) {
    super("train", "notFinite", `${what} in step ${step}, which was not taken${origin}`);
  }
}

/** @throws {NotFiniteError} unless all is finite. With a scaler of float16's losses gradients may overflow: it skips such a step. */
export function checkFinite(
  { loss, gradientNorm }: StepResult,
  trainee: Trainee,
  batches: readonly Batch[],
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
  return cause ? `: ${cause.message}` : ": all results are finite, and the norm of all gradients together is not";
}

const isAllFinite = (parameter: Tensor): boolean => tidy(() => Boolean(all(isfinite(parameter)).item()));

/** Computes the gradients again, with the same random numbers, and looks at every result. */
function firstAnomaly(
  trainee: Trainee,
  batches: readonly Batch[],
  before: GeneratorState,
  infinity: boolean,
): AnomalyError | undefined {
  trainee.optimizer.zeroGrad();
  trainee.generator.setState(before);
  try {
    detectAnomaly(() => accumulateGradients(trainee.model, batches, trainee.scaler).dispose(), { infinity });
  } catch (error) {
    if (error instanceof AnomalyError) return error;
    throw error;
  }
  return undefined;
}
