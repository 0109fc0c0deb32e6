import type { TicketRange as ObservedTickets } from "../observe/observer.ts";
import type { AllocationHint, Memory } from "../tensor/memory.ts";
import type { DeferredCheck, Storage } from "../tensor/storage.ts";
import type { Tensor } from "../tensor/tensor.ts";
import type { BackendName } from "./names.ts";

/** The command buffers of an operation, and its pending checks. A result is valid once its checks pass. */
export interface TicketRange extends ObservedTickets {
  readonly checks?: readonly DeferredCheck[];
}

/** A backend: allocates memory, makes operands resident and runs operations. */
export interface Backend {
  readonly name: BackendName;
  /** Returns why the backend can't be used on this machine, in one sentence; undefined if it can. Called once. */
  unavailable(): string | undefined;
  /** Allocates memory with undefined contents for results. @throws {OutOfMemoryError} */
  allocate(byteLength: number, hint: AllocationHint): Memory;
  /**
   * Makes a tensor's memory usable by this backend: nothing to do on the CPU; on Metal, copies memory to the device.
   */
  makeResident(tensor: Tensor): void;
  /** Called before an operation changes a storage that running work may still read. */
  beforeChange?(storage: Storage): void;
  /**
   * Called before an operation replaces a storage's memory by new memory for its result, while running work may still
   * access the old memory. Backends without this method compute such operations in place, since they never recompute
   * operations.
   */
  beforeSwap?(storage: Storage): void;
  /**
   * Called after an operation was encoded, which may still fail. `recompute` computes it on another backend.
   *
   * @param launched the implementation's return value: the command buffers of the operation
   */
  ran?(call: OperationCall<unknown>, launched: TicketRange | undefined, recompute: () => void): void;
}

/** A call of an operation: inputs and allocated outputs, which may be views with any strides. */
export interface OperationCall<
  Attributes,
  Inputs extends readonly Tensor[] = readonly Tensor[],
  Outputs extends readonly Tensor[] = readonly Tensor[],
> {
  readonly operation: string;
  readonly inputs: Inputs;
  readonly outputs: Outputs;
  readonly attributes: Attributes;
}

/**
 * A backend's implementation of an operation. `Inputs` and `Outputs` are its operands, such as `[Tensor, ...Tensor[]]`
 * if inputs after the first may be omitted.
 */
export interface Implementation<
  Attributes,
  Inputs extends readonly Tensor[] = readonly Tensor[],
  Outputs extends readonly Tensor[] = readonly Tensor[],
  Result extends Launched = Launched,
> {
  /** Returns why the implementation can't run this call (dtype, shape, memory), in a few words; undefined if it can. */
  unsupported?(call: Omit<OperationCall<Attributes, Inputs>, "outputs">): string | undefined;
  /**
   * Computes all elements of the outputs. It must not change inputs, so that a failed call can run elsewhere. On a
   * device it returns the command buffers that it encoded into.
   */
  run(call: OperationCall<Attributes, Inputs, Outputs>): Result;
}

/** An implementation on metal. It must return its launches, or null if there are none. */
export type MetalImplementation<
  Attributes,
  Inputs extends readonly Tensor[] = readonly Tensor[],
  Outputs extends readonly Tensor[] = readonly Tensor[],
> = Implementation<Attributes, Inputs, Outputs, TicketRange | null>;

/**
 * An implementation's pending work on a device: the command buffers of its launches; nothing if the work is done when
 * it returns.
 */
// biome-ignore lint/suspicious/noConfusingVoidType: most implementations return nothing, and need not say so
export type Launched = TicketRange | null | undefined | void;

/** Why a backend lacks an operation. The reason is reported when the call falls back. */
export interface Missing {
  readonly missing: string;
}

/** An operation that backends run. Gradients are defined elsewhere: see `autograd/record.ts`. */
export interface Primitive<Attributes = undefined> {
  readonly name: string;
  /** The primitive's folder in `src/ops`, for `route`. */
  readonly family: string;
  readonly implementations: Implementations<Attributes>;
}

/** For each backend, an implementation or the reason why it lacks one. */
type Implementations<Attributes> = {
  readonly [Name in BackendName]: ImplementationOn<Name, Attributes> | Missing;
};

type ImplementationOn<Name extends BackendName, Attributes> = Name extends "metal"
  ? MetalImplementation<Attributes>
  : Implementation<Attributes>;
