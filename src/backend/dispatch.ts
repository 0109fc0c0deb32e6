/** The way of a call to a backend: the first that can run it does; what fails falls through, reported once and counted. */

import { getOrMake } from "../core/collections.ts";
import { environmentFlag } from "../core/environment.ts";
import { BackendError, KernelCompileError, type OrchardError, OutOfMemoryError } from "../core/errors.ts";
import { forgetWarnings, warnOnce } from "../core/warn.ts";
import { type ObservedCall, type Observer, observer } from "../observe/observer.ts";
import { within } from "../observe/within.ts";
import type { DType } from "../tensor/dtype.ts";
import { type AllocationHint, checkStorage, type Memory } from "../tensor/memory.ts";
import type { Shape } from "../tensor/shape.ts";
import { Storage } from "../tensor/storage.ts";
import { byteLengthOf, Tensor } from "../tensor/tensor.ts";
import { checkForAnomaly, searchedFor } from "./anomaly.ts";
import type { Backend, Implementation, OperationCall, Primitive } from "./backend.ts";
import { codepathCount } from "./codepaths.ts";
import type { BackendName } from "./names.ts";
import { getBackend, isStrict, orderFrom } from "./policy.ts";
import { backends, whyUnavailable } from "./registry.ts";
import { putBack, setAside } from "./set_aside.ts";

/** Shape and dtype of a result that is to be allocated. */
export interface OutputSpec<D extends DType = DType> {
  readonly shape: Shape;
  readonly dtype: D;
  /** Of memory without gaps; default row-major. */
  readonly strides?: readonly number[] | undefined;
  /** Where the result lies in memory that it shares with others of the call, none of whose elements it has; default memory of its own. */
  readonly place?: { readonly block: OutputBlock; readonly offset: number } | undefined;
}

/** Memory of several results: so many elements. Those with one block have one dtype. */
export interface OutputBlock {
  readonly elements: number;
}

/** What a call works on, once it is known which backend runs it. */
interface Operands {
  readonly inputs: readonly Tensor[];
  readonly outputs: readonly Tensor[];
}

const debug = environmentFlag("ORCHARD_DEBUG");
const PREFERRED = "preferred";

/**
 * Runs an operation with one result that is allocated here.
 *
 * @param operation what the caller called, for errors; default the primitive's name
 */
export function execute<Attributes, D extends DType>(
  primitive: Primitive<Attributes>,
  inputs: readonly Tensor[],
  shape: Shape,
  dtype: D,
  attributes: Attributes,
  operation?: string,
): Tensor<D> {
  return executeMany(primitive, inputs, [{ shape, dtype }], attributes, operation)[0] as Tensor<D>;
}

/** Runs an operation with several results that are allocated here. @see {@link execute} */
export function executeMany<Attributes>(
  primitive: Primitive<Attributes>,
  inputs: readonly Tensor[],
  specs: readonly OutputSpec[],
  attributes: Attributes,
  operation: string = primitive.name,
): Tensor[] {
  const operandsOn = (backend: Backend) => ({ inputs, outputs: allocateAll(backend, specs) });
  return attempt(operation, primitive, inputs, attributes, operandsOn, discardOutputs);
}

/** Runs an operation into tensors that are there, views too. They must not overlap the inputs. */
export function executeInto<Attributes>(
  primitive: Primitive<Attributes>,
  inputs: readonly Tensor[],
  outputs: readonly Tensor[],
  attributes: Attributes,
): void {
  for (const output of outputs) output.checkAlive(primitive.name);
  const operandsOn = (backend: Backend) => {
    for (const { storage } of outputs) backend.beforeChange?.(storage);
    return { inputs, outputs };
  };
  attempt(primitive.name, primitive, inputs, attributes, operandsOn, () => undefined);
  for (const { storage } of outputs) storage.version++;
}

/**
 * Runs an operation that changes tensors: its first inputs are what `targets` hold before, its outputs what they hold afterwards. Where work may
 * be computed again, on a device, these lie in different memory; elsewhere in the same.
 *
 * @param targets dense, and each all of its storage ({@link isWhole})
 * @param inputs what else it reads, after the targets
 */
export function executeUpdate<Attributes>(
  primitive: Primitive<Attributes>,
  targets: readonly Tensor[],
  inputs: readonly Tensor[],
  attributes: Attributes,
  operation: string = primitive.name,
): void {
  let before = targets;
  const operandsOn = (backend: Backend) => {
    before = setAside(backend, targets);
    return { inputs: [...before, ...inputs], outputs: targets };
  };
  attempt(operation, primitive, [...targets, ...inputs], attributes, operandsOn, () => putBack(before, targets));
  if (before !== targets) disposeAll(before); // the journal has its share
  for (const { storage } of targets) storage.version++;
}

