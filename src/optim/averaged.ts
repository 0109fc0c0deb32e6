/** Averages of parameters over training steps. */
import { noGrad } from "../autograd/modes.ts";
import { describeValue } from "../core/describe.ts";
import { ArgumentError } from "../core/errors.ts";
import { aFunction, aNumber } from "../core/kinds.ts";
import { belowOne } from "../core/options.ts";
import { type Kind, named, operand, parameters, reading } from "../core/parameters.ts";
import { toDType } from "../ops/copy/cast.ts";
import { clone, copyInto } from "../ops/copy/copy.ts";
import { lerp } from "../ops/elementwise/lerp.ts";
import { sameShape } from "../tensor/shape.ts";
import { Tensor } from "../tensor/tensor.ts";
import { keep, tidy } from "../tensor/tidy.ts";
import { type ParameterList, parseGroups } from "./groups.ts";
import { stateDType } from "./slot.ts";

/** Options of {@link AveragedWeights}. */
export interface AveragedWeightsOptions {
  /** The decay of an exponential average; without it, all updates have equal weight. */
  decay?: number;
}

/** The result of {@link AveragedWeights.stateDict}. */
export interface AveragedState {
  /** The number of updates so far. */
  readonly updates: number;
  /** The averages by parameter name, or by index if the parameters have no names. */
  readonly tensors: Readonly<Record<string, Tensor>>;
}

const anything: Kind<unknown> = { expected: "a value", parse: (value) => value };
const averagedParameters = parameters("AveragedWeights", {
  parameters: operand(anything),
  decay: named(aNumber(belowOne)),
});
const withAveragesParameters = parameters("AveragedWeights.withAverages", {
  body: operand(aFunction<() => unknown>()),
});

interface Member {
  readonly name: string;
  readonly parameter: Tensor;
  average: Tensor | undefined;
}

/**
 * Averages parameters over updates, in float32 (float64 for float64 parameters): PyTorch's AveragedModel. The average
 * is the mean of all updates (stochastic weight averaging, Izmailov et al., 2018). With `decay` it is an exponential
 * average, as with PyTorch's `get_ema_avg_fn`.
 *
 *     a ← a + (p − a) / (n + 1),   with decay a ← a + (1 − decay) (p − a),   after the first update a = p
 *
 * @example
 * const averages = new optim.AveragedWeights(model.namedParameters(), { decay: 0.999 });
 * for (const batch of batches) {
 *   trainStep(batch);
 *   averages.update();
 * }
 * const loss = averages.withAverages(() => evaluate(model));
 *
 * @throws {ArgumentError} for an invalid option or parameter list. @throws {DTypeError} for integer parameters.
 */
export class AveragedWeights {
  readonly #members: readonly Member[];
  readonly #decay: number | undefined;
  #updates = 0;

  constructor(parameters: ParameterList, options?: AveragedWeightsOptions);
  constructor(...values: unknown[]) {
    const given = averagedParameters(values);
    const groups = reading("AveragedWeights", () =>
      parseGroups("AveragedWeights", given.parameters as ParameterList, {}),
    );
    this.#members = groups.flatMap(({ named }) => named.map((each) => ({ ...each, average: undefined })));
    this.#decay = given.decay;
  }

  /** The number of updates so far. */
  get updates(): number {
    return this.#updates;
  }

  /** Adds the current parameters to the averages. @throws {DisposedError} */
  update(): void {
    for (const { parameter } of this.#members) parameter.checkAlive("AveragedWeights.update");
    const weight = this.#decay === undefined ? 1 / (this.#updates + 1) : 1 - this.#decay;
    noGrad(() =>
      tidy(() => {
        for (const member of this.#members) takeIn(member, weight);
      }),
    );
    this.#updates++;
  }

  /**
   * Runs a function with the averages in place of the parameters. The parameters are restored afterwards, also if it
   * throws; if it returns a promise, once that settles. Before the first update nothing is replaced.
   */
  withAverages<Result>(body: () => Result): Result {
    const { body: run } = withAveragesParameters([body]);
    const before = noGrad(() => this.#members.map(({ parameter }) => keep(clone(parameter))));
    const restore = () =>
      noGrad(() => {
        for (const [at, { parameter }] of this.#members.entries()) {
          copyInto(parameter, before[at]);
          before[at].dispose();
        }
      });
    this.copyToParameters();
    let isLater = false;
    try {
      const result = run();
      if (!(result instanceof Promise)) return result as Result;
      isLater = true;
      return result.finally(restore) as Result;
    } finally {
      if (!isLater) restore();
    }
  }

  /** Copies the averages into the parameters. Before the first update nothing changes. */
  copyToParameters(): void {
    noGrad(() =>
      tidy(() => {
        for (const { parameter, average } of this.#members) if (average) copyInto(parameter, average);
      }),
    );
  }

  /** Returns the averages, not copies: save or clone them before the next update. */
  stateDict(): AveragedState {
    const known = this.#members.flatMap(({ name, average }) => (average ? [[name, average] as const] : []));
    return { updates: this.#updates, tensors: Object.fromEntries(known) };
  }

  /** Copies a state of {@link stateDict} into these averages. @throws {ArgumentError} `stateDiffers` */
  loadStateDict(state: AveragedState): void {
    const { updates, tensors } = reading("AveragedWeights", () => ({ ...state, tensors: { ...state?.tensors } }));
    if (!Number.isSafeInteger(updates) || updates < 0)
      throw differs(`updates to be a whole number of at least 0, got ${describeValue(updates)}`);
    const expected = updates === 0 ? [] : this.#members;
    for (const { name, parameter } of expected) {
      const average: unknown = tensors[name];
      const dtype = stateDType(parameter);
      const isThere = Tensor.isTensor(average) && average.dtype === dtype && sameShape(average.shape, parameter.shape);
      if (!isThere)
        throw differs(`${name} to be ${dtype}[${parameter.shape.join(", ")}], got ${describeValue(average)}`);
    }
    const copies = noGrad(() => expected.map(({ name }) => keep(clone(tensors[name]))));
    for (const [at, member] of this.#members.entries()) {
      member.average?.dispose();
      member.average = copies[at];
    }
    this.#updates = updates;
  }
}

function takeIn(member: Member, weight: number): void {
  const { parameter, average } = member;
  const now: Tensor = toDType(parameter, stateDType(parameter));
  if (average === undefined) member.average = keep(now === parameter ? clone(parameter) : now);
  else copyInto(average, lerp(average, now, weight));
}

const differs = (what: string): ArgumentError =>
  new ArgumentError("AveragedWeights", "stateDiffers", `expected ${what}`);
