/**
 * Dispatches calls: the first backend that can run a call does. A failure falls back to the next backend; it is counted
 * and reported once.
 */

import { environmentFlag } from "../core/environment.ts";
import { BackendError, ShapeError } from "../core/errors.ts";
import { type ObservedCall, type Observer, observer } from "../observe/observer.ts";
import { within } from "../observe/within.ts";
import type { DType } from "../tensor/dtype.ts";
import { reserve } from "../tensor/reserve.ts";
import type { Shape } from "../tensor/shape.ts";
import { byteLengthOf, type Tensor } from "../tensor/tensor.ts";
import { allocateAll, disposeAll, type OutputSpec } from "./allocation.ts";
import { checkForAnomaly, searchedFor } from "./anomaly.ts";
import type { Backend, Implementation, OperationCall, Primitive } from "./backend.ts";
import { callOf, capturing } from "./capture.ts";
import { codepathCount } from "./codepaths.ts";
import { type ComplexCall, involvesComplex, loweringOf } from "./complex.ts";
import {
  addReason,
  isRecoverable,
  PREFERRED,
  refuseIfStrict,
  reportFailure,
  skipBackend,
  typedMemoryError,
  whyUnsupported,
  withOperation,
} from "./failure.ts";
import { type Lifting, liftingOf } from "./lifted.ts";
import type { BackendName } from "./names.ts";
import { isInUse, overridden, overrideFor, routeOf } from "./overrides.ts";
import { getBackend, orderFrom } from "./policy.ts";
import { primitiveOf } from "./primitive.ts";
import { backends } from "./registry.ts";
import { restore, snapshot } from "./snapshot.ts";

/** The operands of a call on a given backend. */
interface Operands {
  readonly inputs: readonly Tensor[];
  readonly outputs: readonly Tensor[];
}

const debug = environmentFlag("ORCHARD_DEBUG");

/**
 * Runs an operation with one result, which it allocates.
 *
 * @param operation the user's operation, for errors. Default: the primitive's name.
 */
export function execute<Attributes, D extends DType>(
  primitive: Primitive<Attributes>,
  inputs: readonly Tensor[],
  shape: Shape,
  dtype: D,
  attributes: Attributes,
  operation?: string,
): Tensor<D> {
  return executeMany(primitive, inputs, [{ shape, dtype }], attributes, operation)[0];
}

/** The results of an operation: one tensor for each spec, of its dtype. */
type Results<Specs extends readonly OutputSpec[]> = { -readonly [At in keyof Specs]: Tensor<Specs[At]["dtype"]> };

/** Runs an operation with several results, which it allocates. @see {@link execute} */
export function executeMany<Attributes, const Specs extends readonly OutputSpec[]>(
  primitive: Primitive<Attributes>,
  inputs: readonly Tensor[],
  specs: Specs,
  attributes: Attributes,
  operation: string = primitive.name,
): Results<Specs> {
  const lifting = liftingOf(inputs, attributes);
  if (lifting) return lifted(lifting, operation, primitive, inputs, specs, attributes) as Results<Specs>;
  if (involvesComplex(inputs, specs)) {
    const call = complexCall(operation, primitive, inputs, specs, attributes);
    return loweringOf(call).compute(call) as Results<Specs>;
  }
  const operandsOn = (backend: Backend) => {
    checkElements(operation, inputs, specs);
    return { inputs, outputs: allocateAll(backend, specs) };
  };
  return dispatch(operation, primitive, inputs, attributes, operandsOn, discardOutputs) as Results<Specs>;
}

/** Runs an operation into existing tensors, which may be views but must not overlap the inputs. */
export function executeInto<Attributes>(
  primitive: Primitive<Attributes>,
  inputs: readonly Tensor[],
  outputs: readonly Tensor[],
  attributes: Attributes,
): void {
  for (const output of outputs) output.checkAlive(primitive.name);
  const lifting = liftingOf(inputs, attributes, outputs);
  if (lifting) {
    liftedInto(lifting, primitive, inputs, outputs, attributes);
    return;
  }
  if (involvesComplex(inputs) || involvesComplex(outputs)) {
    computeComplexInto(complexCall(primitive.name, primitive, inputs, outputs, attributes), outputs);
    return;
  }
  const operandsOn = (backend: Backend) => {
    checkElements(primitive.name, inputs);
    for (const { storage } of outputs) backend.beforeChange?.(storage);
    return { inputs, outputs };
  };
  dispatch(primitive.name, primitive, inputs, attributes, operandsOn, () => undefined);
  for (const { storage } of outputs) storage.version++;
}

