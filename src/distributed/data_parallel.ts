/** Data-parallel training: each rank computes gradients on a different batch, and all take the same step. */
import { atEndOfPass, onArrival } from "../autograd/arrival.ts";
import { noGrad } from "../autograd/modes.ts";
import { isPromise } from "../core/context.ts";
import { aFunction, aNumber, anObject } from "../core/kinds.ts";
import { positive } from "../core/options.ts";
import { madeBy, named, operand, parameters } from "../core/parameters.ts";
import { fromArray } from "../ops/creation/tensor.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { type Bucket, CommonBucket, type Layout, layoutOf, type Owners, SharedBucket } from "./buckets.ts";
import { callSync } from "./call.ts";
import { DistributedError } from "./errors.ts";
import { type Exchange, exchangeOf } from "./exchange.ts";
import { broadcastCall } from "./gather.ts";
import { type Connection, type World, worldOf } from "./world.ts";

/** The methods of a model that data-parallel training uses. `nn.Module` has them. */
export interface ParallelModel {
  namedParameters(): Map<string, Tensor>;
  namedBuffers(): Map<string, Tensor>;
}

/** Options of {@link dataParallel}. */
export interface DataParallelOptions {
  /** Bytes of gradients exchanged per call. Default 25 MB. */
  bucketBytes?: number | undefined;
}

/**
 * Trains a model on all ranks. Copies rank 0's weights and buffers to all ranks, and makes every `backward()` store the
 * mean of all ranks' gradients in the parameters' `grad`. So every rank takes the same step.
 *
 * Gradients are exchanged in buckets while backward runs, in the order in which backward computes them. The first pass
 * determines that order on rank 0, and exchanges at its end. A parameter that no rank used keeps its `grad`; if only
 * some ranks used it, its gradient counts as 0 on the others. Gradients of 16-bit parameters are summed in float32.
 *
 * @param model with the same names, shapes and dtypes on every rank; parameters that are frozen later are skipped
 *
 * @example const parallel = distributed.dataParallel(model); const loss = crossEntropy(model.forward(x), y); // x and y
 * differ by rank backward(loss); clipGradNorm(model.parameters(), 1); optimizer.step();
 *
 * @throws {DistributedError} `mismatch` on every rank if the models differ; `notInitialized`
 */
export function dataParallel<M extends ParallelModel>(model: M, options?: DataParallelOptions): DataParallel<M>;
export function dataParallel(...values: unknown[]): DataParallel<ParallelModel> {
  const { model, bucketBytes } = dataParallelParameters(values);
  return new DataParallel(model, bucketBytes, worldOf("dataParallel"));
}

const dataParallelParameters = parameters("dataParallel", {
  model: operand({
    ...anObject<ParallelModel>("a module"),
    parse: (value) => (isModel(value) ? value : undefined),
  }),
  bucketBytes: named(aNumber(positive), 25e6),
});

const isModel = (value: unknown): value is ParallelModel =>
  typeof value === "object" &&
  value !== null &&
  typeof (value as ParallelModel).namedParameters === "function" &&
  typeof (value as ParallelModel).namedBuffers === "function";

/** The object that exchanges the gradient of each parameter. */
const exchanging = new WeakMap<Tensor, DataParallel>();

/** @internal Returns the {@link DataParallel} that exchanges the gradients of all these parameters, if there is one. */
export function parallelOf(parameters: readonly Tensor[]): DataParallel | undefined {
  const [first] = parameters;
  const parallel = first && exchanging.get(first);
  return parameters.every((each) => exchanging.get(each) === parallel) ? parallel : undefined;
}

/** @internal Whether only one rank has the gradient of a parameter. */
export const isShared = (parameter: Tensor): boolean => exchanging.get(parameter)?.owners.has(parameter) === true;

const NO_OWNERS: Owners = new Map();

/**
 * A model in training on all ranks. Created by {@link dataParallel}.
 *
 * @example
 * const parallel = distributed.dataParallel(model);
 * parallel.noSync(() => firstLoss().backward()); // adds to this rank's gradients
 * secondLoss().backward(); // exchanges the sums
 */
export class DataParallel<M extends ParallelModel = ParallelModel> {
  readonly model: M;
  private readonly connection: Connection | undefined;
  /** How gradients are exchanged; undefined without a connection. */
  private readonly exchange: Exchange | undefined;
  private readonly worldSize: number;
  private readonly parameters: readonly Tensor[];
  private readonly removers: (() => void)[] = [];
  private readonly bucketBytes: number;
  private layout: Layout | undefined;
  /** The parameters whose gradients are complete in this pass, in order of completion. */
  private readonly arrived = new Set<number>();
  private launched: Bucket[] = [];
  private pausing = 0;
  /** @internal */ owners = NO_OWNERS;
  /** Whether each rank has only the means of the parameters that it owns, and no later pass has started. */
  private hasShares = false;
  private readonly rank: number;
  private readonly end = (isComplete: boolean): void => this.endPass(isComplete);

