import { enableGrad, noGrad } from "../autograd/modes.ts";
import { describeValue } from "../core/describe.ts";
import { ArgumentError } from "../core/errors.ts";
import { checkNumber, count, notNegative } from "../core/options.ts";
import { type Given, reading } from "../core/parameters.ts";
import { tupleOf } from "../core/tuples.ts";
import { currentCapture } from "../observe/capture.ts";
import { toDType } from "../ops/copy/cast.ts";
import { clone, copyInto } from "../ops/copy/copy.ts";
import { zeros } from "../ops/creation/full.ts";
import { tensor } from "../ops/creation/tensor.ts";
import { abs, add, mul, neg, sub } from "../ops/elementwise/arithmetic.ts";
import { cat, stack } from "../ops/join/cat.ts";
import { dot } from "../ops/matmul/dot.ts";
import { amax } from "../ops/reduction/extrema.ts";
import { sum } from "../ops/reduction/sum.ts";
import { reshape } from "../ops/view/reshape.ts";
import { narrow } from "../ops/view/slice.ts";
import { unbind } from "../ops/view/split.ts";
import { Tensor } from "../tensor/tensor.ts";
import { keep, tidy } from "../tensor/tidy.ts";
import type { LearningRate, ParameterGroup, Parameters } from "./groups.ts";
import { type Point, strongWolfe } from "./line_search.ts";
import { Optimizer } from "./optimizer.ts";
import { optimizerParameters } from "./options.ts";
import { stateDType } from "./slot.ts";
import { loadState, type OptimizerStateDict } from "./state_dict.ts";

/** Options of {@link LBFGS}, as in PyTorch. */
export interface LBFGSOptions extends LearningRate {
  /** The maximum number of iterations per step. Default 20. */
  maxIter: number;
  /** The maximum number of closure calls per step; null means 5/4 of `maxIter`. Default null. */
  maxEval: number | null;
  /** The step ends once no element of the gradient is larger than this. Default 1e-7. */
  toleranceGrad: number;
  /** The step ends once the loss, or every parameter, changes by no more than this. Default 1e-9. */
  toleranceChange: number;
  /** The number of past changes of the gradient and the parameters to keep. Default 100. */
  historySize: number;
  /** The line search that finds step sizes; null uses the learning rate. Default null. */
  lineSearchFn: "strongWolfe" | null;
  /** Maximizes the objective instead of minimizing it. Default false. */
  maximize: boolean;
}

const defaults: LBFGSOptions = {
  lr: 1,
  maxIter: 20,
  maxEval: null,
  toleranceGrad: 1e-7,
  toleranceChange: 1e-9,
  historySize: 100,
  lineSearchFn: null,
  maximize: false,
};

const lbfgsParameters = optimizerParameters("LBFGS", defaults);

/** The history kept between iterations. Each tensor is a vector over the elements of all parameters. */
interface Memory {
  direction: Tensor;
  stepSize: number;
  /** The gradient at which the direction was computed. */
  gradient: Tensor;
  /** Changes of the gradient (y) and of the parameters (s), the oldest first. */
  changes: readonly Change[];
  /** The scale of the first guess of the inverse Hessian, sᵀy / yᵀy. */
  scale: number;
}

interface Change {
  readonly gradient: Tensor;
  readonly parameters: Tensor;
  /** sᵀy */
  readonly product: number;
}

/** A change with a smaller sᵀy is not kept: the curvature along it is not positive. */
const LEAST_PRODUCT = 1e-10;

/**
 * L-BFGS (Liu and Nocedal, "On the Limited Memory BFGS Method", 1989), as in PyTorch. Each step runs up to `maxIter`
 * iterations, which call a closure that computes the loss and its gradients. The state holds up to 2 · `historySize`
 * copies of the parameters, in float32 (float64 for float64 parameters).
 *
 * Only one parameter group is supported. Every step waits for the device, because it reads the losses.
 *
 * @example
 * const optimizer = new LBFGS([x], { lineSearchFn: "strongWolfe" });
 * optimizer.step(() => {
 *   optimizer.zeroGrad();
 *   const loss = x.sub(3).square().sum();
 *   loss.backward();
 *   return loss;
 * });
 *
 * @throws {ArgumentError} for an invalid option or parameter list, or several groups. @throws {DTypeError} for integer
 * parameters.
 */
