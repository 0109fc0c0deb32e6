import { noGrad } from "../autograd/modes.ts";
import { describeValue } from "../core/describe.ts";
import { ArgumentError } from "../core/errors.ts";
import { aNumber } from "../core/kinds.ts";
import { checkNames, checkNumber, count, positive } from "../core/options.ts";
import { named, parameters, reading } from "../core/parameters.ts";
import { printedOptions } from "../core/printing.ts";
import { allReduce } from "../distributed/collectives.ts";
import { isShared } from "../distributed/data_parallel.ts";
import { toDType } from "../ops/copy/cast.ts";
import { fromArray } from "../ops/creation/tensor.ts";
import { mul } from "../ops/elementwise/arithmetic.ts";
import { isfinite } from "../ops/elementwise/predicates.ts";
import { stack } from "../ops/join/cat.ts";
import { all } from "../ops/reduction/logic.ts";
import { accumulationDType } from "../tensor/dtype.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { tidy } from "../tensor/tidy.ts";
import { hasGradient, replaceGradient } from "./clip.ts";
import type { LearningRate } from "./groups.ts";
import type { Optimizer } from "./optimizer.ts";

/** Options of {@link GradScaler}, which are saved with its state. */
export interface GradScalerOptions {
  /** The initial scale factor. Default 65,536. */
  initialScale: number;
  /** Multiplies the scale after `growthInterval` consecutive steps without infinity or NaN. Default 2. */
  growthFactor: number;
  /** Multiplies the scale after a step with infinity or NaN. Default 0.5. */
  backoffFactor: number;
  /** The number of consecutive finite steps after which the scale grows. Default 2000. */
  growthInterval: number;
}

/** The result of {@link GradScaler.stateDict}. It can be saved as JSON. */
export interface GradScalerState extends GradScalerOptions {
  readonly scale: number;
  /** The number of steps without infinity or NaN since the scale last changed. */
  readonly growthTracker: number;
}

const aboveOne = aNumber({ holds: (value) => value > 1 && value < Infinity, expected: "a number above 1" });
const belowOne = aNumber({ holds: (value) => value > 0 && value < 1, expected: "a number between 0 and 1" });

const declared = {
  initialScale: named(aNumber(positive), 65536),
  growthFactor: named(aboveOne, 2),
  backoffFactor: named(belowOne, 0.5),
  growthInterval: named(aNumber(count), 2000),
};
const scalerParameters = parameters("GradScaler", declared);

type AnyOptimizer = Pick<Optimizer<LearningRate>, "step" | "slots">;

/**
 * Scales the loss for float16 training, as PyTorch's `GradScaler`. The loss is multiplied by the scale so that
 * gradients do not underflow, and gradients are divided by it before the step. A step with infinity or NaN is skipped,
 * and the scale adapts.
 *
 * @example
 * const scaler = new GradScaler();
 * scaler.scale(loss).backward();
 * scaler.unscale(optimizer); // only if gradients are clipped
 * clipGradNorm(parameters, 1);
 * scaler.step(optimizer);
 * scaler.update();
 *
 * @throws {ArgumentError} for an invalid option.
 */
export class GradScaler {
  private readonly options: GradScalerOptions;
  private factor: number;
  private growthTracker = 0;
  /**
   * Optimizers whose gradients were unscaled since the last `update`, and whether all of their gradients were finite.
   */
  private readonly unscaled = new Map<AnyOptimizer, boolean>();
  private readonly stepped = new Set<AnyOptimizer>();

  constructor(options?: Partial<GradScalerOptions>);
  constructor(...values: unknown[]) {
    this.options = { ...scalerParameters(values) };
    this.factor = this.options.initialScale;
  }

