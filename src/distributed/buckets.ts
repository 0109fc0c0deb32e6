/** Buckets of gradients. Each bucket is exchanged in one call. */

import { noGrad } from "../autograd/modes.ts";
import { empty } from "../backend/allocation.ts";
import { codepathCount } from "../backend/codepaths.ts";
import { lastElement } from "../core/collections.ts";
import { copyInto } from "../ops/copy/copy.ts";
import { div_ } from "../ops/copy/inplace.ts";
import { fromArray } from "../ops/creation/tensor.ts";
import { expand } from "../ops/view/expand.ts";
import { reshape } from "../ops/view/reshape.ts";
import { narrow } from "../ops/view/slice.ts";
import { accumulationDType, bytesOf } from "../tensor/dtype.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { keep, tidy } from "../tensor/tidy.ts";
import type { Exchange } from "./exchange.ts";
import type { Job } from "./job.ts";
import type { Connection } from "./world.ts";

/** The parameters of each bucket by index, in the order in which backward computes their gradients. */
export type Layout = readonly (readonly number[])[];

/** The dtype in which gradients are summed: float32, or float64 for float64. */
const sumDType = ({ dtype }: Tensor) => accumulationDType(dtype);

/** The owning rank of each parameter whose gradient only one rank receives. */
export type Owners = ReadonlyMap<Tensor, number>;

/**
 * Divides parameters in order into buckets of about the given number of bytes. The parameters of a bucket have one
 * summation dtype, and either all or none have an owner.
 */
export function layoutOf(
  parameters: readonly Tensor[],
  order: readonly number[],
  bucketBytes: number,
  owners: Owners,
): Layout {
  const buckets: number[][] = [];
  let [bytes, kind] = [Number.POSITIVE_INFINITY, ""];
  for (const index of order) {
    const parameter = parameters[index];
    const dtype = sumDType(parameter);
    const bucketKind = `${dtype} ${owners.has(parameter)}`;
    if (bytes >= bucketBytes || kind !== bucketKind) {
      buckets.push([]);
      [bytes, kind] = [0, bucketKind];
    }
    lastElement(buckets).push(index);
    bytes += parameter.size * bytesOf(dtype);
  }
  return buckets;
}

/** An exchange of some gradients in progress. */
export interface Bucket {
  /** Waits for the sums and stores their means as the gradients. */
  finish(connection: Connection, worldSize: number): void;
}

/**
 * Concatenated gradients, followed by one flag per gradient: 1 on a rank that has it. If the sum of the flags is 0, no
 * rank has the gradient, and the parameter's `grad` is not changed.
 */
class Section {
  constructor(private readonly members: readonly Tensor[]) {}

  /** The number of elements. */
  get size(): number {
    return this.members.reduce((sum, { size }) => sum + size, this.members.length);
  }

  private flagsIn(memory: Tensor): Tensor {
    const count = this.members.length;
    return narrow(memory, 0, memory.size - count, count);
  }

  /** Copies this rank's gradients into memory. @param memory of {@link size} elements */
  fill(memory: Tensor): void {
    for (const [parameter, part] of this.parts(memory))
      copyInto(part, parameter.grad ?? expand(fromArray(new Float32Array(1), []), parameter.shape));
    const has = Float32Array.from(this.members, ({ grad }) => (grad === null ? 0 : 1));
    copyInto(this.flagsIn(memory), fromArray(has));
  }

  /** Yields each parameter with its part of the memory, in the parameter's shape. */
  private *parts(memory: Tensor): Generator<[Tensor, Tensor]> {
    let start = 0;
    for (const parameter of this.members) {
      yield [parameter, reshape(narrow(memory, 0, start, parameter.size), parameter.shape)];
      start += parameter.size;
    }
  }

  /** Stores the means as the gradients. */
  writeBack(memory: Tensor, worldSize: number): void {
    if (this.members.length === 0) return;
    const has = Array.from(this.flagsIn(memory).dataSync(), Number);
    div_(memory, worldSize);
    let at = 0;
    for (const [parameter, mean] of this.parts(memory)) {
      if (has[at++] === 0) continue;
      parameter.grad ??= keep(empty(parameter.shape, parameter.dtype, {}, "dataParallel"));
      copyInto(parameter.grad, mean);
    }
  }
}

