/** Allocates the results of calls, on the backend that computes them or on the preferred one. */
import { lastElement } from "../core/collections.ts";
import { batched, levelsOf } from "../tensor/batched.ts";
import type { DType } from "../tensor/dtype.ts";
import { type AllocationHint, checkStorage, type Memory } from "../tensor/memory.ts";
import type { Shape } from "../tensor/shape.ts";
import { Storage } from "../tensor/storage.ts";
import { byteLengthOf, Tensor } from "../tensor/tensor.ts";
import type { Backend } from "./backend.ts";
import {
  addReason,
  isRecoverable,
  PREFERRED,
  refuseIfStrict,
  reportFailure,
  skipBackend,
  withOperation,
} from "./failure.ts";
import { getBackend, orderFrom } from "./policy.ts";
import { backends, whyUnavailable } from "./registry.ts";

/** The shape and dtype of a result to allocate. */
export interface OutputSpec<D extends DType = DType> {
  readonly shape: Shape;
  readonly dtype: D;
  /** Dense strides. Default: row-major. */
  readonly strides?: readonly number[] | undefined;
  /** The part of a memory block shared with other results of the call. Default: separate memory. */
  readonly blockSlice?: { readonly block: OutputBlock; readonly offset: number } | undefined;
}

/** A memory block of several results of one dtype. */
export interface OutputBlock {
  readonly elements: number;
}

/** Allocates memory for a tensor on the preferred backend. @throws {OutOfMemoryError} */
export function allocate(byteLength: number, hint: AllocationHint = {}, operation = "allocate"): Memory {
  checkStorage(operation, hint.storage);
  let failure: unknown;
  for (const name of orderFrom[getBackend()]) {
    const why = whyUnavailable(name);
    if (why !== undefined) {
      skipBackend(operation, name, addReason(PREFERRED, name, why));
      continue;
    }
    try {
      return backends[name].allocate(byteLength, hint);
    } catch (error) {
      if (!isRecoverable(error)) throw withOperation(operation, error);
      refuseIfStrict(operation, addReason(PREFERRED, name, reportFailure(operation, name, [], error)), error);
      failure ??= error;
    }
  }
  throw withOperation(operation, failure);
}

/** Allocates a tensor with undefined contents, for an operation that writes them. */
export function empty<D extends DType>(shape: Shape, dtype: D, hint?: AllocationHint, operation?: string): Tensor<D> {
  return new Tensor(new Storage(allocate(byteLengthOf(shape, dtype), hint, operation)), dtype, shape);
}

/**
 * Allocates memory that copies of these operands will fill, for all their examples under vmap. Memory of one example
 * would have to be copied to all of them before anything is written.
 */
export function emptyFor<D extends DType>(
  operands: readonly Tensor[],
  shape: Shape,
  dtype: D,
  operation: string,
): Tensor<D> {
  if (!operands.some(({ storage }) => storage.batch)) return empty(shape, dtype, {}, operation);
  const levels = [...new Set(operands.flatMap(levelsOf))].sort((one, other) => one.id - other.id);
  const all: Tensor = empty([...levels.map(({ size }) => size), ...shape], dtype, {}, operation);
  return levels.reduce((x, level) => batched(x, 0, level), all) as Tensor<D>;
}

/** Allocates the results of a call on a backend. @throws {OutOfMemoryError} after freeing those that it allocated */
export function allocateAll(backend: Backend, specs: readonly OutputSpec[]): Tensor[] {
  const made: Tensor[] = [];
  const blocks = specs.length > 1 ? new Map<OutputBlock, Storage>() : undefined;
  try {
    for (const spec of specs) {
      const storage = spec.blockSlice && blocks?.get(spec.blockSlice.block);
      made.push(outputIn(storage ?? storageFor(backend, spec), spec));
      if (spec.blockSlice) blocks?.set(spec.blockSlice.block, lastElement(made).storage);
    }
  } catch (error) {
    disposeAll(made);
    throw error;
  }
  return made;
}

function storageFor(backend: Backend, { shape, dtype, blockSlice }: OutputSpec): Storage {
  return new Storage(backend.allocate(byteLengthOf(blockSlice ? [blockSlice.block.elements] : shape, dtype), {}));
}

const outputIn = (storage: Storage, { dtype, shape, strides, blockSlice }: OutputSpec): Tensor =>
  new Tensor(storage, dtype, shape, strides, blockSlice?.offset);

export const disposeAll = (tensors: readonly Tensor[]): void => {
  for (const tensor of tensors) tensor.dispose();
};
