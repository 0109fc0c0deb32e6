/** Makes calls on all ranks, blocking or as promises. */
import { enableGrad } from "../autograd/modes.ts";
import { needsGradient, record } from "../autograd/record.ts";
import type { Tensor } from "../tensor/tensor.ts";
import type { Steps } from "./job.ts";
import { isReady, published } from "./memory.ts";
import { type Connection, worldOf } from "./world.ts";

/** A call on tensors that every rank must make. */
export interface Call {
  readonly operation: string;
  /** A description that must be equal on all ranks. */
  readonly description: string;
  /** The caller's tensor. */
  readonly x: Tensor;
  /** The data to send, created when the call is made. */
  readonly from: Tensor;
  /** The exchange. Returns a new tensor. */
  readonly steps: (connection: Connection) => Steps<Tensor>;
  /** Returns the result in a world of one, as a new tensor. */
  readonly alone: () => Tensor;
  /** Computes the gradient of x from the gradient of the result; undefined if no gradient is recorded. */
  readonly backward?: ((gradient: Tensor) => Tensor) | undefined;
  /** Stores the result in the caller's tensor, for in-place calls. */
  readonly target?: ((result: Tensor) => Tensor) | undefined;
}

/** Makes the call and blocks until the result arrives. */
export function callSync(make: () => Call, operation: string): Tensor {
  const { connection } = worldOf(operation);
  const call = make();
  const isRecorded = needsGradient(call.x);
  if (connection === undefined) return resultOf(call, call.alone(), isRecorded);
  const job = connection.queue.begin(operation, call.description, () => call.steps(connection));
  return resultOf(call, connection.queue.wait(job), isRecorded);
}

/** Makes the call without blocking, and settles when the result arrives. */
export async function callAsync(make: () => Call, operation: string): Promise<Tensor> {
  const { connection } = worldOf(operation);
  const call = make();
  const isRecorded = needsGradient(call.x);
  if (connection === undefined) return resultOf(call, call.alone(), isRecorded);
  const { queue } = connection;
  const ready = () => isReady(call.from);
  const job = queue.begin(operation, call.description, () => call.steps(connection), ready);
  return resultOf(call, await queue.finish(job), isRecorded);
}

function resultOf({ operation, x, backward, target }: Call, local: Tensor, isRecorded: boolean): Tensor {
  if (target !== undefined) return target(local);
  const result = published(local);
  if (isRecorded && backward !== undefined)
    enableGrad(() => record(operation, [x], [result], [], ([gradient]) => [backward(gradient)]));
  return result;
}
