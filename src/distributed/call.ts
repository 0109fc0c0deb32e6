/** How a call on all ranks is made: blocking, or as a promise. */
import { enableGrad } from "../autograd/modes.ts";
import { needsGradient, record } from "../autograd/record.ts";
import type { Tensor } from "../tensor/tensor.ts";
import type { Steps } from "./job.ts";
import { isReady, published } from "./memory.ts";
import { type Connection, worldOf } from "./world.ts";

/** A call on tensors that every rank makes. */
export interface Call {
  readonly operation: string;
  /** What every rank must say of it. */
  readonly description: string;
  /** The caller's tensor. */
  readonly x: Tensor;
  /** What is sent, made when the call is. */
  readonly from: Tensor;
  /** The exchange. Returns a tensor that it owns. */
  readonly steps: (connection: Connection) => Steps<Tensor>;
  /** The result in a world of one, which the call owns. */
  readonly alone: () => Tensor;
  /** The gradient of x from that of the result; absent where none is recorded. */
  readonly backward?: ((gradient: Tensor) => Tensor) | undefined;
  /** Where the result goes, where it changes the caller's tensor. */
  readonly target?: ((result: Tensor) => Tensor) | undefined;
}

/** Makes the call, and blocks until its result is here. */
export function callSync(make: () => Call, operation: string): Tensor {
  const { connection } = worldOf(operation);
  const call = make();
  const isRecorded = needsGradient(call.x);
  if (connection === undefined) return resultOf(call, call.alone(), isRecorded);
  const job = connection.queue.begin(operation, call.description, () => call.steps(connection));
  return resultOf(call, connection.queue.wait(job), isRecorded);
}

/** Makes the call, and settles once its result is here. Other work goes on meanwhile. */
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

function resultOf({ operation, x, backward, target }: Call, own: Tensor, isRecorded: boolean): Tensor {
  if (target !== undefined) return target(own);
  const result = published(own);
  if (isRecorded && backward !== undefined)
    enableGrad(() => record(operation, [x], [result], [], ([gradient]) => [backward(gradient!)]));
  return result;
}