/** Counts an exchange as a codepath. Returns its attributes for traces. */
function counted(call: "allReduce" | "reduceScatter", { name }: Exchange, { size, storage }: Tensor): Job["details"] {
  const backend = storage.memory.device === "metal" ? "metal" : "cpu";
  codepathCount("dataParallel", backend, `${call} over ${name}`).calls++;
  return { call, elements: size, library: name };
}

/** A bucket that is reduced by allReduce: all ranks receive all means. */
export class CommonBucket implements Bucket {
  private readonly memory: Tensor;
  private readonly section: Section;
  private readonly job: Job<void>;
  /** Whether the caller waits. Then the exchange may start at once and wait for the device. */
  private isAwaited = false;

  constructor({ queue }: Connection, exchange: Exchange, members: readonly Tensor[]) {
    this.section = new Section(members);
    this.memory = keep(empty([this.section.size], sumDType(members[0]), {}, "dataParallel"));
    const { memory, section } = this;
    tidy(() => noGrad(() => section.fill(memory)));
    const isReady = () => this.isAwaited || exchange.isReady(memory);
    const steps = function* () {
      yield exchange.allReduce("dataParallel", memory);
    };
    const details = counted("allReduce", exchange, memory);
    this.job = queue.begin("dataParallel", undefined, steps, isReady);
    this.job.details = details;
  }

  finish({ queue }: Connection, worldSize: number): void {
    this.isAwaited = true;
    queue.wait(this.job);
    this.memory.storage.version++;
    tidy(() => noGrad(() => this.section.writeBack(this.memory, worldSize)));
    this.memory.dispose();
  }
}

/**
 * A bucket that is reduced by reduceScatter: each rank receives the means of its parameters, and clears its other
 * gradients.
 */
export class SharedBucket implements Bucket {
  private readonly sections: readonly Section[];
  private readonly kept: Section;
  private readonly result: Tensor;
  private readonly job: Job<void>;
  private isAwaited = false;

  /** @param owners the owners of the members */
  constructor(
    { queue }: Connection,
    exchange: Exchange,
    private readonly members: readonly Tensor[],
    private readonly owners: Owners,
    private readonly rank: number,
    worldSize: number,
  ) {
    this.sections = Array.from(
      { length: worldSize },
      (_, owner) => new Section(members.filter((parameter) => owners.get(parameter) === owner)),
    );
    this.kept = this.sections[rank];
    const [counts, dtype] = [this.sections.map(({ size }) => size), sumDType(members[0])];
    const count = counts.reduce((sum, size) => sum + size, 0);
    const memory = keep(empty([count], dtype, {}, "dataParallel"));
    tidy(() => noGrad(() => this.fill(memory)));
    const result = keep(empty([this.kept.size], dtype, {}, "dataParallel"));
    this.result = result;
    const isReady = () => this.isAwaited || exchange.isReady(memory);
    const steps = function* () {
      yield exchange.reduceParts("dataParallel", memory, result, counts);
      memory.dispose();
    };
    const details = counted("reduceScatter", exchange, memory); // the exchange may be complete after the next line
    this.job = queue.begin("dataParallel", undefined, steps, isReady);
    this.job.details = details;
  }

  private fill(memory: Tensor): void {
    let start = 0;
    for (const section of this.sections) {
      if (section.size > 0) section.fill(narrow(memory, 0, start, section.size));
      start += section.size;
    }
    for (const parameter of this.members) {
      if (this.owners.get(parameter) === this.rank) continue;
      parameter.grad?.dispose();
      parameter.grad = null;
    }
  }

  finish({ queue }: Connection, worldSize: number): void {
    this.isAwaited = true;
    queue.wait(this.job);
    this.result.storage.version++;
    tidy(() => noGrad(() => this.kept.writeBack(this.result, worldSize)));
    this.result.dispose();
  }
}
