import { noGrad } from "../autograd/modes.ts";
import { describeValue } from "../core/describe.ts";
import { ArgumentError } from "../core/errors.ts";
import { checkNames, checkNumber, finite, notNegative } from "../core/options.ts";
import { reading } from "../core/parameters.ts";
import { definedOf } from "../core/records.ts";
import { currentCapture } from "../observe/capture.ts";
import type { Shape } from "../tensor/shape.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { tidy } from "../tensor/tidy.ts";
import { formatOptimizer } from "./format.ts";
import { type LearningRate, type ParameterGroup, type Parameters, parseGroups } from "./groups.ts";
import { partsOf, prepareState, type Slot, type Update } from "./slot.ts";
import { loadState, type OptimizerStateDict, saveState } from "./state_dict.ts";

/** Merges options into the defaults. An option that is undefined counts as absent. */
const withDefaults = <Options extends object>(given: Partial<Options>, defaults: Options): Options => ({
  ...defaults,
  ...definedOf(given),
});

/**
 * The base class of optimizers. It holds parameter groups, updates parameters that have a gradient, and saves state.
 *
 * @example
 * function train(optimizer: optim.Optimizer<{ lr: number }>) {
 *   loss().backward();
 *   optimizer.step();
 *   optimizer.zeroGrad();
 * }
 */
export abstract class Optimizer<Options extends LearningRate> {
  /** The parameter groups. Their options can be changed between steps. */
  readonly groups: readonly ParameterGroup<Options>[];
  /** @internal */ readonly slots: readonly Slot<Options>[];

  /** @param name the class name, for error messages and `stateDict()` */
  constructor(
    readonly name: string,
    parameters: Parameters<Options>,
    defaults: Options,
    options: Partial<Options>,
  ) {
    const parsed = reading(name, () => parseGroups(name, parameters, withDefaults(options, defaults)));
    const slots: Slot<Options>[] = [];
    this.groups = parsed.map(({ named, options }) => {
      checkNames(name, options, defaults);
      const group = { ...options, parameters: named.map(({ parameter }) => parameter), initialLr: options.lr };
      this.checkOptions(group);
      for (const { name: slotName, parameter } of named)
        slots.push({ name: slotName, owner: parameter, parameter: partsOf(parameter), group, steps: 0, state: {} });
      return group;
    });
    this.slots = slots;
  }

  /** @throws {ArgumentError} for an invalid option of a group. */
  protected checkOptions({ lr, initialLr }: ParameterGroup<Options>): void {
    checkNumber(this.name, "lr", lr, notNegative);
    checkNumber(this.name, "initialLr", initialLr, notNegative);
  }

  /** Returns the names of the state tensors of a parameter in this group. */
  abstract stateNames(group: ParameterGroup<Options>, parameter: Tensor): readonly string[];

  /** Returns the shape of a state tensor, by default the parameter's. */
  stateShape(_name: string, parameter: Tensor): Shape {
    return parameter.shape;
  }

  /** Returns the initial value of a state tensor's elements, by default 0. */
  protected initialValue(_name: string, _group: ParameterGroup<Options>): number {
    return 0;
  }

  /** Updates the parameters of these slots and their state. Runs in `noGrad` and `tidy`. */
  protected abstract update(updates: readonly Update<Options>[]): void;

  /**
   * Updates every parameter that has a gradient, in place. The others stay unchanged.
   *
   * @throws {ArgumentError} for an invalid option. @throws {DisposedError} for a disposed parameter or gradient.
   */
  step(): void {
    for (const group of this.groups) this.checkOptions(group);
    const updates = this.slots.flatMap((slot) => {
      const { grad } = slot.owner;
      if (grad === null || slot.parameter.size === 0) return [];
      slot.owner.checkAlive(this.name);
      grad.checkAlive(this.name);
      return [{ slot, gradient: partsOf(grad) }];
    });
    for (const { slot } of updates) slot.steps++;
    currentCapture()?.stepped(
      this,
      updates.map(({ slot }) => slot),
    );
    for (const { slot } of updates) {
      // An option that changed between steps may change which state tensors there are.
      const names = this.stateNames(slot.group, slot.parameter);
      prepareState(slot, names, (name) => ({
        shape: this.stateShape(name, slot.parameter),
        value: this.initialValue(name, slot.group),
      }));
    }
    noGrad(() => tidy(() => this.update(updates)));
  }

  /**
   * @internal Checks the options and counts a step of these slots, as {@link step} does, for a compiled step.
   *
   * @throws {ArgumentError} for an invalid option.
   */
  countStep(slots: readonly Slot<Options>[]): void {
    for (const group of this.groups) this.checkOptions(group);
    for (const slot of slots) slot.steps++;
  }

  /**
   * @internal The settings that determine the operations of a step, except learning rates and step counts; null if a
   *   step can't be compiled.
   */
  stepKey(): string | null {
    return null;
  }

  /** Sets all gradients to null. */
  zeroGrad(): void {
    for (const { owner } of this.slots) {
      owner.grad?.dispose();
      owner.grad = null;
    }
  }

  /**
   * Sets the learning rate of every group, or of one.
   *
   * @throws {ArgumentError} for a negative learning rate, NaN, or a group index out of range.
   */
  setLearningRate(lr: number, group?: number): void {
    checkNumber(this.name, "lr", lr, notNegative);
    if (group !== undefined && !(Number.isInteger(group) && this.groups[group]))
      throw new ArgumentError(
        this.name,
        "noGroup",
        `expected group to be an index below ${this.groups.length}, got ${describeValue(group)}`,
      );
    for (const each of group === undefined ? this.groups : [this.groups[group]]) each.lr = lr;
  }

  /**
   * Sets the learning rate of every group to `factor` times its initial learning rate, as schedules do.
   *
   * @example
   * const schedule = cosineWithWarmup({ warmup: 100, total: 2000 });
   * optimizer.scaleLearningRate(schedule(step));
   */
  scaleLearningRate(factor: number): void {
    checkNumber(this.name, "a schedule's factor", factor, finite);
    for (const group of this.groups) group.lr = group.initialLr * factor;
  }

  /**
   * Returns everything that a step depends on except the parameters: group options, step counts, and state tensors by
   * parameter name. The tensors are not copies: save or clone them before the next step.
   */
  stateDict(): OptimizerStateDict {
    return saveState(this);
  }

  /**
   * Copies a state of {@link stateDict} into this optimizer. The next step is then bit-identical to the next step of
   * the optimizer that was saved.
   *
   * @throws {ArgumentError} `stateDiffers`, listing every difference, if the optimizer or its parameters do not match.
   * Nothing is changed then.
   */
  loadStateDict(dict: OptimizerStateDict): void {
    reading(this.name, () => loadState(this, dict));
  }

  /** Returns parameters, steps, bytes of state, and the options of each group as text. */
  toString(): string {
    return formatOptimizer(this);
  }

  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return this.toString();
  }
}
