import { noGrad } from "../autograd/modes.ts";
import { ArgumentError } from "../core/errors.ts";
import { checkNames, checkNumber, count, positive } from "../core/options.ts";
import { toDType } from "../ops/copy/cast.ts";
import { mul } from "../ops/elementwise/binary.ts";
import { isfinite } from "../ops/elementwise/unary.ts";
import { stack } from "../ops/join/cat.ts";
import { all } from "../ops/reduction/logic.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { tidy } from "../tensor/tidy.ts";
import { replaceGradient } from "./clip.ts";
import type { LearningRate } from "./groups.ts";
import type { Optimizer } from "./optimizer.ts";

/** Options of {@link GradScaler}, and what it saves with its state. */
export interface GradScalerOptions {
  /** The first factor. Default 65,536. */
  initialScale: number;
  /** By which the factor grows after `growthInterval` steps without infinity or NaN. Default 2. */
  growthFactor: number;
  /** By which it shrinks after a step with one. Default 0.5. */
  backoffFactor: number;
  /** Default 2000. */
  growthInterval: number;
}

/** What {@link GradScaler.stateDict} gives; JSON holds it. */
export interface GradScalerState extends GradScalerOptions {
  readonly scale: number;
  /** Steps without infinity or NaN since the factor last changed. */
  readonly growthTracker: number;
}

const defaults: GradScalerOptions = { initialScale: 65536, growthFactor: 2, backoffFactor: 0.5, growthInterval: 2000 };

type AnyOptimizer = Pick<Optimizer<LearningRate>, "step" | "slots">;

/**
 * Multiplies a loss so that gradients in float16 do not vanish, as PyTorch's `GradScaler`: gradients are divided again before a step, a step with
 * infinity or NaN is left out, and the factor follows.
 *
 * @example
 * const scaler = new GradScaler();
 * scaler.scale(loss).backward();
 * scaler.unscale(optimizer); // only where gradients are clipped
 * clipGradNorm(parameters, 1);
 * scaler.step(optimizer);
 * scaler.update();
 *
 * @throws {ArgumentError} for an option that is none.
 */
export class GradScaler {
  private readonly options: GradScalerOptions;
  private factor: number;
  private growthTracker = 0;
  /** Optimizers whose gradients are divided already, since the last `update`; whether all of them were finite. */
  private readonly unscaled = new Map<AnyOptimizer, boolean>();
  private readonly stepped = new Set<AnyOptimizer>();

  constructor(options: Partial<GradScalerOptions> = {}) {
    checkNames("GradScaler", options, defaults);
    this.options = checked({ ...defaults, ...options });
    this.factor = this.options.initialScale;
  }

  /** The factor of now. */
  get currentScale(): number {
    return this.factor;
  }

  /** loss · scale: call `backward()` on it. */
  scale(loss: Tensor): Tensor {
    return mul(loss, this.factor);
  }

  /**
   * Divides an optimizer's gradients by the factor, in float32: those of float16 become float32, in which they do not vanish again. {@link step} does it
   * where it was not done. Waits for the device.
   *
   * @throws {ArgumentError} `unscaledTwice` between two updates.
   */
  unscale(optimizer: AnyOptimizer): void {
    if (this.unscaled.has(optimizer))
      throw new ArgumentError(
        "GradScaler.unscale",
        "unscaledTwice",
        "the gradients are divided already; call update() after each step",
      );
    const owners = optimizer.slots.map(({ parameter }) => parameter).filter(({ grad }) => grad !== null);
    const areFinite = noGrad(() =>
      tidy(() => {
        for (const owner of owners)
          replaceGradient(owner, mul(toDType(owner.grad!, widened(owner.grad!)), 1 / this.factor));
        const finite = owners.map(({ grad }) => all(isfinite(grad!)));
        return finite.length === 0 || Boolean(all(stack(finite)).item());
      }),
    );
    this.unscaled.set(optimizer, areFinite);
  }

  /**
   * Steps, unless a gradient is infinite or NaN. Returns whether it did.
   *
   * @throws {ArgumentError} `steppedTwice` between two updates.
   */
  step(optimizer: AnyOptimizer): boolean {
    if (this.stepped.has(optimizer))
      throw new ArgumentError(
        "GradScaler.step",
        "steppedTwice",
        "this optimizer has stepped already; call update() after each step",
      );
    if (!this.unscaled.has(optimizer)) this.unscale(optimizer);
    this.stepped.add(optimizer);
    const areFinite = this.unscaled.get(optimizer)!;
    if (areFinite) optimizer.step();
    return areFinite;
  }

  /** Sets the factor for the next step: smaller where a gradient was infinite or NaN, larger where none was for long enough. */
  update(): void {
    if (this.unscaled.size === 0)
      throw new ArgumentError(
        "GradScaler.update",
        "noStep",
        "there was no step since the last update; call step(optimizer) first",
      );
    const { growthFactor, backoffFactor, growthInterval } = this.options;
    const isClean = [...this.unscaled.values()].every(Boolean);
    this.growthTracker = isClean ? this.growthTracker + 1 : 0;
    if (!isClean) this.factor *= backoffFactor;
    else if (this.growthTracker === growthInterval) {
      this.factor *= growthFactor;
      this.growthTracker = 0;
    }
    this.unscaled.clear();
    this.stepped.clear();
  }

  /** Options, factor and the steps since it changed. */
  stateDict(): GradScalerState {
    return { ...this.options, scale: this.factor, growthTracker: this.growthTracker };
  }

  /** @throws {ArgumentError} for a state that is none. */
  loadStateDict({ scale, growthTracker, ...options }: GradScalerState): void {
    checkNames("GradScaler.loadStateDict", options, defaults);
    checkNumber("GradScaler.loadStateDict", "scale", scale, positive);
    checkNumber("GradScaler.loadStateDict", "growthTracker", growthTracker, wholeOrZero);
    Object.assign(this.options, checked(options));
    this.factor = scale;
    this.growthTracker = growthTracker;
  }
}

const wholeOrZero = {
  holds: (value: number) => Number.isSafeInteger(value) && value >= 0,
  expected: "a whole number of at least 0",
};

const widened = ({ dtype }: Tensor) => (dtype === "float64" ? "float64" : "float32");

function checked(options: GradScalerOptions): GradScalerOptions {
  const aboveOne = { holds: (value: number) => value > 1 && value < Infinity, expected: "a number above 1" };
  const belowOne = { holds: (value: number) => value > 0 && value < 1, expected: "a number between 0 and 1" };
  checkNumber("GradScaler", "initialScale", options.initialScale, positive);
  checkNumber("GradScaler", "growthFactor", options.growthFactor, aboveOne);
  checkNumber("GradScaler", "backoffFactor", options.backoffFactor, belowOne);
  checkNumber("GradScaler", "growthInterval", options.growthInterval, count);
  return options;
}