export class LBFGS extends Optimizer<LBFGSOptions> {
  #memory: Memory | null = null;
  #evaluations = 0;

  constructor(parameters: Parameters<LBFGSOptions>, ...options: Given<Partial<LBFGSOptions>, ["lr"]>);
  constructor(...values: unknown[]) {
    const { parameters, options } = lbfgsParameters(values);
    super("LBFGS", parameters, defaults, options);
    if (this.groups.length === 1) return;
    throw new ArgumentError(this.name, "severalGroups", `expected one group, got ${this.groups.length}`);
  }

  protected override checkOptions(group: ParameterGroup<LBFGSOptions>): void {
    super.checkOptions(group);
    checkNumber(this.name, "maxIter", group.maxIter, count);
    if (group.maxEval !== null) checkNumber(this.name, "maxEval", group.maxEval, count);
    checkNumber(this.name, "toleranceGrad", group.toleranceGrad, notNegative);
    checkNumber(this.name, "toleranceChange", group.toleranceChange, notNegative);
    checkNumber(this.name, "historySize", group.historySize, count);
    if (group.lineSearchFn === null || group.lineSearchFn === "strongWolfe") return;
    throw new ArgumentError(
      this.name,
      "invalidOption",
      `expected lineSearchFn to be "strongWolfe" or null, got ${describeValue(group.lineSearchFn)}`,
    );
  }

  /** Returns no names: the state belongs to all parameters together. */
  override stateNames(): readonly string[] {
    return [];
  }

  protected override update(): void {
    // step() updates the parameters.
  }

  /**
   * Runs up to `maxIter` iterations.
   *
   * @param closure clears the gradients, computes the loss, calls `backward`, and returns the loss. It is called
   * several times
   *
   * @returns the loss before the step
   *
   * @throws {ArgumentError} `noClosure`, `noLoss`; for an invalid option.
   */
  override step(closure?: () => Tensor): Tensor {
    if (typeof closure !== "function")
      throw new ArgumentError(
        this.name,
        "noClosure",
        `expected a function that computes the loss and its gradients, got ${describeValue(closure)}`,
      );
    currentCapture()?.stepped(this, this.slots); // a recording refuses the step, since it reads losses
    const [group] = tupleOf(this.groups, 1);
    this.checkOptions(group);
    for (const { parameter } of this.slots) parameter.checkAlive(this.name);
    const { first, ...point } = this.evaluate(closure);
    if (largest(point.gradient) > group.toleranceGrad) this.iterate(closure, group, point);
    return first;
  }

  /** Iterates until a limit or a tolerance is met. */
  private iterate(closure: () => Tensor, group: ParameterGroup<LBFGSOptions>, start: Evaluation): void {
    const { lr, maxIter, toleranceGrad, toleranceChange } = group;
    const maxEval = group.maxEval ?? Math.floor((maxIter * 5) / 4);
    let [{ loss, gradient }, evaluations] = [start, 1];
    for (let iteration = 1; iteration <= maxIter; iteration++) {
      const isFirst = this.#memory === null;
      const memory = this.remember(gradient, group.historySize);
      const { direction } = memory;
      memory.stepSize = isFirst ? Math.min(1, 1 / numberOf(() => sum(abs(gradient)))) * lr : lr;
      const slope = numberOf(() => dot(gradient, direction));
      if (slope > -toleranceChange) return;

      const before = loss;
      const isLast = iteration === maxIter;
      const found = group.lineSearchFn
        ? this.search(closure, group, { t: 0, loss, gradient, slope }, maxEval - evaluations)
        : this.plainStep(closure, memory, isLast);
      evaluations += found.evaluations;
      if (found.point) [{ loss, gradient }, memory.stepSize] = [found.point, found.t];
      const isSmall = () =>
        largest(gradient) <= toleranceGrad ||
        largest(direction) * Math.abs(memory.stepSize) <= toleranceChange ||
        Math.abs(loss - before) < toleranceChange;
      if (isLast || evaluations >= maxEval || isSmall()) return;
    }
  }

