/** User-defined implementations of operations, and preferred backends of operation families. Both can be undone. */
import { noGrad } from "../autograd/modes.ts";
import { ContextVariable } from "../core/context.ts";
import { describeValue } from "../core/describe.ts";
import { ArgumentError, DTypeError, ShapeError } from "../core/errors.ts";
import { aFunction, text } from "../core/kinds.ts";
import { expectNothing, type Kind, named, operand, parameters } from "../core/parameters.ts";
import { nearestName } from "../core/suggestion.ts";
import { formatShape } from "../tensor/shape.ts";
import { Tensor } from "../tensor/tensor.ts";
import type { Implementation, Launched, OperationCall, Primitive } from "./backend.ts";
import { type BackendName, backendNames } from "./names.ts";
import { getScopedBackend } from "./policy.ts";
import { allPrimitives, loadedPrimitives, primitiveOf } from "./primitive.ts";
import { backends } from "./registry.ts";

/** A call as passed to an override: the primitive's operands and attributes, and allocated results. */
export type OverrideCall = OperationCall<unknown>;

/**
 * The replacement of an operation. It writes the results to `outputs` (with in-place operations or a {@link
 * MetalKernel}), or returns a tensor for each result with its shape and dtype, which are copied.
 */
export type OverrideBody = (call: OverrideCall) => Tensor | readonly Tensor[] | Launched;

/** A kernel as the body of an override: its arguments and grid for a call. */
export interface KernelOverride {
  encode(call: OverrideCall): Launched;
}

/** Options of an override. */
export interface OverrideOptions {
  /** A name for reports. Default: `override of <operation>`. */
  readonly name?: string | undefined;
  /** Limits the override to calls for which this returns true; others run as before. */
  readonly when?: ((call: Omit<OverrideCall, "outputs">) => boolean) | undefined;
}

/** An active override, with a method to undo it. */
export interface OverrideHandle extends Disposable {
  readonly operation: string;
  readonly backend: BackendName;
  readonly name: string;
  /** Removes the override. Other overrides of the operation stay active. A second call has no effect. */
  restore(): void;
}

interface Override {
  readonly operation: string;
  readonly backend: BackendName;
  readonly name: string;
  readonly when: OverrideOptions["when"];
  readonly implementation: Implementation<never>;
}

/** The preferred backend of a family of operations. */
interface Route {
  readonly family: string;
  readonly backend: BackendName;
}

/** Overrides and routes, latest last. */
interface Changes {
  readonly overrides: readonly Override[];
  readonly routes: readonly Route[];
}

const none: Changes = { overrides: [], routes: [] };

/** @internal Whether any override or route was ever created. Until then, dispatch does not search for them. */
export let isInUse = false;

// The changes of the process, and of the bodies of `withOverride` and `withRoute`. Later changes take precedence over
// earlier ones, and changes by a body over changes by the process.
let ofProcess: Changes = none;
const ofBody = new ContextVariable<Changes>(none);
/** Overrides whose bodies are running. Within them, the operation behaves as without the override. */
const running = new ContextVariable<readonly Override[]>([]);

/** @internal Whether an override or a route is active. */
export const isAnyInUse = (): boolean =>
  isInUse && [ofProcess, ofBody.get()].some((changes) => changes.overrides.length > 0 || changes.routes.length > 0);

/** A backend's name, checked by {@link checkName}. */
const backendName = operand(text as Kind<BackendName>);

const implementation: Kind<OverrideBody | KernelOverride> = {
  expected: "a function or a result of kernelOverride()",
  parse: (value) =>
    typeof value === "function" || typeof (value as Partial<KernelOverride> | null)?.encode === "function"
      ? (value as OverrideBody | KernelOverride)
      : undefined,
};
const overrideOptions = {
  name: named(text),
  when: named(aFunction<NonNullable<OverrideOptions["when"]>>()),
} as const;
const bodyParameter = operand(aFunction<() => unknown>());

const overrideParameters = parameters("override", {
  operation: operand(text),
  backend: backendName,
  body: operand(implementation),
  ...overrideOptions,
});
const withOverrideParameters = parameters("withOverride", {
  operation: operand(text),
  backend: backendName,
  implementation: operand(implementation),
  body: bodyParameter,
  ...overrideOptions,
});
const routeParameters = parameters("route", { family: operand(text), backend: backendName });
const withRouteParameters = parameters("withRoute", {
  family: operand(text),
  backend: backendName,
  body: bodyParameter,
});

/**
 * Replaces the implementation of an operation on a backend for the whole process, until the handle is restored.
 * Gradients remain those of the operation; `codepaths()` names the override.
 *
 * Within the body, the operation runs as before, so an override may call the operation that it replaces.
 *
 * @param operation a primitive's name as in `codepaths()`
 * @param backend the backend on which it is replaced
 * @param body computes the results; see {@link OverrideBody}
 * @example
 * using handle = override("gelu", "cpu", ({ inputs: [x] }) => mul(x, sigmoid(mul(x, 1.702))));
 *
 * @throws {ArgumentError} for an unknown operation or backend.
 */
