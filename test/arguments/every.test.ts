/**
 * Checks every export, class and method, found by walking the package: no argument is ignored, and every call returns a
 * result or throws an `OrchardError`.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { OrchardError } from "../../src/core/errors.ts";
import { packageRoot } from "../../src/core/paths.ts";
import * as orchard from "../../src/index.ts";
import { failureOf } from "./each_place.ts";
import { groups } from "./groups.ts";
import { CallersError, hostiles } from "./hostile.ts";
import { type Call, calls, enterFolder, leaveFolder } from "./upper.ts";

beforeAll(enterFolder);
afterAll(leaveFolder);

type Class = new (...values: readonly unknown[]) => object;

const isClass = (value: unknown): value is Class =>
  typeof value === "function" && /^class\b/.test(Function.prototype.toString.call(value));
const isError = (value: unknown): boolean => typeof value === "function" && value.prototype instanceof Error;

/** Functions and classes that the package exports, including its namespaces. */
const exported = Object.entries<unknown>(orchard)
  .flatMap(([name, value]): [string, unknown][] =>
    typeof value === "object"
      ? Object.entries(value as Record<string, unknown>).map(([own, inner]) => [`${name}.${own}`, inner])
      : [[name, value]],
  )
  .filter((entry): entry is [string, Call] => typeof entry[1] === "function" && !isError(entry[1]));

const ofOperations = new Map(
  groups.flatMap((group) => group.collect().subjects.map(({ name, right }) => [name, right])),
);

/** Returns valid arguments for a function; none if no table of calls lists it. */
const rightOf = (name: string): readonly unknown[] =>
  (calls[name] ?? calls[name.split(".").at(-1)!])?.[1]() ?? ofOperations.get(name)?.() ?? [];

/** Classes that functions of the package construct, and base classes: their constructors are not called. */
const notConstructed = new Set([
  "Function",
  "FunctionContext",
  "Tensor",
  "PerTensorWeights",
  "SmoothWeights",
  "data.HeldOutWindows",
  "data.Progress",
  "data.TextStream",
  "data.WorkerDataset",
  "nn.TokenStream",
  "nn.LanguageModel",
  "nn.Module",
  "distributions.Distribution",
  "distributions.Transform",
]);
/**
 * Functions that pass the arguments after the model to its `forward`, or the arguments after a function to that
 * function.
 */
const passesOn = new Set(["nn.summary", "transforms.linearize", "transforms.vjp"]);
/** Closes the resources that the other calls depend on. */
const ending = new Set(["distributed.finalize"]);

const isOptions = (value: unknown): value is object =>
  typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;

/** An instance of a class that no function of the package returns or accepts. */
class Surplus {}
/** More arguments than any function has parameters. */
const MANY = 20;

test.each(exported.filter(([name]) => !notConstructed.has(name) && !passesOn.has(name) && !ending.has(name)))(
  "%s rejects a surplus argument and an unknown option",
  async (name, value) => {
    const call = (...values: readonly unknown[]): unknown =>
      isClass(value) ? new value(...values) : (value as (...own: readonly unknown[]) => unknown)(...values);
    const refuses = async (values: readonly unknown[]) =>
      (await failureOf(() => call(...values))) instanceof OrchardError;
    const surplus = Array.from({ length: MANY }, () => new Surplus());
    expect(await refuses([...rightOf(name), ...surplus])).toBe(true);
    const right = rightOf(name);
    const last = right.at(-1);
    const options = { ...(isOptions(last) ? last : {}), nonsense: 5 };
    expect(await refuses([...(isOptions(last) ? right.slice(0, -1) : right), options])).toBe(true);
  },
);

/** Names of private, protected and internal methods: TypeScript rejects calls of them, and no page lists them. */
const hidden = new Set<string>();
for (const file of new Bun.Glob("**/*.ts").scanSync(join(packageRoot, "src"))) {
  const text = readFileSync(join(packageRoot, "src", file), "utf8");
  const isInternal = /@internal(?:[^*]|\*(?!\/))*\*\/\s+(?:override |async |abstract |static |protected |get )*(\w+)/g;
  for (const [, own] of text.matchAll(isInternal)) hidden.add(own);
  for (const [, own] of text.matchAll(/^ {2}(?:private|protected)(?: (?:override|async|readonly|abstract))* (\w+)/gm))
    hidden.add(own);
}