  /** Moves the parameters by the learning rate. Evaluates the new loss only if another iteration follows. */
  private plainStep(closure: () => Tensor, { direction, stepSize }: Memory, isLast: boolean): Step {
    this.move(stepSize, direction);
    return { point: isLast ? null : this.evaluate(closure), t: stepSize, evaluations: isLast ? 0 : 1 };
  }

  private search(closure: () => Tensor, group: ParameterGroup<LBFGSOptions>, start: Point, most: number): Step {
    const { direction, stepSize } = this.#memory!;
    const before = this.slots.map(({ parameter }) => noGrad(() => keep(clone(parameter))));
    const restore = () => {
      for (const [at, { parameter }] of this.slots.entries()) copyInto(parameter, before[at]);
    };
    const evaluate = (t: number): Point => {
      this.move(t, direction);
      const { loss, gradient } = this.evaluate(closure);
      restore();
      return { t, loss, gradient, slope: numberOf(() => dot(gradient, direction)) };
    };
    const limits = { tolerance: group.toleranceChange, most };
    const { point, evaluations } = strongWolfe(start, stepSize, largest(direction), evaluate, limits);
    this.move(point.t, direction);
    for (const copy of before) copy.dispose();
    return { point, t: point.t, evaluations };
  }

  /** Calls the closure, and collects the loss and the gradients. */
  private evaluate(closure: () => Tensor): Evaluation & { readonly first: Tensor } {
    const first: unknown = enableGrad(closure);
    if (!Tensor.isTensor(first) || first.size !== 1)
      throw new ArgumentError(
        this.name,
        "noLoss",
        `expected the function to return the loss, a tensor of one element, got ${describeValue(first)}`,
      );
    this.#evaluations++;
    const { maximize } = this.groups[0];
    const loss = Number(first.item());
    const gradient = noGrad(() => tidy(() => keep(this.flatGradient(maximize))));
    return { first, loss: maximize ? -loss : loss, gradient };
  }

  private flatGradient(maximize: boolean): Tensor {
    const dtype = this.slots.some(({ parameter }) => parameter.dtype === "float64") ? "float64" : "float32";
    const flat = cat(
      this.slots.map(
        ({ parameter: { grad, size } }): Tensor =>
          grad ? toDType(reshape(grad, [size]), dtype) : zeros([size], { dtype }),
      ),
    );
    return maximize ? neg(flat) : flat;
  }

  /** Adds t · direction to the parameters. */
  private move(t: number, direction: Tensor): void {
    noGrad(() =>
      tidy(() => {
        let from = 0;
        for (const { parameter } of this.slots) {
          const part = reshape(narrow(direction, 0, from, parameter.size), parameter.shape);
          from += parameter.size;
          copyInto(parameter, add(toDType(parameter, stateDType(parameter)), mul(part, t)));
        }
      }),
    );
  }

  /** Updates the history with this gradient, and computes the direction. */
  private remember(gradient: Tensor, historySize: number): Memory {
    for (const slot of this.slots) slot.steps++;
    const before = this.#memory;
    const next = noGrad(() =>
      tidy((): Memory => {
        if (before === null) return { direction: keep(neg(gradient)), stepSize: 0, gradient, changes: [], scale: 1 };
        const { changes, scale } = withChange(before, gradient, historySize);
        return { direction: keep(directionOf(gradient, changes, scale)), stepSize: 0, gradient, changes, scale };
      }),
    );
    this.#memory = next;
    return next;
  }

