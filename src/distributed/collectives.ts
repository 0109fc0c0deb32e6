/** Collective operations on tensors, with PyTorch's names. */
import { aNumber, choice, flag } from "../core/kinds.ts";
import { expectNothing, type Given, named, operand, optional, parameters } from "../core/parameters.ts";
import { mul } from "../ops/elementwise/arithmetic.ts";
import { div } from "../ops/elementwise/division.ts";
import { reshape } from "../ops/view/reshape.ts";
import { aTensor } from "../tensor/kinds.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { type Call, callAsync, callSync } from "./call.ts";
import { allGatherCall, allToAllCall, broadcastCall } from "./gather.ts";
import { allReduceCall, type ReduceOp, reduceScatterCall } from "./reduce.ts";
import { type Connection, rank, wholeNumber, worldOf, worldSize } from "./world.ts";

/** Options of {@link reduceScatter}. */
export interface ReduceOptions {
  /** The reduction. Default `"sum"`. `"mean"` requires floats; `"max"` and `"min"` have no gradient. */
  op?: ReduceOp | undefined;
}

/** Options of {@link allReduce}. */
export interface AllReduceOptions extends ReduceOptions {
  /** Write the result to x and return x. Default false. */
  inPlace?: boolean | undefined;
}

const anOp = choice("sum", "mean", "max", "min");

/**
 * Computes the sum, mean, maximum or minimum of x over all ranks, in x's dtype. All ranks receive the result. 16-bit
 * floats are summed in float32 and rounded once. The maximum and minimum propagate NaN.
 *
 * The gradient is that of the sum of all ranks' losses: for `sum` and `mean`, the same reduction of the gradients.
 *
 * @param x of the same shape and dtype on every rank
 *
 * @example
 * const total = distributed.allReduce(loss.detach(), { op: "mean" });
 *
 * @throws {DTypeError} for the mean of integers, and the sum or mean of bool.
 * @throws {DistributedError} `mismatch` on every rank if shapes, dtypes or calls differ; `notInitialized`, `rankLost`,
 * `timeout`. @throws {AutogradError} if x is changed in place and is part of a graph.
 */
export function allReduce<T extends Tensor>(x: T, options?: AllReduceOptions): T;
export function allReduce(...values: unknown[]): Tensor {
  const { x, op, inPlace } = allReduceParameters(values);
  return callSync(() => reducing(allReduceCall("allReduce", x, op, inPlace), op), "allReduce");
}
const allReduceOperands = {
  x: operand(aTensor),
  op: optional(anOp, "sum"),
  inPlace: named(flag, false),
} as const;
const allReduceParameters = parameters("allReduce", allReduceOperands);

/**
 * Runs {@link allReduce} without blocking the event loop. Don't change x until the promise settles.
 *
 * @example
 * const total = await distributed.allReduceAsync(loss.detach());
 *
 * @throws as {@link allReduce}, by rejecting the promise
 */
export function allReduceAsync<T extends Tensor>(x: T, options?: AllReduceOptions): Promise<T>;
export async function allReduceAsync(...values: unknown[]): Promise<Tensor> {
  const { x, op, inPlace } = allReduceAsyncParameters(values);
  return callAsync(() => reducing(allReduceCall("allReduceAsync", x, op, inPlace), op), "allReduceAsync");
}
const allReduceAsyncParameters = parameters("allReduceAsync", allReduceOperands);

/** The gradient of a sum of all ranks is the sum of all ranks' gradients. */
const reducing = (call: Call, op: ReduceOp): Call => ({
  ...call,
  backward: (gradient) => allReduce(gradient, { op }),
});

/**
 * Reduces x over all ranks. Each rank receives one part of the result: the rows from rank · n to (rank + 1) · n. The
 * gradient is the {@link allGather} of the parts' gradients.
 *
 * @param x [worldSize · n, …], of the same shape and dtype on every rank
 * @returns [n, …] of x's dtype
 *
 * @example
 * distributed.reduceScatter(tensor([1, 2, 3, 4])); // of two ranks: [2, 4] on rank 0, [6, 8] on rank 1
 *
 * @throws {ShapeError} unless the first axis is a multiple of the world's size. @throws as {@link allReduce}
 */