/**
 * Runs an operation that updates tensors. Its first inputs are the old contents of `targets`, its outputs the new ones.
 * On a device, which may have to recompute work, they use different memory; elsewhere the same.
 *
 * @param targets must cover their storages ({@link coversStorage})
 * @param inputs the other inputs, after the targets
 * @param arrange puts the inputs in another order
 */
export function executeUpdate<Attributes>(
  primitive: Primitive<Attributes>,
  targets: readonly Tensor[],
  inputs: readonly Tensor[],
  attributes: Attributes,
  operation: string = primitive.name,
  arrange = targetsFirst,
): void {
  if (liftingOf(targets, attributes, inputs))
    throw new BackendError(operation, "lifted", "it can't update tensors inside of vmap or of a function under jvp");
  if (involvesComplex(targets) || involvesComplex(inputs))
    loweringOf(complexCall(operation, primitive, inputs, targets, attributes));
  let before = targets;
  const operandsOn = (backend: Backend) => {
    checkElements(operation, inputs);
    before = snapshot(backend, targets);
    return { inputs: arrange(before, inputs), outputs: targets };
  };
  dispatch(operation, primitive, arrange(targets, inputs), attributes, operandsOn, () => restore(before, targets));
  if (before !== targets) disposeAll(before); // the journal retains the storages that it needs
  for (const { storage } of targets) storage.version++;
}

const targetsFirst = (targets: readonly Tensor[], inputs: readonly Tensor[]): Tensor[] => [...targets, ...inputs];

function complexCall<Attributes>(
  operation: string,
  primitive: Primitive<Attributes>,
  inputs: readonly Tensor[],
  specs: readonly OutputSpec[],
  attributes: Attributes,
): ComplexCall {
  for (const input of inputs) input.checkAlive(operation);
  return { operation, primitive: primitive, inputs, specs, attributes };
}

function computeComplexInto(call: ComplexCall, outputs: readonly Tensor[]): void {
  const { compute, into } = loweringOf(call);
  if (into !== undefined) {
    into(call, outputs);
    return;
  }
  const results = compute(call);
  const copy = { ...call, primitive: primitiveOf("copy"), attributes: undefined };
  for (const [at, output] of outputs.entries()) {
    const moved = { ...copy, inputs: [results[at]], specs: [output] };
    loweringOf(moved).into!(moved, [output]);
  }
  disposeAll(results);
}

/** Runs a call with operands that no backend can run. */
function lifted(
  lifting: Lifting,
  operation: string,
  primitive: Primitive<never>,
  inputs: readonly Tensor[],
  specs: readonly OutputSpec[],
  attributes: unknown,
): Tensor[] {
  for (const input of inputs) input.checkAlive(operation);
  return lifting.run({ primitive, inputs, specs, attributes, operation });
}

function liftedInto(
  lifting: Lifting,
  primitive: Primitive<never>,
  inputs: readonly Tensor[],
  outputs: readonly Tensor[],
  attributes: unknown,
): void {
  lifting.runInto({ primitive, inputs, attributes, operation: primitive.name }, outputs);
  for (const { storage } of outputs) storage.version++;
}

/** Runs the body of a composite operation. Out-of-memory errors in it name that operation. */
export function underName<Result>(operation: string, body: () => Result): Result {
  try {
    return body();
  } catch (error) {
    throw withOperation(operation, error);
  }
}

/** Returns the backend that a call of an operation tries first. */
export const firstBackendOf = ({ family }: Pick<Primitive<never>, "family">): BackendName =>
  (isInUse ? routeOf(family) : undefined) ?? getBackend();

function dispatch<Attributes>(
  operation: string,
  primitive: Primitive<Attributes>,
  inputs: readonly Tensor[],
  attributes: Attributes,
  operandsOn: (backend: Backend) => Operands,
  discard: (operands: Operands) => void,
): Tensor[] {
  for (const input of inputs) input.checkAlive(operation);
  const first = firstBackendOf(primitive);
  let reason = PREFERRED;
  let failure: unknown;
  for (const name of orderFrom[first]) {
    const overriding = isInUse ? overrideFor(primitive, name, inputs, attributes) : undefined;
    const chosen = overriding ? overridden(primitive, overriding) : primitive;
    const why = whyUnsupported(chosen, name, inputs, attributes);
    if (why !== undefined) {
      reason = addReason(reason, name, why);
      skipBackend(operation, name, reason);
      continue;
    }
    try {
      const run = observer ? runWatched(observer, reason, inputs) : runOn;
      const outputs = run(backends[name], chosen, attributes, operandsOn, discard);
      countCodepath(primitive.name, name, overriding ? `${reason}, ${overriding.name}` : reason);
      const anomaly = searchedFor.get();
      if (anomaly) checkForAnomaly(anomaly, primitive.name, inputs, outputs);
      capturing()?.(callOf(primitive.name, inputs, outputs, attributes));
      return outputs as Tensor[];
    } catch (error) {
      if (!isRecoverable(error)) throw withOperation(operation, error);
      failure ??= error;
      reason = addReason(reason, name, reportFailure(primitive.name, name, inputs, error));
      refuseIfStrict(operation, reason, error);
    }
  }
  if (failure !== undefined) throw withOperation(operation, failure);
  throw new BackendError(operation, "noBackend", `no backend can run it: ${reason}`);
}