  /** @internal */
  constructor(model: M, bucketBytes: number, world: Pick<World, "connection" | "worldSize" | "rank">) {
    if (typeof model?.namedParameters !== "function" || typeof world !== "object" || world === null)
      throw madeBy("DataParallel", "dataParallel");
    const { connection, worldSize, rank } = world;
    this.rank = rank;
    this.model = model;
    this.bucketBytes = bucketBytes;
    this.worldSize = worldSize;
    this.connection = worldSize > 1 ? connection : undefined;
    const [named, buffers] = [model.namedParameters(), model.namedBuffers()];
    this.parameters = [...named.values()];
    if (this.connection === undefined) return;
    this.exchange = exchangeOf(this.connection);
    checkModel(this.connection, this.exchange, [...named, ...buffers]);
    for (const tensor of [...named.values(), ...buffers.values()])
      noGrad(() => callSync(() => broadcastCall("dataParallel", tensor, 0, true), "dataParallel"));
    for (const [index, parameter] of this.parameters.entries()) {
      this.removers.push(onArrival(parameter, () => this.arrive(index)));
      exchanging.set(parameter, this);
    }
  }

  /**
   * Runs `body` without exchanging gradients: backward passes in it accumulate this rank's gradients. The next pass
   * outside exchanges the sums. Returns the result of `body`, which may be a promise.
   *
   * @example
   * parallel.noSync(() => backward(first));
   * backward(second); // the mean over ranks of first's and second's gradients together
   */
  noSync<Result>(body: () => Result): Result;
  noSync(...values: unknown[]): unknown {
    const { body } = noSyncParameters(values);
    this.pausing++;
    let result: unknown;
    try {
      result = body();
    } finally {
      if (!isPromise(result)) this.pausing--;
    }
    return isPromise(result) ? result.finally(() => void this.pausing--) : result;
  }

  /**
   * Exchanges the current gradients. Call it only on a rank whose pass reached no parameter; otherwise `backward()`
   * does it.
   */
  sync(): void {
    if (this.connection === undefined) return;
    this.layout ??= this.agreeOnLayout();
    for (let next = this.launched.length; next < this.layout.length; next++) this.launch(this.layout[next]);
    for (const bucket of this.launched) bucket.finish(this.connection, this.worldSize);
    this.hasShares = this.owners.size > 0;
    this.reset();
  }

  /** Ends the exchange of gradients in backward passes. */
  detach(): void {
    for (const remove of this.removers.splice(0)) remove();
    for (const parameter of this.parameters) if (exchanging.get(parameter) === this) exchanging.delete(parameter);
  }

  /** @internal From now on, each parameter's gradient is sent only to the rank that owns it. */
  shareOut(owners: Owners): void {
    this.owners = new Map([...this.owners, ...owners]);
    this.layout = undefined;
  }

  private arrive(index: number): void {
    if (this.hasShares) this.checkCleared(index);
    if (this.pausing > 0) return;
    if (this.arrived.size === 0) atEndOfPass(this.end);
    this.arrived.add(index);
    if (this.layout !== undefined) this.launchComplete(this.layout);
    this.connection?.queue.progress();
  }

  /** A mean that only one rank holds must not be part of a second exchange. */
  private checkCleared(index: number): void {
    this.hasShares = false;
    const isLeft = this.parameters.some((each, at) => at !== index && each.grad !== null && this.owners.has(each));
    if (!isLeft) return;
    const text =
      "the gradients were exchanged, and each rank holds only its share; call zeroGrad() before the next pass, or " +
      "run all passes of a step except the last in noSync()";
    throw new DistributedError("dataParallel", "notCleared", text);
  }

  /** Starts complete buckets. All ranks use the same order, so a bucket waits for those before it. */
  private launchComplete(layout: Layout): void {
    for (let next = this.launched.length; next < layout.length; next++) {
      const bucket = layout[next];
      if (!bucket.every((index) => this.arrived.has(index))) return;
      this.launch(bucket);
    }
  }

  private launch(bucket: readonly number[]): void {
    const members = bucket.map((index) => this.parameters[index]);
    const { connection, exchange, owners, rank, worldSize } = this;
    const isShared = owners.has(members[0]);
    this.launched.push(
      isShared
        ? new SharedBucket(connection!, exchange!, members, owners, rank, worldSize)
        : new CommonBucket(connection!, exchange!, members),
    );
  }

  private endPass(isComplete: boolean): void {
    if (isComplete) this.sync();
    else this.reset();
  }

  private reset(): void {
    this.arrived.clear();
    this.launched = [];
  }

  /** Returns rank 0's order. Parameters without a gradient in the first pass come last. */
  private agreeOnLayout(): Layout {
    const others = [...this.parameters.keys()].reverse().filter((index) => !this.arrived.has(index));
    const indices = fromArray(Int32Array.from([...this.arrived, ...others]));
    const order = callSync(() => broadcastCall("dataParallel", indices, 0, false), "dataParallel");
    return layoutOf(this.parameters, Array.from(order.dataSync(), Number), this.bucketBytes, this.owners);
  }
}

const noSyncParameters = parameters("DataParallel.noSync", { body: operand(aFunction<() => unknown>()) });

/** @throws {DistributedError} `mismatch` */
function checkModel(
  { queue }: Connection,
  { name: library }: Exchange,
  state: readonly (readonly [string, Tensor])[],
): void {
  const described = state.map(([name, tensor]) => `${name} ${tensor.describe()} ${tensor.requiresGrad}`);
  const hash = Bun.hash.xxHash3(described.join("\n")).toString(16);
  const description = `dataParallel over ${library} of a model of ${state.length} tensors (names and shapes: ${hash})`;
  queue.wait(queue.begin("dataParallel", description, function* () {}));
}