  /** Returns the base class's state, plus the direction, the gradient, their changes and the scalars. */
  override stateDict(): OptimizerStateDict {
    const memory = this.#memory;
    const dict = super.stateDict();
    if (memory === null) return dict;
    const { direction, gradient, stepSize, scale, changes } = memory;
    const numbers = [stepSize, scale, this.#evaluations, ...changes.map(({ product }) => product)];
    const rows = (of: (change: Change) => Tensor): Tensor =>
      changes.length > 0 ? stack(changes.map(of)) : zeros([0, direction.size], { dtype: direction.dtype });
    const tensors = {
      direction,
      previousGradient: gradient,
      numbers: tensor(Float64Array.from(numbers)),
      gradientChanges: rows((change) => change.gradient),
      parameterChanges: rows((change) => change.parameters),
    };
    return { ...dict, tensors };
  }

  /** @throws {ArgumentError} `stateDiffers` */
  override loadStateDict(dict: OptimizerStateDict): void {
    reading(this.name, () => {
      const { tensors } = dict ?? {};
      const size = this.slots.reduce((total, { parameter }) => total + parameter.size, 0);
      const memory = Object.keys(tensors ?? {}).length === 0 ? null : memoryOf(this.name, tensors, size);
      loadState(this, { ...dict, ...(tensors && { tensors: {} }) });
      this.#memory = memory?.memory ?? null;
      this.#evaluations = memory?.evaluations ?? 0;
    });
  }
}

interface Evaluation {
  readonly loss: number;
  readonly gradient: Tensor;
}

interface Step {
  readonly point: Evaluation | null;
  readonly t: number;
  readonly evaluations: number;
}

const numberOf = (of: () => Tensor): number => Number(noGrad(() => tidy(() => of().item())));
const largest = (x: Tensor): number => numberOf(() => amax(abs(x)));

/** Adds the last iteration's change to the history, if the curvature along it is positive. */
function withChange(
  { direction, stepSize, gradient: before, changes, scale }: Memory,
  gradient: Tensor,
  historySize: number,
): Pick<Memory, "changes" | "scale"> {
  const y: Tensor = sub(gradient, before);
  const s: Tensor = mul(direction, stepSize);
  const product = Number(dot(y, s).item());
  if (!(product > LEAST_PRODUCT)) return { changes, scale };
  const change = { gradient: keep(y), parameters: keep(s), product };
  return { changes: [...changes, change].slice(-historySize), scale: product / Number(dot(y, y).item()) };
}

/** −H g by the two-loop recursion: algorithm 7.4 of Nocedal and Wright, "Numerical Optimization", 2006. */
function directionOf(gradient: Tensor, changes: readonly Change[], scale: number): Tensor {
  let q: Tensor = neg(gradient);
  const factors = changes.toReversed().map(({ gradient: y, parameters: s, product }) => {
    const factor: Tensor = mul(dot(s, q), 1 / product);
    q = sub(q, mul(y, factor));
    return factor;
  });
  let r: Tensor = mul(q, scale);
  for (const [at, { gradient: y, parameters: s, product }] of changes.entries()) {
    const factor: Tensor = mul(dot(y, r), 1 / product);
    r = add(r, mul(s, sub(factors[changes.length - 1 - at], factor)));
  }
  return r;
}

/** Reads the history from a state dict. @throws {ArgumentError} `stateDiffers` */
function memoryOf(
  operation: string,
  tensors: OptimizerStateDict["tensors"],
  size: number,
): { readonly memory: Memory; readonly evaluations: number } {
  const names = ["direction", "previousGradient", "numbers", "gradientChanges", "parameterChanges"] as const;
  const [direction, gradient, numbers, ys, ss] = tupleOf(
    names.map((name) => {
      const given: unknown = tensors[name];
      const isRows = name.endsWith("Changes");
      const fits =
        Tensor.isTensor(given) &&
        given.rank === (isRows ? 2 : 1) &&
        (name === "numbers" || given.shape.at(-1) === size);
      if (fits) return given;
      const expected =
        name === "numbers" ? "a vector" : `a ${isRows ? "matrix of rows" : "vector"} of ${size} elements`;
      throw new ArgumentError(
        operation,
        "stateDiffers",
        `the state does not match this optimizer:\n  tensor ${name}: expected ${expected}, got ${describeValue(given)}`,
      );
    }),
    5,
  );
  const [stepSize = 0, scale = 1, evaluations = 0, ...products] = Array.from(numbers.dataSync() as Float64Array);
  return noGrad(() => {
    const copies = (x: Tensor) => unbind(x).map((row) => keep(clone(row)));
    const [y, s] = [copies(ys), copies(ss)];
    const changes = products.map((product, at) => ({ gradient: y[at], parameters: s[at], product }));
    const memory = { direction: keep(clone(direction)), gradient: keep(clone(gradient)), stepSize, scale, changes };
    return { memory, evaluations };
  });
}