export function reduceScatter<T extends Tensor>(x: T, options?: ReduceOptions): T;
export function reduceScatter(...values: unknown[]): Tensor {
  const { x, op } = reduceScatterParameters(values);
  return callSync(() => scattering(reduceScatterCall("reduceScatter", x, op), op), "reduceScatter");
}
const scatterOperands = { x: operand(aTensor), op: optional(anOp, "sum") } as const;
const reduceScatterParameters = parameters("reduceScatter", scatterOperands);

/**
 * Runs {@link reduceScatter} without blocking the event loop. Don't change x until the promise settles.
 *
 * @example
 * const part = await distributed.reduceScatterAsync(x);
 *
 * @throws as {@link reduceScatter}, by rejecting the promise
 */
export function reduceScatterAsync<T extends Tensor>(x: T, options?: ReduceOptions): Promise<T>;
export async function reduceScatterAsync(...values: unknown[]): Promise<Tensor> {
  const { x, op } = reduceScatterAsyncParameters(values);
  return callAsync(() => scattering(reduceScatterCall("reduceScatterAsync", x, op), op), "reduceScatterAsync");
}
const reduceScatterAsyncParameters = parameters("reduceScatterAsync", scatterOperands);

const scattering = (call: Call, op: ReduceOp): Call => ({
  ...call,
  backward: (gradient) => {
    const whole = allGather(gradient);
    return op === "mean" ? div(whole, worldSize()) : whole;
  },
});

/**
 * Concatenates the tensors of all ranks along the first axis, and scalars to a vector. All ranks receive the result.
 * The gradient is the {@link reduceScatter} of the gradients.
 *
 * @param x [n, …], of the same shape and dtype on every rank
 * @returns [worldSize · n, …] of x's dtype
 *
 * @example
 * distributed.allGather(tensor([distributed.rank()])); // [0, 1, 2, 3] of four ranks
 *
 * @throws {DistributedError} as {@link allReduce}
 */
export function allGather<T extends Tensor>(x: T): T;
export function allGather(...values: unknown[]): Tensor {
  const { x } = allGatherParameters(values);
  return callSync(() => gathering(allGatherCall("allGather", x)), "allGather");
}
const allGatherParameters = parameters("allGather", { x: operand(aTensor) });

/**
 * Runs {@link allGather} without blocking the event loop. Don't change x until the promise settles.
 *
 * @example
 * const all = await distributed.allGatherAsync(x);
 *
 * @throws as {@link allGather}, by rejecting the promise
 */
export function allGatherAsync<T extends Tensor>(x: T): Promise<T>;
export async function allGatherAsync(...values: unknown[]): Promise<Tensor> {
  const { x } = allGatherAsyncParameters(values);
  return callAsync(() => gathering(allGatherCall("allGatherAsync", x)), "allGatherAsync");
}
const allGatherAsyncParameters = parameters("allGatherAsync", { x: operand(aTensor) });

const gathering = (call: Call): Call => ({
  ...call,
  backward: (gradient) => {
    const part = reduceScatter(gradient);
    return call.x.rank === 0 ? reshape(part, []) : part;
  },
});

/** Options of {@link broadcast}. */
export interface BroadcastOptions {
  /** The rank whose elements are sent to all. Default 0. */
  src?: number | undefined;
  /** Write the result to x and return x. Default false. */
  inPlace?: boolean | undefined;
}

/**
 * Copies the elements of one rank to all ranks. The gradient is the sum of all ranks' gradients on that rank, and 0 on
 * the others.
 *
 * @param x of the same shape and dtype on every rank; only `src`'s elements are read
 *
 * @example
 * distributed.broadcast(weights, { src: 0, inPlace: true });
 *
 * @throws {ArgumentError} if there is no such rank. @throws {DistributedError} as {@link allReduce}
 */
export function broadcast<T extends Tensor>(x: T, ...options: BroadcastArguments): T;
export function broadcast(...values: unknown[]): Tensor {
  const { x, src, inPlace } = broadcastParameters(values);
  return callSync(() => broadcasting(broadcastCall("broadcast", x, src, inPlace), src), "broadcast");
}
const broadcastOperands = {
  x: operand(aTensor),
  src: optional(aNumber(wholeNumber), 0),
  inPlace: named(flag, false),
} as const;
const broadcastParameters = parameters("broadcast", broadcastOperands);