/** {@link runOn} with an observer. It is separate so that calls without one create no closure. */
const runWatched =
  (observer: Observer, reason: string, inputs: readonly Tensor[]): typeof runOn =>
  (backend, primitive, attributes, operandsOn, discard) =>
    observer.watch(observedCall(primitive, backend.name, reason, inputs, attributes), () =>
      runOn(backend, primitive, attributes, operandsOn, discard),
    );

const observedCall = <Attributes>(
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
  // must run before `makeResident`: if memory is short, allocating outputs may move inputs
  const operands = operandsOn(backend);
  const { inputs, outputs } = operands;
  try {
    for (const input of inputs) backend.makeResident(input);
    for (const output of outputs) backend.makeResident(output);
    const call: OperationCall<Attributes> = { operation: primitive.name, inputs, outputs, attributes };
    if (areEmpty(outputs)) return outputs; // nothing to compute
    const launched = implementation.run(call) ?? undefined;
    backend.ran?.(call, launched, () => recompute(primitive, call, backend.name));
    return outputs;
  } catch (error) {
    discard(operands); // the next backend allocates new outputs
    throw typedMemoryError(primitive.name, error);
  }
}

function areEmpty(tensors: readonly Tensor[]): boolean {
  for (let at = 0; at < tensors.length; at++) if (tensors[at].size > 0) return false;
  return true;
}

/**
 *  A quarter of an hour at a billion elements per second. Only expanded tensors have more; no memory holds that many.
 */
const MOST_ELEMENTS = 2 ** 40;

/**
 * Rejects calls with too many elements for a reasonable time, before allocating results. If the results would not fit
 * in memory either, the error says that instead.
 *
 * @throws {ShapeError} `tooManyElements` @throws {OutOfMemoryError}
 */
export function checkElements(
  operation: string,
  inputs: readonly Tensor[],
  results: readonly Pick<OutputSpec, "shape" | "dtype">[] = [],
): void {
  for (const input of inputs) {
    if (input.size <= MOST_ELEMENTS) continue;
    const bytes = results.reduce((sum, { shape, dtype }) => sum + byteLengthOf(shape, dtype), 0);
    underName(operation, () => reserve(bytes));
    throw new ShapeError(
      operation,
      "tooManyElements",
      `expected a tensor of at most 2^40 elements, got ${input.describe()}; compute with the unexpanded tensor, ` +
        "and expand the result",
    );
  }
}

const discardOutputs = ({ outputs }: Operands): void => disposeAll(outputs);

/** Recomputes an operation that failed on a device, on the following backends, into the same outputs. */
function recompute<Attributes>(
  primitive: Primitive<Attributes>,
  call: OperationCall<Attributes>,
  failedOn: BackendName,
): void {
  let cause: unknown;
  const reason = `${failedOn}: the command buffer failed`;
  for (const name of orderFrom[failedOn].slice(1)) {
    if (whyUnsupported(primitive, name, call.inputs, call.attributes) !== undefined) continue;
    try {
      const run = () => recomputeOn(primitive, call, name);
      if (observer) observer.watch(observedCall(primitive, name, reason, call.inputs, call.attributes), run);
      else run();
      countCodepath(primitive.name, name, reason);
      return;
    } catch (error) {
      if (!isRecoverable(error)) throw error;
      cause = error;
    }
  }
  const message = `the command buffer failed on ${failedOn}, and no other backend could recompute the results`;
  throw new BackendError(primitive.name, "lost", message, { cause });
}

function recomputeOn<Attributes>(
  { implementations }: Primitive<Attributes>,
  call: OperationCall<Attributes>,
  name: BackendName,
): readonly Tensor[] {
  for (const tensor of [...call.inputs, ...call.outputs]) backends[name].makeResident(tensor);
  (implementations[name] as Implementation<Attributes>).run(call);
  return call.outputs;
}

/** Counts a call by its codepath, and prints it under `ORCHARD_DEBUG=1`. */
export function countCodepath(operation: string, name: BackendName, reason: string): void {
  codepathCount(operation, name, reason).calls++;
  if (debug) console.error(`[orchard] ${within.get()}${operation}: ${name} (${reason})`);
}