  /** Returns the scale and the options as text. */
  toString(): string {
    return `GradScaler: scale ${this.factor}\n  ${printedOptions(this.options)}`;
  }

  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return this.toString();
  }

  /** The current scale factor. */
  get currentScale(): number {
    return this.factor;
  }

  /** Returns the loss times the scale: call `backward()` on it. */
  scale(loss: Tensor): Tensor {
    return mul(loss, this.factor);
  }

  /**
   * Divides an optimizer's gradients by the scale. float16 gradients become float32, in which they do not underflow
   * again. {@link step} calls this if you have not. Waits for the device.
   *
   * @throws {ArgumentError} `unscaledTwice` for a second call before `update()`.
   */
  unscale(optimizer: AnyOptimizer): void {
    checkOptimizer("GradScaler.unscale", optimizer);
    if (this.unscaled.has(optimizer))
      throw new ArgumentError(
        "GradScaler.unscale",
        "unscaledTwice",
        "the gradients are already unscaled; call update() after each step",
      );
    const owners = optimizer.slots.map(({ parameter }) => parameter).filter(hasGradient);
    const isSharedOut = optimizer.slots.some(({ parameter }) => isShared(parameter));
    const areFinite = noGrad(() =>
      tidy(() => {
        for (const owner of owners)
          replaceGradient(owner, mul(toDType(owner.grad, accumulationDType(owner.grad.dtype)), 1 / this.factor));
        const finite = owners.map(({ grad }) => all(isfinite(grad)));
        const areAllFinite = finite.length === 0 || Boolean(all(stack(finite)).item());
        return isSharedOut
          ? allReduce(fromArray(Uint8Array.of(areAllFinite ? 1 : 0)), { op: "min" }).item() === 1
          : areAllFinite;
      }),
    );
    this.unscaled.set(optimizer, areFinite);
  }

  /**
   * Steps the optimizer unless a gradient is infinite or NaN. Returns whether it stepped.
   *
   * @throws {ArgumentError} `steppedTwice` for a second call before `update()`.
   */
  step(optimizer: AnyOptimizer): boolean {
    checkOptimizer("GradScaler.step", optimizer);
    if (this.stepped.has(optimizer))
      throw new ArgumentError(
        "GradScaler.step",
        "steppedTwice",
        "this optimizer has already stepped; call update() after each step",
      );
    if (!this.unscaled.has(optimizer)) this.unscale(optimizer);
    this.stepped.add(optimizer);
    const areFinite = this.unscaled.get(optimizer)!;
    if (areFinite) optimizer.step();
    return areFinite;
  }

  /**
   * Adapts the scale: lowers it after an infinite or NaN gradient, raises it after `growthInterval` steps without one.
   */
  update(): void {
    if (this.unscaled.size === 0)
      throw new ArgumentError(
        "GradScaler.update",
        "noStep",
        "expected a step since the last update; call step(optimizer) first",
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

  /** Returns the options, the scale and the number of steps since it changed. */
  stateDict(): GradScalerState {
    return { ...this.options, scale: this.factor, growthTracker: this.growthTracker };
  }

  /** Restores a state of {@link stateDict}. @throws {ArgumentError} for an invalid state. */
  loadStateDict(state: GradScalerState): void {
    const { scale, growthTracker, ...options } = reading("GradScaler.loadStateDict", () => ({ ...checkState(state) }));
    checkNames("GradScaler.loadStateDict", options, declared);
    checkNumber("GradScaler.loadStateDict", "scale", scale, positive);
    checkNumber("GradScaler.loadStateDict", "growthTracker", growthTracker, wholeOrZero);
    Object.assign(this.options, scalerParameters([options]));
    this.factor = scale;
    this.growthTracker = growthTracker;
  }
}

const wholeOrZero = {
  holds: (value: number) => Number.isSafeInteger(value) && value >= 0,
  expected: "a whole number of at least 0",
};

function checkOptimizer(operation: string, optimizer: AnyOptimizer): void {
  if (reading(operation, () => Array.isArray(optimizer?.slots))) return;
  throw new ArgumentError(operation, "invalidOperand", `expected an optimizer, got ${describeValue(optimizer)}`);
}

function checkState(state: GradScalerState): GradScalerState {
  if (typeof state === "object" && state !== null) return state;
  throw new ArgumentError(
    "GradScaler.loadStateDict",
    "invalidOperand",
    `expected a state from stateDict(), got ${describeValue(state)}`,
  );
}
