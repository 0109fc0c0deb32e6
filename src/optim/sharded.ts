/** Optimizer state sharded over the ranks: ZeRO (Rajbhandari et al., 2020). */
import { noGrad } from "../autograd/modes.ts";
import { empty } from "../backend/allocation.ts";
import { ArgumentError } from "../core/errors.ts";
import { instanceOf } from "../core/kinds.ts";
import { operand, parameters } from "../core/parameters.ts";
import { allReduce, broadcast } from "../distributed/collectives.ts";
import { parallelOf } from "../distributed/data_parallel.ts";
import { gather } from "../distributed/gather.ts";
import { rank, worldSize } from "../distributed/world.ts";
import { copyInto } from "../ops/copy/copy.ts";
import { fromArray } from "../ops/creation/tensor.ts";
import { detach } from "../ops/gradient/backward.ts";
import { reshape } from "../ops/view/reshape.ts";
import { narrow } from "../ops/view/slice.ts";
import type { DType } from "../tensor/dtype.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { tidy } from "../tensor/tidy.ts";
import type { LearningRate } from "./groups.ts";
import { LBFGS } from "./lbfgs.ts";
import { Optimizer } from "./optimizer.ts";
import { type Slot, stateDType } from "./slot.ts";
import type { OptimizerStateDict } from "./state_dict.ts";

/**
 * Shards an optimizer's state over the ranks, as ZeRO does: each rank keeps the state of some of the parameters,
 * updates those in `step()`, and sends the results to the other ranks. The results equal those of the unsharded
 * optimizer. The state takes about 1 / worldSize of the memory on each rank; parameters are not split. Call this before
 * the first step; it returns the same optimizer.
 *
 * If {@link distributed.dataParallel} was called on a model with all of the parameters, gradients are sharded too. A
 * backward pass then gives each rank only the mean gradients of the parameters it updates, by
 * {@link distributed.reduceScatter}; `grad` is null for the others. `clipGradNorm` and `GradScaler` account for the
 * gradients of all ranks, and every rank must call them. Without `dataParallel`, every rank must have the same
 * gradients.
 *
 * Every rank must call `step()`, `stateDict()` and `loadStateDict()`. `stateDict()` returns the whole state on every
 * rank, and any number of ranks can load it.
 *
 * @example
 * distributed.dataParallel(model);
 * const optimizer = optim.sharded(new optim.AdamW(model.parameters()));
 *
 * @throws {ArgumentError} `notSharded` for LBFGS, whose state belongs to all parameters together.
 * @throws {DistributedError} `notInitialized`
 */
export function sharded<O extends Pick<Optimizer<LearningRate>, "step" | "stateDict" | "loadStateDict">>(
  optimizer: O,
): O;
export function sharded(...values: unknown[]): Optimizer<LearningRate> {
  const { optimizer } = shardedParameters(values);
  if (optimizer instanceof LBFGS)
    throw new ArgumentError(
      "optim.sharded",
      "notSharded",
      "expected an optimizer with a separate state per parameter, got LBFGS, whose state covers all of them",
    );
  if (worldSize() > 1) new Shares(optimizer).install();
  return optimizer;
}

const anOptimizer = instanceOf<Optimizer<LearningRate>>(Optimizer, "an optimizer");
const shardedParameters = parameters("optim.sharded", { optimizer: operand(anOptimizer) });

class Shares {
  /** The rank that owns each slot. */
  private readonly owners: readonly number[];
  private readonly stepPlain: () => void;
  private readonly savePlain: () => OptimizerStateDict;
  private readonly loadPlain: (dict: OptimizerStateDict) => void;

  constructor(private readonly optimizer: Optimizer<LearningRate>) {
    this.owners = ownersOf(optimizer.slots);
    this.stepPlain = optimizer.step.bind(optimizer);
    this.savePlain = optimizer.stateDict.bind(optimizer);
    this.loadPlain = optimizer.loadStateDict.bind(optimizer);
  }

  /** Replaces the optimizer's methods. */
  install(): void {
    const parameters = this.optimizer.slots.map(({ parameter }) => parameter);
    parallelOf(parameters)?.shareOut(new Map(parameters.map((parameter, at) => [parameter, this.owners[at]])));
    this.optimizer.step = () => this.step();
    this.optimizer.stateDict = () => this.stateDict();
    this.optimizer.loadStateDict = (dict) => this.loadStateDict(dict);
  }

