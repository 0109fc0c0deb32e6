/** Ends training when a measure stops improving. */
import { ArgumentError } from "../core/errors.ts";
import { aNumber, choice, someNumber } from "../core/kinds.ts";
import { count, notNegative } from "../core/options.ts";
import { named, operand, optional, parameters, reading } from "../core/parameters.ts";

/** Options of {@link EarlyStopping}. */
export interface EarlyStoppingOptions {
  /** The number of consecutive measures without improvement that ends the training. Default 10. */
  patience?: number;
  /** Whether a lower (`"min"`) or a higher measure is better. Default `"min"`. */
  mode?: "min" | "max";
  /** A measure improves only if it is better by more than this. Default 0. */
  minDelta?: number;
}

/** The result of {@link EarlyStopping.stateDict}, as JSON. `best` is null until a finite measure is recorded. */
export interface EarlyStoppingState {
  readonly best: number | null;
  readonly badSteps: number;
}

const stoppingParameters = parameters("EarlyStopping", {
  patience: optional(aNumber({ ...count, expected: "a whole number of at least 1" }), 10),
  mode: named(choice("min", "max"), "min"),
  minDelta: named(aNumber(notNegative), 0),
});
const stepParameters = parameters("EarlyStopping.step", { measure: operand(someNumber) });

/**
 * Decides when to stop training: once a measure, such as the held-out loss, has not improved on the best one for
 * `patience` steps in a row. NaN is never an improvement, and the first best measure must be finite.
 *
 * @example
 * const stopping = new optim.EarlyStopping({ patience: 3 });
 * for (let epoch = 0; epoch < 100; epoch++) if (stopping.step(trainAndEvaluate())) break;
 * console.log(stopping.best);
 *
 * @throws {ArgumentError} for an invalid argument.
 */
export class EarlyStopping {
  readonly #options: ReturnType<typeof stoppingParameters>;
  #best: number | undefined;
  #badSteps = 0;

  constructor(patience?: number, options?: Omit<EarlyStoppingOptions, "patience">);
  constructor(options?: EarlyStoppingOptions);
  constructor(...values: unknown[]) {
    this.#options = stoppingParameters(values);
  }

  /** The best measure; undefined before the first one that is finite. */
  get best(): number | undefined {
    return this.#best;
  }

  /** The number of measures since the best one. */
  get badSteps(): number {
    return this.#badSteps;
  }

  /** Records a measure, and returns whether to stop. @throws {ArgumentError} if it is not a number. */
  step(measure: number): boolean;
  step(...values: unknown[]): boolean {
    const { measure } = stepParameters(values);
    const { patience } = this.#options;
    if (this.#isBetter(measure)) [this.#best, this.#badSteps] = [measure, 0];
    else this.#badSteps++;
    return this.#badSteps >= patience;
  }

  #isBetter(measure: number): boolean {
    const { mode, minDelta } = this.#options;
    if (this.#best === undefined) return Number.isFinite(measure);
    return mode === "min" ? measure < this.#best - minDelta : measure > this.#best + minDelta;
  }

  /** Returns everything the next step depends on, as JSON. */
  stateDict(): EarlyStoppingState {
    return { best: this.#best ?? null, badSteps: this.#badSteps };
  }

  /** Restores a state of {@link stateDict}. @throws {ArgumentError} `invalidState` */
  loadStateDict(state: EarlyStoppingState): void {
    const { best, badSteps } = reading("EarlyStopping", () => ({ ...state }));
    if (!(best === null || typeof best === "number") || !Number.isSafeInteger(badSteps) || badSteps < 0)
      throw new ArgumentError("EarlyStopping", "invalidState", "expected a state from stateDict()");
    [this.#best, this.#badSteps] = [best ?? undefined, badSteps];
  }
}
