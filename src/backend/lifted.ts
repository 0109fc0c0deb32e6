/**
 * Lifted calls: those with operands that no backend can run. An operand may be abstract, without elements
 * (`tensor/abstract.ts`), or batched, with one more axis than it shows (`backend/batched.ts`).
 */
import { abstractTensor, makeAbstract } from "../tensor/abstract.ts";
import type { Tensor } from "../tensor/tensor.ts";
import type { Primitive } from "./backend.ts";
import type { OutputSpec } from "./dispatch.ts";

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
  readonly lifts: (tensor: Tensor) => boolean;
  /** Returns the results. */
  readonly run: (call: LiftedCall) => Tensor[];
  /** Writes results into existing tensors. */
  readonly runInto: (call: Omit<LiftedCall, "specs">, outputs: readonly Tensor[]) => void;
}

const abstractCalls: Lifting = {
  lifts: ({ storage }) => storage.isAbstract,
  run: ({ specs }) => specs.map(({ shape, dtype, strides }) => abstractTensor(shape, dtype, strides)),
  runInto: (_, outputs) => {
    for (const { storage } of outputs) makeAbstract(storage);
  },
};

const liftings: Lifting[] = [abstractCalls];
let isInUse = false;

/** @internal Makes dispatch look for lifted operands from now on. Programs without transformations skip that. */
export function lookForLifted(): void {
  isInUse = true;
}

/** @internal Adds a kind of lifted calls, before those that exist. */
export function addLifting(lifting: Lifting): void {
  liftings.push(lifting);
  lookForLifted();
}

/** @internal Returns what runs a call with these operands; undefined if a backend can. */
export function liftingOf(inputs: readonly Tensor[], outputs: readonly Tensor[] = []): Lifting | undefined {
  if (!isInUse) return undefined;
  return liftings.find(({ lifts }) => inputs.some(lifts) || outputs.some(lifts));
}
