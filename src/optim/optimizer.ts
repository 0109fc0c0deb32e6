import { noGrad } from "../autograd/modes.ts";
import { ArgumentError, ShapeError } from "../core/errors.ts";
import { checkNames, checkNumber, finite, notNegative } from "../core/options.ts";
import { toDType } from "../ops/copy/cast.ts";
import { zeros } from "../ops/creation/full.ts";
import { formatShape, sameShape } from "../tensor/shape.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { keep, tidy } from "../tensor/tidy.ts";
import { type LearningRate, type ParameterGroup, type Parameters, parseGroups } from "./groups.ts";
import { loadState, type OptimizerStateDict, saveState } from "./state_dict.ts";

/** A parameter, and what an optimizer remembers of it. */
export interface Slot<Options> {
  readonly name: string;
  readonly parameter: Tensor;
  readonly group: ParameterGroup<Options>;
  /** Steps that it took part in. */
  steps: number;
  /** By name, of the parameter's shape: float32, but float64 of a float64 parameter. Empty before the first step. */
  state: Record<string, Tensor>;
}

/** An option that is given as undefined is left out. */
const withDefaults = <Options extends object>(given: Partial<Options>, defaults: Options): Options => ({
  ...defaults,
  ...(Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as Partial<Options>),
});

/** The dtype of what is remembered of a parameter. */
export const stateDType = ({ dtype }: Tensor) => (dtype === "float64" ? "float64" : "float32");

/** Master weights begin as the parameter, everything else as zeros. */
const initialState = (name: string, parameter: Tensor): Tensor =>
  name === "master"
    ? noGrad(() => toDType(parameter, stateDType(parameter)))
    : zeros(parameter.shape, { dtype: stateDType(parameter) });

/** A slot in a step, with its gradient. */
export interface Update<Options> {
  readonly slot: Slot<Options>;
  readonly gradient: Tensor;
}

/** The base of all optimizers: groups of parameters, steps over those that have a gradient, and a state that can be saved. */
export abstract class Optimizer<Options extends LearningRate> {
  /** Options may be changed between steps. */
  readonly groups: readonly ParameterGroup<Options>[];
  /** @internal */ readonly slots: readonly Slot<Options>[];

  /** @param name of the class, for errors and in `stateDict()` */
  constructor(
    readonly name: string,
    parameters: Parameters<Options>,
    defaults: Options,
    options: Partial<Options>,
  ) {
    checkNames(name, options, defaults);
    const parsed = parseGroups(name, parameters, withDefaults(options, defaults));
    const slots: Slot<Options>[] = [];
    this.groups = parsed.map(({ named, options }) => {
      checkNames(name, options, defaults);
      const group = { ...options, parameters: named.map(({ parameter }) => parameter), initialLr: options.lr };
      this.checkOptions(group);
      for (const each of named) slots.push({ ...each, group, steps: 0, state: {} });
      return group;
    });
    this.slots = slots;
  }

  /** @throws {ArgumentError} where an option of a group is not what it may be. */
  protected checkOptions({ lr, initialLr }: ParameterGroup<Options>): void {
    checkNumber(this.name, "lr", lr, notNegative);
    checkNumber(this.name, "initialLr", initialLr, notNegative);
  }

  /** The names of the tensors that it remembers of a parameter of this group. */
  abstract stateNames(group: ParameterGroup<Options>, parameter: Tensor): readonly string[];

  /** Changes the parameters of these slots, and their state. Runs in `noGrad` and `tidy`. */
  protected abstract update(updates: readonly Update<Options>[]): void;

  /**
   * Changes every parameter that has a gradient, in place; the others stay as they are.
   *
   * @throws {ArgumentError} for an option that is none. @throws {ShapeError} for a gradient of another shape than its parameter's.
   */
  step(): void {
    for (const group of this.groups) this.checkOptions(group);
    const updates = this.slots.flatMap((slot) => {
      const { grad } = slot.parameter;
      return grad === null || slot.parameter.size === 0 ? [] : [{ slot, gradient: this.checkedGradient(slot, grad) }];
    });
    for (const { slot } of updates) this.prepare(slot);
    noGrad(() => tidy(() => this.update(updates)));
  }

  private checkedGradient({ name, parameter }: Slot<Options>, gradient: Tensor): Tensor {
    parameter.checkAlive(this.name);
    gradient.checkAlive(this.name);
    if (sameShape(gradient.shape, parameter.shape)) return gradient;
    throw new ShapeError(
      this.name,
      "shapesDiffer",
      `the gradient of parameter ${name} has shape ${formatShape(gradient.shape)}, the parameter ${formatShape(parameter.shape)}`,
    );
  }

  /** An option that is changed between steps may change what is remembered. */
  private prepare(slot: Slot<Options>): void {
    slot.steps++;
    const { parameter, state: old } = slot;
    const names = this.stateNames(slot.group, parameter);
    if (Object.keys(old).join() === names.join()) return;
    slot.state = Object.fromEntries(names.map((name) => [name, old[name] ?? keep(initialState(name, parameter))]));
    for (const [name, tensor] of Object.entries(old)) if (!(name in slot.state)) tensor.dispose();
  }

  /** Forgets all gradients: `grad` becomes null. */
  zeroGrad(): void {
    for (const { parameter } of this.slots) {
      parameter.grad?.dispose();
      parameter.grad = null;
    }
  }

  /** Sets the learning rate of every group, or of one. @throws {ArgumentError} for a negative one, NaN, or a group that there is not. */
  setLearningRate(lr: number, group?: number): void {
    checkNumber(this.name, "lr", lr, notNegative);
    if (group !== undefined && !this.groups[group])
      throw new ArgumentError(this.name, "noGroup", `there is no group ${group}; there are ${this.groups.length}`);
    for (const each of group === undefined ? this.groups : [this.groups[group]!]) each.lr = lr;
  }

  /**
   * Sets the learning rate of every group to a multiple of the one that it was made with, as schedules want it.
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
   * Everything that a step depends on, but for the parameters: options of the groups, steps and tensors by the parameters' names. The tensors are the
   * optimizer's own, without a copy: save or clone them before the next step.
   */
  stateDict(): OptimizerStateDict {
    return saveState(this);
  }

  /**
   * Takes over what {@link stateDict} gave, as a copy: the next step is, bit by bit, the one that would have followed there.
   *
   * @throws {ArgumentError} `stateDiffers`, with every difference, where it is not that of such an optimizer over such parameters. Nothing is
   *   changed then.
   */
  loadStateDict(dict: OptimizerStateDict): void {
    loadState(this, dict);
  }
}