  private slotsOf(owner: number): Slot<LearningRate>[] {
    return this.optimizer.slots.filter((_, at) => this.owners[at] === owner);
  }

  /** Hides the gradients of other ranks' parameters, because a step skips parameters without a gradient. */
  private step(): void {
    const others = this.optimizer.slots.filter((_, at) => this.owners[at] !== rank());
    const gradients = others.map(({ owner }) => owner.grad);
    for (const { owner } of others) owner.grad = null;
    try {
      this.stepPlain();
    } finally {
      for (const [at, { owner }] of others.entries()) owner.grad = gradients[at]!;
    }
    for (const dtype of new Set(this.optimizer.slots.map(({ parameter }) => parameter.dtype)))
      tidy(() => noGrad(() => this.exchange(dtype)));
  }

  /** Sends every rank the parameters of one dtype that the others have updated, in one call. */
  private exchange(dtype: DType): void {
    const shares = Array.from({ length: worldSize() }, (_, owner) =>
      this.slotsOf(owner).flatMap(({ parameter }) => (parameter.dtype === dtype ? [parameter] : [])),
    );
    const largest = Math.max(...shares.map((share) => share.reduce((sum, { size }) => sum + size, 0)));
    const packed = empty([largest], dtype, {}, "optim.sharded");
    for (const [parameter, part] of partsOf(shares[rank()], packed)) copyInto(part, parameter);
    const all = gather("optim.sharded", packed);
    for (const [owner, share] of shares.entries()) {
      if (owner === rank()) continue;
      const from = reshape(narrow(all, 0, owner, 1), [largest]);
      for (const [parameter, part] of partsOf(share, from)) {
        copyInto(parameter, part);
      }
    }
  }

  private stateDict(): OptimizerStateDict {
    const { slots } = this.optimizer;
    const counts = Float64Array.from(slots, ({ steps }) => steps);
    const steps = allReduce(fromArray(counts), { op: "max" }).dataSync();
    const tensors = slots.flatMap((slot, at) =>
      steps[at] === 0 ? [] : this.stateOf(slot, this.owners[at]).map(([key, x]) => [`${slot.name}.${key}`, x] as const),
    );
    return {
      ...this.savePlain(),
      steps: Object.fromEntries(slots.map(({ name }, at) => [name, steps[at]])),
      tensors: Object.fromEntries(tensors),
    };
  }

  /** Returns the state of a slot on every rank: its owner sends it. */
  private stateOf({ group, parameter, state }: Slot<LearningRate>, owner: number): [string, Tensor][] {
    const names = this.optimizer.stateNames(group, parameter);
    return names.map((name) => {
      const saved = state[name];
      const x =
        owner === rank()
          ? detach(saved)
          : empty(this.optimizer.stateShape(name, parameter), stateDType(parameter), {}, "optim.sharded");
      return [name, broadcast(x, { src: owner })];
    });
  }

  private loadStateDict(dict: OptimizerStateDict): void {
    this.loadPlain(dict);
    for (const [at, slot] of this.optimizer.slots.entries()) {
      if (this.owners[at] === rank()) continue;
      for (const tensor of Object.values(slot.state)) tensor.dispose();
      slot.state = {};
    }
  }
}

/** Assigns each slot, in order, to the rank with the fewest elements so far. Every rank computes the same result. */
function ownersOf(slots: readonly Slot<LearningRate>[]): number[] {
  const loads = new Array<number>(worldSize()).fill(0);
  return slots.map(({ parameter }) => {
    const owner = loads.indexOf(Math.min(...loads));
    loads[owner] += parameter.size;
    return owner;
  });
}

/** Splits a vector into consecutive parts, one per parameter, each reshaped to the parameter's shape. */
function partsOf(members: readonly Tensor[], vector: Tensor): [Tensor, Tensor][] {
  let start = 0;
  return members.map((parameter) => {
    const part = reshape(narrow(vector, 0, start, parameter.size), parameter.shape);
    start += parameter.size;
    return [parameter, part];
  });
}
