/** Point-to-point messages between two ranks. */
import { DTypeError, ShapeError } from "../core/errors.ts";
import { aNumber } from "../core/kinds.ts";
import type { NumberRule } from "../core/options.ts";
import { named, operand, parameters, required } from "../core/parameters.ts";
import { checkCreation } from "../ops/creation/create.ts";
import type { DType } from "../tensor/dtype.ts";
import { aDType, aTensor, shapeList } from "../tensor/kinds.ts";
import type { Shape } from "../tensor/shape.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { RECORD_BYTES, recordOf, textOf } from "./digest.ts";
import { DistributedError } from "./errors.ts";
import { elementsOf, held, isReady, ownEmpty, published } from "./memory.ts";
import { connectionTo, wholeNumber } from "./world.ts";

/** Options of {@link send}. */
export interface SendOptions {
  /** The receiving rank. */
  dst: number;
  /** A number that distinguishes messages, from 0 to 16383. Default 0. */
  tag?: number | undefined;
}

/** Options of {@link receive}. */
export interface ReceiveOptions<D extends DType = DType> {
  /** The sending rank. */
  src: number;
  /** The expected dtype. Default float32. */
  dtype?: D | undefined;
  /** The tag passed to {@link send}. Default 0. */
  tag?: number | undefined;
}

/** MPI has at least 32,767 tags; a message uses two, one of them for its header. */
const aTag: NumberRule = {
  holds: (value) => Number.isInteger(value) && value >= 0 && value < 2 ** 14,
  expected: "a whole number from 0 to 16383",
};

const sending = {
  x: operand(aTensor),
  dst: required(aNumber(wholeNumber)),
  tag: named(aNumber(aTag), 0),
} as const;

/**
 * Sends a tensor to another rank, which {@link receive}s it. Returns when x may be changed. Messages between two ranks
 * with the same tag arrive in order. Gradients are not propagated.
 *
 * @example
 * if (distributed.rank() === 0) distributed.send(tensor([1, 2]), { dst: 1 });
 * else distributed.receive([2], { src: 0 }); // [1, 2]
 *
 * @throws {ArgumentError} if there is no such rank, or it is this rank. @throws {DistributedError} `rankLost`,
 * `timeout`, `notInitialized`.
 */
export function send(x: Tensor, options: SendOptions): void;
export function send(...values: unknown[]): void {
  const { x, dst, tag } = sendParameters(values);
  const { queue, job } = beginSend("send", x, dst, tag);
  queue.wait(job);
}
const sendParameters = parameters("send", sending);

/**
 * Runs {@link send} without blocking the event loop. Don't change x until the promise settles.
 *
 * @example
 * await distributed.sendAsync(x, { dst: 1 });
 *
 * @throws as {@link send}, by rejecting the promise
 */
export function sendAsync(x: Tensor, options: SendOptions): Promise<void>;
export async function sendAsync(...values: unknown[]): Promise<void> {
  const { x, dst, tag } = sendAsyncParameters(values);
  const { queue, job } = beginSend("sendAsync", x, dst, tag);
  await queue.finish(job);
}
const sendAsyncParameters = parameters("sendAsync", sending);

function beginSend(operation: string, x: Tensor, dst: number, tag: number) {
  const { mpi, queue, pairs } = connectionTo(operation, "dst", dst);
  const from = held(x);
  const steps = function* () {
    const header = bytesOf(recordOf(x.describe()));
    const requests = [
      mpi.send(operation, pairs, header, dst, 2 * tag),
      mpi.send(operation, pairs, elementsOf(operation, from), dst, 2 * tag + 1),
    ];
    for (const request of requests) yield request;
    from.dispose();
  };
  return { queue, job: queue.beginAtOnce(operation, steps, () => isReady(from)) };
}

const receiving = {
  shape: operand(shapeList),
  src: required(aNumber(wholeNumber)),
  dtype: named(aDType, "float32"),
  tag: named(aNumber(aTag), 0),
} as const;

/**
 * Receives a tensor that another rank {@link send}s.
 *
 * @param shape the shape of the sent tensor
 *
 * @example
 * const x = distributed.receive([2], { src: 0 }); // the tensor that rank 0 sends to this rank
 *
 * @throws {ShapeError} and @throws {DTypeError} if it has a different shape or dtype; the message is discarded.
 * @throws {ArgumentError} if there is no such rank, or it is this rank. @throws {DistributedError} `rankLost`,
 * `timeout`, `notInitialized`.
 */
export function receive<D extends DType = "float32">(shape: Shape, options: ReceiveOptions<D>): Tensor<D>;
export function receive(...values: unknown[]): Tensor {
  const { shape, src, dtype, tag } = receiveParameters(values);
  const { queue, job } = beginReceive("receive", shape, src, dtype, tag);
  return published(queue.wait(job));
}
const receiveParameters = parameters("receive", receiving);

/**
 * Runs {@link receive} without blocking the event loop.
 *
 * @example
 * const x = await distributed.receiveAsync([2], { src: 0 });
 *
 * @throws as {@link receive}, by rejecting the promise
 */
export function receiveAsync<D extends DType = "float32">(shape: Shape, options: ReceiveOptions<D>): Promise<Tensor<D>>;
export async function receiveAsync(...values: unknown[]): Promise<Tensor> {
  const { shape, src, dtype, tag } = receiveAsyncParameters(values);
  const { queue, job } = beginReceive("receiveAsync", shape, src, dtype, tag);
  return published(await queue.finish(job));
}
const receiveAsyncParameters = parameters("receiveAsync", receiving);

function beginReceive(operation: string, shape: Shape, src: number, dtype: DType, tag: number) {
  checkCreation(operation, shape, dtype);
  const { mpi, queue, pairs } = connectionTo(operation, "src", src);
  const job = queue.beginAtOnce(operation, function* () {
    const header = bytesOf(new Uint8Array(new ArrayBuffer(RECORD_BYTES)));
    yield mpi.receive(operation, pairs, header, src, 2 * tag);
    const sent = parseDescription(textOf(header.bytes));
    const result = ownEmpty(sent.shape, sent.dtype, operation);
    yield mpi.receive(operation, pairs, elementsOf(operation, result), src, 2 * tag + 1);
    const problem = differenceOf(operation, src, result, shape, dtype);
    if (problem === undefined) return result;
    result.dispose();
    throw problem;
  });
  return { queue, job };
}

const bytesOf = (bytes: Uint8Array) => ({ bytes, type: "uint8", count: bytes.length }) as const;

/** Parses a description such as `float32[2, 3]`. */
function parseDescription(text: string): { readonly dtype: DType; readonly shape: Shape } {
  const [, dtype, sizes] = /^(\w+)\[(.*)\]$/.exec(text) ?? [];
  if (dtype === undefined) throw new DistributedError("receive", "mpiFailed", `a message has no header: ${text}`);
  return { dtype: dtype as DType, shape: sizes === "" ? [] : sizes.split(", ").map(Number) };
}

function differenceOf(operation: string, src: number, got: Tensor, shape: Shape, dtype: DType): Error | undefined {
  const text = `expected ${dtype}[${shape.join(", ")}] from rank ${src}, got ${got.describe()}`;
  if (got.dtype !== dtype) return new DTypeError(operation, "dtypesDiffer", text);
  if (got.shape.join() !== shape.join()) return new ShapeError(operation, "shapesDiffer", text);
  return undefined;
}