/** Memory for a new tensor where calls now run first. @throws {OutOfMemoryError} naming the operation. */
export function allocate(byteLength: number, hint: AllocationHint = {}, operation = "allocate"): Memory {
  checkStorage(operation, hint.storage);
  let failure: unknown;
  for (const name of orderFrom[getBackend()]) {
    const why = whyUnavailable(name);
    if (why !== undefined) {
      passOver(operation, name, because(PREFERRED, name, why));
      continue;
    }
    try {
      return backends[name].allocate(byteLength, hint);
    } catch (error) {
      if (!isRecoverable(error)) throw error;
      refuseIfStrict(operation, because(PREFERRED, name, noteFailure(operation, name, [], error)), error);
      failure ??= error;
    }
  }
  throw asOf(operation, failure);
}

/** A tensor with undefined contents, for an operation that writes them. */
export function empty<D extends DType>(shape: Shape, dtype: D, hint?: AllocationHint, operation?: string): Tensor<D> {
  return new Tensor(new Storage(allocate(byteLengthOf(shape, dtype), hint, operation)), dtype, shape);
}

/** A failure under the name of what the caller called: memory does not know for whom it is. */
function asOf(operation: string, failure: unknown): unknown {
  if (!(failure instanceof OutOfMemoryError) || failure.operation === operation) return failure;
  const cause = failure.cause instanceof OutOfMemoryError ? failure.cause : failure;
  const message = `there is no memory for the result: ${cause.message}`;
  return new OutOfMemoryError(operation, failure.code, message, { cause });
}

/** Runs the body of an operation that is made of others: where memory lacks, the error names this one. */
export function named<Result>(operation: string, body: () => Result): Result {
  try {
    return body();
  } catch (error) {
    throw asOf(operation, error);
  }
}

function attempt<Attributes>(
  called: string,
  primitive: Primitive<Attributes>,
  inputs: readonly Tensor[],
  attributes: Attributes,
  operandsOn: (backend: Backend) => Operands,
  discard: (operands: Operands) => void,
): Tensor[] {
  const operation = primitive.name;
  for (const input of inputs) input.checkAlive(called);
  let reason = PREFERRED;
  let failure: unknown;
  for (const name of orderFrom[getBackend()]) {
    const why = whyNot(primitive, name, inputs, attributes);
    if (why !== undefined) {
      reason = because(reason, name, why);
      passOver(called, name, reason);
      continue;
    }
    try {
      const run = observer ? runWatched(observer, reason, inputs) : runOn;
      const outputs = run(backends[name], primitive, attributes, operandsOn, discard);
      countCodepath(operation, name, reason);
      const anomaly = searchedFor.get();
      if (anomaly) checkForAnomaly(anomaly, operation, inputs, outputs);
      return outputs as Tensor[];
    } catch (error) {
      if (!isRecoverable(error)) throw error;
      failure ??= error;
      reason = because(reason, name, noteFailure(operation, name, inputs, error));
      refuseIfStrict(called, reason, error);
    }
  }
  if (failure !== undefined) throw asOf(called, failure);
  throw new BackendError(called, "noBackend", `no backend can run it: ${reason}`);
}

/** {@link runOn} while somebody watches: apart, so that a call that nobody watches makes no closure. */
const runWatched =
  (watcher: Observer, reason: string, inputs: readonly Tensor[]): typeof runOn =>
  (backend, primitive, attributes, operandsOn, discard) =>
    watcher.watch(watched(primitive, backend.name, reason, inputs, attributes), () =>
      runOn(backend, primitive, attributes, operandsOn, discard),
    );

const watched = <Attributes>(
  { name: operation }: Primitive<Attributes>,
  backend: BackendName,
  reason: string,
  inputs: readonly Tensor[],
  attributes: Attributes,
): ObservedCall => ({ operation, within: within.get(), backend, reason, inputs, attributes });

function runOn<Attributes>(
  backend: Backend,
  primitive: Primitive<Attributes>,
  attributes: Attributes,
  operandsOn: (backend: Backend) => Operands,
  discard: (operands: Operands) => void,
): readonly Tensor[] {
  const implementation = primitive.implementations[backend.name];
  if ("missing" in implementation) throw new BackendError(primitive.name, "missing", implementation.missing);
  const operands = operandsOn(backend); // first: where memory is short, an allocation may move what is there
  const { inputs, outputs } = operands;
  try {
    for (const input of inputs) backend.reach(input);
    for (const output of outputs) backend.reach(output);
    const call: OperationCall<Attributes> = { operation: primitive.name, inputs, outputs, attributes };
    if (outputs.every(({ size }) => size === 0)) return outputs; // nothing to compute
    const launched = implementation.run(call) ?? undefined;
    backend.ran?.(call, launched, () => redo(primitive, call, backend.name));
    return outputs;
  } catch (error) {
    discard(operands); // the next backend makes its own
    throw error;
  }
}

const discardOutputs = ({ outputs }: Operands): void => disposeAll(outputs);

const disposeAll = (tensors: readonly Tensor[]): void => {
  for (const tensor of tensors) tensor.dispose();
};