/** Returns its argument, which the test can't inspect if it is a proxy. */
const givesBack = new Set(["nn.Identity.forward"]);

/** Methods that optimizers override and only the base class calls. */
const ofSubclasses = new Set(["stateNames", "stateShape"]);

/** Values of every sort, except those that take long to traverse. */
const some = hostiles
  .filter(({ name }) => !/holes|nine sizes|9_?007|texts?\b.*x{5}/.test(name))
  .filter((_, at) => at % 2 === 0);

/**
 * Methods that JSON.stringify and loops call with extra arguments, predicates that are passed to `filter`, and methods
 * that accept any number of arguments.
 */
const unlimited = new Set([
  "toJSON",
  "return",
  "isTensor",
  "isQuantized",
  "apply",
  "saveForBackward",
  "markNonDifferentiable",
]);

/** Returns the result of a call; undefined if it failed. */
async function settled(call: () => unknown): Promise<unknown> {
  try {
    return await call();
  } catch {
    return undefined;
  }
}

/** The public static methods of a class. */
function* staticsOf(Class: Class): Generator<readonly [string, Call]> {
  for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(Class)))
    if (typeof value === "function" && !isClass(value) && !hidden.has(name)) yield [name, value as Call];
}

/** The public methods of a class and its base classes. */
function* methodsOf(Class: Class): Generator<readonly [string, Call]> {
  for (let own = Class.prototype; own && own !== Object.prototype; own = Object.getPrototypeOf(own))
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(own)))
      if (typeof value === "function" && name !== "constructor" && !hidden.has(name) && !ofSubclasses.has(name))
        yield [name, value as Call];
}

test("methods of every class reject a surplus argument", async () => {
  const seen = new Set<Call>();
  const found: string[] = [];
  const surplus = Array.from({ length: MANY }, () => new Surplus());
  for (const [name, value] of exported) {
    if (!isClass(value)) continue;
    const made = await settled(() => new value(...rightOf(name)));
    const instance = made instanceof value ? made : Object.create(value.prototype);
    for (const [method, call] of [...methodsOf(value), ...staticsOf(value)]) {
      if (seen.has(call) || unlimited.has(method)) continue;
      seen.add(call);
      const owner = Object.hasOwn(value, method) ? value : instance;
      const failure = await failureOf(() => call.apply(owner, surplus as never[]));
      if (!(failure instanceof OrchardError)) found.push(`${name}.${method}: ${String(failure).slice(0, 100)}`);
    }
  }
  expect(found).toEqual([]);
  expect(seen.size).toBeGreaterThan(400);
});

/**
 * Returns an error other than ours that a method threw. A promise that is still pending after a second is not a
 * failure.
 */
async function untyped(make: () => object, method: Call, values: readonly unknown[]): Promise<unknown> {
  const instance = make();
  const failure = await Promise.race([failureOf(() => method.apply(instance, values as never[])), Bun.sleep(1000)]);
  return failure instanceof OrchardError || failure instanceof CallersError ? undefined : failure;
}

test("methods of every class answer hostile arguments with a result or a typed error", async () => {
  const seen = new Set<Call>();
  const found: string[] = [];
  for (const [name, value] of exported) {
    if (!isClass(value) || notConstructed.has(name)) continue;
    const make = () => new value(...rightOf(name));
    if ((await failureOf(make)) !== undefined) continue; // only functions construct this class
    for (const [method, call] of methodsOf(value)) {
      if (seen.has(call) || givesBack.has(`${name}.${method}`)) continue;
      seen.add(call);
      for (const { name: hostile, make: of } of some)
        for (const values of [[of()], [of(), of()]]) {
          const error = await untyped(make, call, values);
          if (error !== undefined) found.push(`${name}.${method} with ${hostile}: ${String(error).slice(0, 100)}`);
        }
    }
  }
  expect(found).toEqual([]);
  expect(seen.size).toBeGreaterThan(150);
});
