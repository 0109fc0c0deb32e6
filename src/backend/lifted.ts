/**
 * Lifted calls: those with operands that no backend can run. An operand may be abstract, without elements
 * (`tensor/abstract.ts`), or batched, with one more axis than it shows (`tensor/batched.ts`).
 */
import { abstractTensor, makeAbstract } from "../tensor/abstract.ts";
import type { Tensor } from "../tensor/tensor.ts";
import type { OutputSpec } from "./allocation.ts";
import type { Primitive } from "./backend.ts";

/** A call of a primitive that allocates its results. */
export interface LiftedCall {
  readonly primitive: Primitive<never>;
  readonly inputs: readonly Tensor[];
  readonly specs: readonly OutputSpec[];
  readonly attributes: unknown;
  readonly operation: string;
}

/** Runs lifted calls of one kind. */
export interface Lifting {
  readonly lifts: (operands: readonly Tensor[], attributes: unknown) => boolean;
  /** Returns the results. */
  readonly run: (call: LiftedCall) => Tensor[];
  /** Writes results into existing tensors. */
  readonly runInto: (call: Omit<LiftedCall, "specs">, outputs: readonly Tensor[]) => void;
}

const abstractCalls: Lifting = {
  lifts: (operands) => operands.some(({ storage }) => storage.isAbstract),
  run: ({ specs }) => specs.map(({ shape, dtype, strides }) => abstractTensor(shape, dtype, strides)),
  runInto: (_, outputs) => {
    for (const { storage } of outputs) makeAbstract(storage);
  },
};

let batchedCalls: Lifting | undefined;
let isInUse = false;

/** @internal Makes dispatch look for lifted operands from now on. Programs without transformations skip that. */
export function lookForLifted(): void {
  isInUse = true;
}

/** @internal Sets the runner of calls with batched operands. */
export function liftBatched(lifting: Lifting): void {
  batchedCalls = lifting;
  isInUse = true;
}

/** @internal Returns the runner of a call with these operands; undefined if a backend can run it. */
export function liftingOf(
  first: readonly Tensor[],
  attributes: unknown,
  others: readonly Tensor[] = [],
): Lifting | undefined {
  if (!isInUse) return undefined;
  const operands = [...first, ...others];
  if (batchedCalls?.lifts(operands, attributes)) return batchedCalls; // a batched tensor may be abstract
  return abstractCalls.lifts(operands, attributes) ? abstractCalls : undefined;
}