export function override(
  operation: string,
  backend: BackendName,
  body: OverrideBody | KernelOverride,
  options?: OverrideOptions,
): OverrideHandle;
export function override(...values: unknown[]): OverrideHandle {
  const { operation, backend, body, ...options } = overrideParameters(values);
  const made = makeOverride("override", operation, backend, body, options);
  ofProcess = { ...ofProcess, overrides: [...ofProcess.overrides, made] };
  const restore = (): void => {
    ofProcess = { ...ofProcess, overrides: ofProcess.overrides.filter((other) => other !== made) };
  };
  return { operation, backend, name: made.name, restore, [Symbol.dispose]: restore };
}

/**
 * As {@link override}, but only within `body`, including after its awaits.
 *
 * @example
 * const y = withOverride("gelu", "cpu", fastGelu, () => model.forward(x));
 */
export function withOverride<Result>(
  operation: string,
  backend: BackendName,
  implementation: OverrideBody | KernelOverride,
  body: () => Result,
  options?: OverrideOptions,
): Result;
export function withOverride(...values: unknown[]): unknown {
  const { operation, backend, implementation, body, ...options } = withOverrideParameters(values);
  const made = makeOverride("withOverride", operation, backend, implementation, options);
  const outer = ofBody.get();
  return ofBody.run({ ...outer, overrides: [...outer.overrides, made] }, body);
}

/**
 * Returns the active overrides, in order of precedence.
 *
 * @example
 * using handle = override("gelu", "cpu", fastGelu);
 * overrides()[0]!.operation; // "gelu"
 */
export function overrides(): readonly Pick<OverrideHandle, "operation" | "backend" | "name">[];
export function overrides(...values: unknown[]): readonly Pick<OverrideHandle, "operation" | "backend" | "name">[] {
  expectNothing("overrides", values);
  return inForce("overrides").map(({ operation, backend, name }) => ({ operation, backend, name }));
}

/** An active route, with a method to undo it. */
export interface RouteHandle extends Disposable, Route {
  /** Removes the route. A second call has no effect. */
  restore(): void;
}

/**
 * Makes a family of operations try a backend first. Calls that it can't run fall back as usual.
 *
 * @param family the operation's folder in `src/ops`, such as `"normalization"`
 * @example
 * using handle = route("normalization", "cpu");
 *
 * @throws {ArgumentError} for an unknown family or backend.
 */
export function route(family: string, backend: BackendName): RouteHandle;
export function route(...values: unknown[]): RouteHandle {
  const { family, backend } = routeParameters(values);
  const made = makeRoute("route", family, backend);
  ofProcess = { ...ofProcess, routes: [...ofProcess.routes, made] };
  const restore = (): void => {
    ofProcess = { ...ofProcess, routes: ofProcess.routes.filter((other) => other !== made) };
  };
  return { ...made, restore, [Symbol.dispose]: restore };
}

/**
 * As {@link route}, but only within `body`, including after its awaits.
 *
 * @example
 * const y = withRoute("normalization", "cpu", () => model.forward(x));
 *
 * @throws as {@link route}
 */
export function withRoute<Result>(family: string, backend: BackendName, body: () => Result): Result;
export function withRoute(...values: unknown[]): unknown {
  const { family, backend, body } = withRouteParameters(values);
  const made = makeRoute("withRoute", family, backend);
  const outer = ofBody.get();
  return ofBody.run({ ...outer, routes: [...outer.routes, made] }, body);
}

/**
 * Returns the active routes, in order of precedence.
 *
 * @example
 * using handle = route("normalization", "cpu");
 * routes(); // [{ family: "normalization", backend: "cpu" }]
 */
export function routes(): readonly Route[];
export function routes(...values: unknown[]): readonly Route[] {
  expectNothing("routes", values);
  return inForce("routes").map((routed) => ({ ...routed }));
}

/** @internal Returns the override for a call on a backend; undefined if there is none, the usual case. */
export function overrideFor(
  { name: operation }: { readonly name: string },
  backend: BackendName,
  inputs: readonly Tensor[],
  attributes: unknown,
): Override | undefined {
  const call = { operation, inputs, attributes };
  const under = running.get();
  return inForce("overrides").find(
    (candidate) =>
      candidate.operation === operation &&
      candidate.backend === backend &&
      !under.includes(candidate) &&
      (candidate.when?.(call) ?? true),
  );
}

/** @internal Returns a primitive with an override as its implementation. */
export const overridden = <Attributes>(
  primitive: Primitive<Attributes>,
  { backend, implementation }: Override,
): Primitive<Attributes> => ({
  ...primitive,
  implementations: { ...primitive.implementations, [backend]: implementation },
});

/**
 * @internal Returns the backend to which a family is routed; undefined if there is no route. A route of a body takes
 *   precedence over `withBackend`, which takes precedence over a route of the process.
 */
export function routeOf(family: string | undefined): BackendName | undefined {
  const find = ({ routes }: Changes) => routes.findLast((routed) => routed.family === family)?.backend;
  return find(ofBody.get()) ?? getScopedBackend() ?? find(ofProcess);
}

