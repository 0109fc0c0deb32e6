/** Gradients in buckets: what is exchanged in one call. */
import { noGrad } from "../autograd/modes.ts";
import { empty } from "../backend/dispatch.ts";
import { copyInto } from "../ops/copy/copy.ts";
import { fromArray } from "../ops/creation/tensor.ts";
import { div } from "../ops/elementwise/division.ts";
import { expand } from "../ops/view/expand.ts";
import { reshape } from "../ops/view/reshape.ts";
import { narrow } from "../ops/view/slice.ts";
import { accumulationDType, bytesOf } from "../tensor/dtype.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { keep, tidy } from "../tensor/tidy.ts";
import type { Job } from "./job.ts";
import { elementsOf } from "./memory.ts";
import type { Connection } from "./world.ts";

/** Parameters by their numbers, in the order in which their gradients come. */
export type Layout = readonly (readonly number[])[];

/** The dtype in which gradients are summed: float32, or float64 for float64. */
const sumDType = ({ dtype }: Tensor) => accumulationDType(dtype);

/**
 * Parts parameters into buckets of about so many bytes of sums, in their order; those of one bucket are summed in one
 * dtype.
 */
export function layoutOf(parameters: readonly Tensor[], order: readonly number[], bucketBytes: number): Layout {
  const buckets: number[][] = [];
  let [bytes, dtype] = [Number.POSITIVE_INFINITY, ""];
  for (const index of order) {
    const parameter = parameters[index]!;
    const own = sumDType(parameter);
    if (bytes >= bucketBytes || dtype !== own) {
      buckets.push([]);
      [bytes, dtype] = [0, own];
    }
    buckets.at(-1)!.push(index);
    bytes += parameter.size * bytesOf(own);
  }
  return buckets;
}

/**
 * A bucket under way. Behind the gradients it has an element for each parameter: 1 on a rank that has a gradient for
 * it. Where their sum is 0 no rank has one, and the parameter's stays as it is.
 */
export class Bucket {
  private readonly memory: Tensor;
  private readonly job: Job<void>;

  constructor(
    { mpi, queue, everyone }: Connection,
    private readonly members: readonly Tensor[],
  ) {
    const count = members.reduce((sum, { size }) => sum + size, 0);
    this.memory = keep(empty([count + members.length], sumDType(members[0]!), {}, "dataParallel"));
    tidy(() => noGrad(() => this.fill(count)));
    const { memory } = this;
    this.job = queue.begin("dataParallel", undefined, function* () {
      yield mpi.allReduce("dataParallel", everyone, elementsOf("dataParallel", memory), "sum");
    });
  }

  private fill(count: number): void {
    for (const [parameter, part] of this.parts())
      copyInto(part, parameter.grad ?? expand(fromArray(new Float32Array(1), []), parameter.shape));
    const has = Float32Array.from(this.members, ({ grad }) => (grad === null ? 0 : 1));
    copyInto(narrow(this.memory, 0, count, has.length), fromArray(has));
  }

  /** Each parameter with the part of the memory that has its shape. */
  private *parts(): Generator<[Tensor, Tensor]> {
    let start = 0;
    for (const parameter of this.members) {
      yield [parameter, reshape(narrow(this.memory, 0, start, parameter.size), parameter.shape)];
      start += parameter.size;
    }
  }

  /** Waits for the sums, and makes their means the gradients. */
  finish({ queue }: Connection, worldSize: number): void {
    queue.wait(this.job);
    this.memory.storage.version++;
    tidy(() => noGrad(() => this.writeBack(worldSize)));
    this.memory.dispose();
  }

  private writeBack(worldSize: number): void {
    const { members, memory } = this;
    const has = narrow(memory, 0, memory.size - members.length, members.length).dataSync();
    copyInto(memory, div(memory, worldSize) as Tensor);
    let at = 0;
    for (const [parameter, mean] of this.parts()) {
      if (has[at++] === 0) continue;
      parameter.grad ??= keep(empty(parameter.shape, parameter.dtype, {}, "dataParallel"));
      copyInto(parameter.grad, mean);
    }
  }
}