/** Computes an operation that a device lost: on the backends after it, into the same outputs. */
function redo<Attributes>(
  primitive: Primitive<Attributes>,
  call: OperationCall<Attributes>,
  lostOn: BackendName,
): void {
  let cause: unknown;
  const reason = `${lostOn}: the command buffer failed`;
  for (const name of orderFrom[lostOn].slice(1)) {
    if (whyNot(primitive, name, call.inputs, call.attributes) !== undefined) continue;
    try {
      const run = () => runAgain(primitive, call, name);
      if (observer) observer.watch(watched(primitive, name, reason, call.inputs, call.attributes), run);
      else run();
      countCodepath(primitive.name, name, reason);
      return;
    } catch (error) {
      if (!isRecoverable(error)) throw error;
      cause = error;
    }
  }
  const message = `the command buffer failed on ${lostOn}, and no other backend could compute it again`;
  throw new BackendError(primitive.name, "lost", message, { cause });
}

function runAgain<Attributes>(
  { implementations }: Primitive<Attributes>,
  call: OperationCall<Attributes>,
  name: BackendName,
): readonly Tensor[] {
  for (const tensor of [...call.inputs, ...call.outputs]) backends[name].reach(tensor);
  (implementations[name] as Implementation<Attributes>).run(call);
  return call.outputs;
}

function allocateAll(backend: Backend, specs: readonly OutputSpec[]): Tensor[] {
  const made: Tensor[] = [];
  const blocks = new Map<OutputBlock, Storage>();
  const storageFor = ({ shape, dtype, place }: OutputSpec): Storage => {
    const make = (size: Shape) => new Storage(backend.allocate(byteLengthOf(size, dtype), {}));
    return place ? getOrMake(blocks, place.block, () => make([place.block.elements])) : make(shape);
  };
  try {
    for (const spec of specs)
      made.push(new Tensor(storageFor(spec), spec.dtype, spec.shape, spec.strides, spec.place?.offset));
  } catch (error) {
    disposeAll(made);
    throw error;
  }
  return made;
}

/** Why a backend does not run a call, as far as that is known before it is tried. */
function whyNot<Attributes>(
  primitive: Primitive<Attributes>,
  name: BackendName,
  inputs: readonly Tensor[],
  attributes: Attributes,
): string | undefined {
  const implementation = primitive.implementations[name];
  if ("missing" in implementation) return implementation.missing;
  return (
    whyUnavailable(name) ??
    implementation.unsupported?.({ operation: primitive.name, inputs, attributes }) ??
    (broken.size > 0 ? broken.get(callKind(primitive.name, name, inputs)) : undefined)
  );
}

const because = (reason: string, name: BackendName, why: string): string =>
  reason === PREFERRED ? `${name}: ${why}` : `${reason}; ${name}: ${why}`;

/** Goes on without a backend that can't run a call; one that can't run any is told of once. */
function passOver(operation: string, name: BackendName, reason: string): void {
  refuseIfStrict(operation, reason);
  const why = whyUnavailable(name);
  if (why !== undefined) warnOnce(`${name} is left out: ${why}`);
}

function refuseIfStrict(operation: string, reason: string, cause?: unknown): void {
  if (!isStrict()) return;
  throw new BackendError(
    operation,
    "strict",
    `strict mode allows no fallback, and ${reason}. setStrict(false) allows it, withBackend(…) chooses another backend.`,
    { cause },
  );
}

/** A failure that another backend may not have: of the device, of a compilation, of memory. Mistakes of the caller are none. */
const isRecoverable = (error: unknown): error is OrchardError =>
  error instanceof KernelCompileError ||
  error instanceof OutOfMemoryError ||
  (error instanceof BackendError && error.code !== "strict");

// Kinds of calls that a backend could not compile: it is not asked again.
const broken = new Map<string, string>();

const callKind = (operation: string, name: BackendName, inputs: readonly Tensor[]): string =>
  `${operation} ${name} ${inputs.map(({ dtype }) => dtype).join(" ")}`;

/** Says once that a backend failed, and why. Returns the cause in one line. */
function noteFailure(operation: string, name: BackendName, inputs: readonly Tensor[], error: OrchardError): string {
  // Figures in a message would make each failure a cause of its own.
  const cause = error instanceof OutOfMemoryError ? "out of memory" : (error.message.split("\n", 1)[0] ?? error.code);
  if (error instanceof KernelCompileError) broken.set(callKind(operation, name, inputs), cause);
  const key = `${operation} ${name} ${cause}`;
  warnOnce(`${operation} could not run on ${name} and falls back: ${error.message}`, key);
  return cause;
}

/** Forgets which failures were reported and which kernels did not compile: each is tried and told anew. */
export function forgetFailures(): void {
  broken.clear();
  forgetWarnings();
}

/** Counts a call of a way, and prints it under `ORCHARD_DEBUG=1`. */
export function countCodepath(operation: string, name: BackendName, reason: string): void {
  codepathCount(operation, name, reason).calls++;
  if (debug) console.error(`[orchard] ${within.get()}${operation}: ${name} (${reason})`);
}