const inForce = <Kind extends keyof Changes>(kind: Kind): Changes[Kind][number][] => [
  ...ofBody.get()[kind].toReversed(),
  ...ofProcess[kind].toReversed(),
];

function makeRoute(called: string, family: string, backend: BackendName): Route {
  const families = new Set([...allPrimitives().values()].map((primitive) => primitive.family));
  isInUse = true;
  checkName(called, "family", family, families);
  checkName(called, "backend", backend, backendNames);
  return { family, backend };
}

function makeOverride(
  called: string,
  operation: string,
  backend: BackendName,
  body: OverrideBody | KernelOverride,
  { name = `override of ${operation}`, when }: OverrideOptions,
): Override {
  isInUse = true;
  if (!loadedPrimitives().has(operation)) checkName(called, "operation", operation, allPrimitives().keys());
  checkName(called, "backend", backend, backendNames);
  const run = (call: OverrideCall): Launched => {
    const within = [...running.get(), made];
    if (typeof body !== "function") return running.run(within, () => noGrad(() => body.encode(call)));
    const versions = call.outputs.map(({ storage }) => storage.version);
    const results = running.run(within, () => noGrad(() => body(call)));
    if (results instanceof Tensor || Array.isArray(results)) return copyResults(name, call, backend, results);
    if (!isLaunched(results)) throw notAResult(name, call, results);
    checkWritten(name, call, versions);
    return results;
  };
  const made: Override = { operation, backend, name, when, implementation: { run } };
  return made;
}

/** Whether a body returned nothing or the command buffers of a kernel. */
function isLaunched(results: unknown): results is Launched {
  if (results === undefined || results === null) return true;
  const { first, last } = results as { first?: unknown; last?: unknown };
  return typeof first === "number" && typeof last === "number";
}

const notAResult = (name: string, { operation, outputs }: OverrideCall, results: unknown): ArgumentError =>
  new ArgumentError(
    operation,
    "wrongOverride",
    `expected ${outputs.length === 1 ? "a tensor" : `${outputs.length} tensors`} or nothing from ${name}, got ` +
      `${results instanceof Promise ? "a promise; bodies can't be async" : describeValue(results)}`,
  );

/** Checks that a body that returns nothing has written every result. Otherwise the contents would be undefined. */
function checkWritten(name: string, { operation, outputs }: OverrideCall, versions: readonly number[]): void {
  const index = outputs.findIndex(({ size, storage }, at) => size > 0 && storage.version === versions[at]);
  if (index < 0) return;
  const message = `expected ${name} to return its results or to write them, got neither for result ${index}`;
  throw new ArgumentError(operation, "wrongOverride", message);
}

/** Copies an override's return values to the results of the call. */
function copyResults(
  name: string,
  { operation, outputs }: OverrideCall,
  backend: BackendName,
  returned: Tensor | readonly Tensor[],
): Launched {
  const results = returned instanceof Tensor ? [returned] : returned;
  if (results.length !== outputs.length)
    throw new ArgumentError(
      operation,
      "wrongOverride",
      `expected ${outputs.length} results from ${name}, got ${results.length}`,
    );
  const launches = outputs.map((output, index) => {
    const result = results[index];
    checkResult(name, operation, result, output, index);
    return copyBetween(operation, result, output, backend);
  });
  return launches.reduce((before, span) =>
    before && span ? { first: before.first, last: span.last } : (span ?? before),
  );
}

function checkResult(name: string, operation: string, result: Tensor, expected: Tensor, index: number): void {
  const which = `result ${index} of ${name}`;
  if (!(result instanceof Tensor)) throw new ArgumentError(operation, "wrongOverride", `expected a tensor as ${which}`);
  if (result.dtype !== expected.dtype)
    throw new DTypeError(operation, "wrongOverride", `expected ${expected.dtype} as ${which}, got ${result.dtype}`);
  if (formatShape(result.shape) !== formatShape(expected.shape))
    throw new ShapeError(
      operation,
      "wrongOverride",
      `expected shape ${formatShape(expected.shape)} as ${which}, got ${formatShape(result.shape)}`,
    );
}

/** @internal Copies a tensor to a result on a backend. */
export function copyBetween(operation: string, from: Tensor, to: Tensor, backend: BackendName): Launched {
  const { implementations } = primitiveOf("copy");
  const implementation = implementations[backend] as Implementation<unknown>;
  backends[backend].makeResident(from);
  return implementation.run({ operation, inputs: [from], outputs: [to], attributes: undefined });
}

function checkName(called: string, what: string, name: string, known: Iterable<string | undefined>): void {
  const names = [...known].filter((candidate) => candidate !== undefined);
  if (names.includes(name)) return;
  const nearest = nearestName(name, names);
  const hint = nearest ? `did you mean "${nearest}"?` : `expected one of ${names.sort().join(", ")}`;
  throw new ArgumentError(called, "unknownName", `there is no ${what} "${name}"; ${hint}`);
}
