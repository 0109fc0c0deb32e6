import type { TicketRange as ObservedTickets } from "../observe/observer.ts";
import type { AllocationHint, Memory } from "../tensor/memory.ts";
import type { DeferredCheck, Storage } from "../tensor/storage.ts";
import type { Tensor } from "../tensor/tensor.ts";
import type { BackendName } from "./names.ts";

/** The command buffers of an operation, and what it has the device check: its results are right if that is. */
export interface TicketRange extends ObservedTickets {
  readonly checks?: readonly DeferredCheck[];
}

/** What runs operations: it allocates memory, and makes operands resident in it. */
export interface Backend {
  readonly name: BackendName;
  /** Why it can't be used on this machine, in one sentence; undefined where it can. Looked at once. */
  unavailable(): string | undefined;
  /** Memory with undefined contents, for results. @throws {OutOfMemoryError} */
  allocate(byteLength: number, hint: AllocationHint): Memory;
  /** Makes a tensor's memory usable here: nothing for the CPU, a copy to the device for Metal where it is elsewhere. */
  makeResident(tensor: Tensor): void;
  /** Called before an operation changes a storage that is in use: work under way may still read it. */
  beforeChange?(storage: Storage): void;
  /**
   * Called before a storage's memory is swapped for another, into which an operation writes the new contents: work
   * under way may still read or write the old one. Backends without it compute such an operation in place: nothing of
   * theirs is ever computed again.
   */
  beforeSwap?(storage: Storage): void;
  /**
   * Called after an operation was encoded and may yet fail; `recompute` computes it on another backend.
   *
   * @param launched what the implementation returned: the command buffers that it lies in
   */
  ran?(call: OperationCall<unknown>, launched: TicketRange | undefined, recompute: () => void): void;
}

/** One operation as a backend runs it: from inputs to outputs that are allocated already, views of any strides. */
export interface OperationCall<Attributes> {
  readonly operation: string;
  readonly inputs: readonly Tensor[];
  readonly outputs: readonly Tensor[];
  readonly attributes: Attributes;
}

/** How one backend runs an operation. */
export interface Implementation<Attributes, Result extends Launched = Launched> {
  /** Why it can't run this call (dtype, shape, memory), in a few words; undefined where it can. */
  unsupported?(call: Omit<OperationCall<Attributes>, "outputs">): string | undefined;
  /**
   * Computes every element of the outputs. It leaves inputs as they are, so that a failed call can be run elsewhere. On
   * a device it returns the command buffers that it encoded into.
   */
  run(call: OperationCall<Attributes>): Result;
}

/** How metal runs an operation: what it launched must not be forgotten; null where that is nothing. */
export type MetalImplementation<Attributes> = Implementation<Attributes, TicketRange | null>;

/**
 * What an implementation leaves on a device: the command buffers of its launches; nothing where it is done once it
 * returns.
 */
// biome-ignore lint/suspicious/noConfusingVoidType: most implementations return nothing, and need not say so
export type Launched = TicketRange | null | undefined | void;

/** An operation that a backend lacks, and why: shown, not skipped in silence. */
export interface Missing {
  readonly missing: string;
}

/** An operation that backends run. Its gradient is not its concern: see `autograd/record.ts`. */
export interface Primitive<Attributes = undefined> {
  readonly name: string;
  /** The folder of `src/ops` that it is in, for `route`. */
  readonly family: string;
  readonly implementations: Implementations<Attributes>;
}

/** For every backend, how it runs an operation or why it does not. */
type Implementations<Attributes> = {
  readonly [Name in BackendName]: ImplementationOn<Name, Attributes> | Missing;
};

type ImplementationOn<Name extends BackendName, Attributes> = Name extends "metal"
  ? MetalImplementation<Attributes>
  : Implementation<Attributes>;