/** The ways to pass options of {@link broadcast}: all by name, or the rank by position. */
export type BroadcastArguments = Given<BroadcastOptions, ["src"]>;

/**
 * Runs {@link broadcast} without blocking the event loop. Don't change x until the promise settles.
 *
 * @example
 * const weights = await distributed.broadcastAsync(x, { src: 0 });
 *
 * @throws as {@link broadcast}, by rejecting the promise
 */
export function broadcastAsync<T extends Tensor>(x: T, ...options: BroadcastArguments): Promise<T>;
export async function broadcastAsync(...values: unknown[]): Promise<Tensor> {
  const { x, src, inPlace } = broadcastAsyncParameters(values);
  return callAsync(() => broadcasting(broadcastCall("broadcastAsync", x, src, inPlace), src), "broadcastAsync");
}
const broadcastAsyncParameters = parameters("broadcastAsync", broadcastOperands);

const broadcasting = (call: Call, src: number): Call => ({
  ...call,
  backward: (gradient) => {
    const sum = allReduce(gradient);
    return rank() === src ? sum : mul(sum, 0);
  },
});

/**
 * Exchanges parts between all ranks. x is split into `worldSize` parts along the first axis; part j goes to rank j, and
 * the result consists of the received parts in the order of ranks. The gradient is the same exchange of the gradients.
 *
 * @param x [worldSize · n, …], of the same shape and dtype on every rank
 *
 * @example
 * distributed.allToAll(tensor([1, 2])); // of two ranks with [1, 2] and [3, 4]: [1, 3] and [2, 4]
 *
 * @throws {ShapeError} unless the first axis is a multiple of the world's size.
 * @throws {DistributedError} as {@link allReduce}
 */
export function allToAll<T extends Tensor>(x: T): T;
export function allToAll(...values: unknown[]): Tensor {
  const { x } = allToAllParameters(values);
  return callSync(() => exchanging(allToAllCall("allToAll", x)), "allToAll");
}
const allToAllParameters = parameters("allToAll", { x: operand(aTensor) });

/**
 * Runs {@link allToAll} without blocking the event loop. Don't change x until the promise settles.
 *
 * @example
 * const received = await distributed.allToAllAsync(x);
 *
 * @throws as {@link allToAll}, by rejecting the promise
 */
export function allToAllAsync<T extends Tensor>(x: T): Promise<T>;
export async function allToAllAsync(...values: unknown[]): Promise<Tensor> {
  const { x } = allToAllAsyncParameters(values);
  return callAsync(() => exchanging(allToAllCall("allToAllAsync", x)), "allToAllAsync");
}
const allToAllAsyncParameters = parameters("allToAllAsync", { x: operand(aTensor) });

const exchanging = (call: Call): Call => ({ ...call, backward: (gradient) => allToAll(gradient) });

/**
 * Waits until every rank has called it.
 *
 * @example
 * if (distributed.rank() === 0) await download(file);
 * distributed.barrier(); // now every rank can read the file
 *
 * @throws {DistributedError} as {@link allReduce}
 */
export function barrier(): void;
export function barrier(...values: unknown[]): void {
  expectNothing("barrier", values);
  const { connection } = worldOf("barrier");
  if (connection !== undefined) connection.queue.wait(barrierOn(connection, "barrier"));
}

/**
 * Runs {@link barrier} without blocking the event loop.
 *
 * @example
 * await distributed.barrierAsync();
 *
 * @throws as {@link barrier}, by rejecting the promise
 */
export function barrierAsync(): Promise<void>;
export async function barrierAsync(...values: unknown[]): Promise<void> {
  expectNothing("barrierAsync", values);
  const { connection } = worldOf("barrierAsync");
  if (connection !== undefined) await connection.queue.finish(barrierOn(connection, "barrierAsync"));
}

const barrierOn = ({ mpi, queue, everyone }: Connection, operation: string) =>
  queue.begin(operation, "barrier", function* () {
    yield mpi.barrier(operation, everyone);
  });
