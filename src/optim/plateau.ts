/** Reduces the learning rate when a measure stops improving. */
import { ArgumentError } from "../core/errors.ts";
import { aNumber, anObject, choice, someNumber } from "../core/kinds.ts";
import { notNegative } from "../core/options.ts";
import { named, operand, parameters, reading } from "../core/parameters.ts";
import type { LearningRate } from "./groups.ts";
import { Optimizer } from "./optimizer.ts";

/** Options of {@link ReduceOnPlateau}. */
export interface ReduceOnPlateauOptions {
  /** Whether a lower (`"min"`) or a higher measure is better. Default `"min"`. */
  mode?: "min" | "max";
  /** The factor by which the learning rate is multiplied. Default 0.1. */
  factor?: number;
  /** The number of consecutive measures that may show no improvement. Default 10. */
  patience?: number;
  /** The amount by which a measure must be better to count as an improvement. Default 1e-4. */
  threshold?: number;
  /** Whether `threshold` is relative to the best measure, or an absolute difference. Default `"rel"`. */
  thresholdMode?: "rel" | "abs";
  /** The number of measures after a reduction that do not count toward `patience`. Default 0. */
  cooldown?: number;
  /** The smallest learning rate. Default 0. */
  minLr?: number;
  /** The smallest change of a learning rate: a change of at most `eps` is skipped. Default 1e-8. */
  eps?: number;
}

/** The result of {@link ReduceOnPlateau.stateDict}, as JSON. `best` is null until a finite measure is recorded. */
export interface PlateauState {
  readonly best: number | null;
  readonly badSteps: number;
  readonly cooldown: number;
}

const whole = aNumber({
  holds: (value) => Number.isSafeInteger(value) && value >= 0,
  expected: "a whole number of at least 0",
});

const plateauParameters = parameters("ReduceOnPlateau", {
  optimizer: operand(anObject<Optimizer<LearningRate>>("an optimizer")),
  mode: named(choice("min", "max"), "min"),
  factor: named(
    aNumber({ holds: (value) => value >= 0 && value < 1, expected: "a number of at least 0 and below 1" }),
    0.1,
  ),
  patience: named(whole, 10),
  threshold: named(aNumber(notNegative), 1e-4),
  thresholdMode: named(choice("rel", "abs"), "rel"),
  cooldown: named(whole, 0),
  minLr: named(aNumber(notNegative), 0),
  eps: named(aNumber(notNegative), 1e-8),
});

const stepParameters = parameters("ReduceOnPlateau.step", { measure: operand(someNumber) });

/**
 * Multiplies an optimizer's learning rates by a factor when a measure, such as the held-out loss, has not improved for
 * more than `patience` steps: PyTorch's ReduceLROnPlateau.
 *
 * @example
 * const plateau = new optim.ReduceOnPlateau(optimizer, { patience: 2 });
 * for (let epoch = 0; epoch < 100; epoch++) plateau.step(trainAndEvaluate());
 *
 * @throws {ArgumentError} for an invalid argument.
 */
export class ReduceOnPlateau {
  readonly #optimizer: Pick<Optimizer<LearningRate>, "groups">;
  readonly #options: ReturnType<typeof plateauParameters>;
  #best: number;
  #badSteps = 0;
  #cooldown = 0;

  constructor(optimizer: Pick<Optimizer<LearningRate>, "groups">, options?: ReduceOnPlateauOptions);
  constructor(...values: unknown[]) {
    this.#options = plateauParameters(values);
    this.#optimizer = this.#options.optimizer;
    if (!reading("ReduceOnPlateau", () => this.#optimizer instanceof Optimizer))
      throw new ArgumentError("ReduceOnPlateau", "invalidOperand", "expected optimizer to be an optimizer");
    this.#best = this.#options.mode === "min" ? Infinity : -Infinity;
  }

  /** Records a measure, and returns whether the learning rate fell. @throws {ArgumentError} if it is not a number. */
  step(measure: number): boolean {
    const { measure: value } = stepParameters([measure]);
    const { patience, cooldown } = this.#options;
    this.#badSteps = this.#isBetter(value) ? 0 : this.#badSteps + 1;
    if (this.#badSteps === 0) this.#best = value;
    if (this.#cooldown > 0) {
      this.#cooldown--;
      this.#badSteps = 0;
    }
    if (this.#badSteps <= patience) return false;
    this.#cooldown = cooldown;
    this.#badSteps = 0;
    return this.#reduce();
  }

  #isBetter(measure: number): boolean {
    const { mode, threshold, thresholdMode } = this.#options;
    const sign = mode === "min" ? -1 : 1;
    const bound = thresholdMode === "rel" ? this.#best * (1 + sign * threshold) : this.#best + sign * threshold;
    return mode === "min" ? measure < bound : measure > bound;
  }

  #reduce(): boolean {
    const { factor, minLr, eps } = this.#options;
    let fell = false;
    for (const group of this.#optimizer.groups) {
      const next = Math.max(group.lr * factor, minLr);
      if (group.lr - next <= eps) continue;
      group.lr = next;
      fell = true;
    }
    return fell;
  }

  /** Returns everything the next step depends on except the learning rates, as JSON. */
  stateDict(): PlateauState {
    const best = Number.isFinite(this.#best) ? this.#best : null;
    return { best, badSteps: this.#badSteps, cooldown: this.#cooldown };
  }

  /** Restores a state of {@link stateDict}. @throws {ArgumentError} `invalidState` */
  loadStateDict(state: PlateauState): void {
    const { best, badSteps, cooldown } = reading("ReduceOnPlateau", () => ({ ...state }));
    const isCount = (value: unknown) => Number.isSafeInteger(value) && Number(value) >= 0;
    if (!(best === null || typeof best === "number") || !isCount(badSteps) || !isCount(cooldown))
      throw new ArgumentError("ReduceOnPlateau", "invalidState", "expected a state from stateDict()");
    this.#best = best ?? (this.#options.mode === "min" ? Infinity : -Infinity);
    this.#badSteps = badSteps;
    this.#cooldown = cooldown;
  }
}
