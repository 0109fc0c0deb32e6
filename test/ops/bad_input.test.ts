/**
 * Invalid calls of every operation on every backend: each throws a typed error with the expected and the actual value,
 * and leaks nothing.
 */
import { afterAll, describe, expect, spyOn, test } from "bun:test";
import { AutogradError } from "../../src/autograd/node.ts";
import { isMetalOpen, metalContext } from "../../src/backend/metal/context.ts";
import { forgetFinished } from "../../src/backend/metal/journal.ts";
import type { BackendName } from "../../src/backend/names.ts";
import { withBackend, withStrict } from "../../src/backend/policy.ts";
import { DisposedError, OrchardError } from "../../src/core/errors.ts";
import * as library from "../../src/index.ts";
import { isFloat } from "../../src/tensor/dtype.ts";
import { Tensor } from "../../src/tensor/tensor.ts";
import { tidy } from "../../src/tensor/tidy.ts";
import { memory } from "../../src/tensor/usage.ts";
import { whyMissing } from "./attention/run.ts";
import {
  calls,
  disposeLeaves,
  leafOf,
  makeOperands,
  operationNames as names,
  type Operands,
  type OperationName,
} from "./calls.ts";
import { limits, type Mistake, mistakes } from "./mistakes.ts";
import { tested } from "./run.ts";

type Call = (...values: readonly unknown[]) => unknown;
const functions = library as unknown as Readonly<Record<string, Call>>;

/** The tensors in a call's arguments, each once. */
function tensorsIn(value: unknown): Tensor[] {
  if (value instanceof Tensor) return [value];
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return [];
  return [...new Set(Object.values(value).flatMap(tensorsIn))];
}

/** The arguments with one tensor replaced. */
function replaced(value: unknown, from: Tensor, to: Tensor): unknown {
  if (value === from) return to;
  if (Array.isArray(value)) return value.map((item) => replaced(item, from, to));
  if (value instanceof Tensor || typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, replaced(item, from, to)]));
}

/** These functions use only a tensor's shape and dtype, which it has after its memory is released. */
const likes = new Set(names.filter((name) => name.endsWith("Like")));

/** A valid call with each of its tensors disposed of in turn. */
function disposedOf(operation: OperationName, operands: Operands): Mistake[] {
  if (likes.has(operation)) return [];
  const right = calls[operation](operands);
  return tensorsIn(right).map((tensor) => {
    const gone = new Tensor(tensor.storage, tensor.dtype, tensor.shape);
    gone.dispose();
    return {
      kind: "a tensor that was disposed of",
      operation,
      arguments: () => replaced(right, tensor, gone) as readonly unknown[],
      error: DisposedError,
      says: [tensor.describe(), "used after dispose()"],
    };
  });
}

/**
 * Describes what is wrong with the error of a call; undefined if nothing is. Results are read, since a device may find
 * a mistake only then.
 */
function problemOf({ kind, operation, arguments: make, error, says }: Mistake, operands: Operands): string | undefined {
  const outcome = tidy(() => {
    try {
      const result = functions[operation](...make(operands));
      for (const tensor of tensorsIn(result)) tensor.dataSync();
      return undefined;
    } catch (thrown) {
      return thrown;
    }
  });
  disposeLeaves();
  const what = `${operation}, ${kind}`;
  if (outcome === undefined) return `${what}: it was not refused`;
  if (!(outcome instanceof error)) return `${what}: expected ${error.name}, got ${outcome}`;
  if (!(outcome instanceof OrchardError) || functions[outcome.operation] !== functions[operation])
    return `${what}: the error names another operation: ${outcome}`;
  const missing = says.filter((part) => !outcome.message.includes(part));
  return missing.length === 0 ? undefined : `${what}: ${missing.join(" | ")} is not in: ${outcome.message}`;
}

/** The errors of `backward` for an operation's results: with a graph, and without one. */
function backwardOf(operation: OperationName, operands: Operands): { codes: string[]; problems: string[] } {
  const codes: string[] = [];
  const problems: string[] = [];
  const refusal = (root: Tensor, code: string) => {
    const says = code === "noGraph" ? ["requires a gradient"] : ["expected a result of one element"];
    const mistake = { kind: operation, operation: "backward", arguments: () => [root], error: AutogradError } as const;
    const problem = problemOf({ ...mistake, says: [root.describe(), ...says] }, operands);
    if (problem === undefined) codes.push(code);
    else problems.push(problem);
  };
  const right = calls[operation](operands);
  const call = (list: readonly unknown[]) => tensorsIn(functions[operation](...list));
  for (const root of library.noGrad(() => call(right))) refusal(root, "noGraph");
  if (operation.endsWith("_")) return { codes, problems }; // operations in place do not accept a leaf
  const leaves = tensorsIn(right).reduce<unknown>(
    (list, tensor) => (isFloat(tensor.dtype) ? replaced(list, tensor, leafOf(tensor)) : list),
    right,
  );
  for (const root of call(leaves as readonly unknown[]))
    if (root.requiresGrad && root.size !== 1) refusal(root, "notAScalar");
  return { codes, problems };
}

/** Live bytes and blocks once all work is done. */
function liveMemory() {
  if (isMetalOpen()) forgetFinished(metalContext(), { wait: true });
  const { host, metal } = memory();
  return [host, metal].map(({ liveBytes, blocks }) => ({ liveBytes, blocks }));
}

/** Runs invalid calls twice: the second run must leave no more memory in use than the first. */
function refuse(list: readonly Mistake[], operands: Operands): void {
  const problems = () => list.flatMap((mistake) => problemOf(mistake, operands) ?? []);
  expect(problems()).toEqual([]);
  Bun.gc(true);
  const before = liveMemory();
  problems();
  expect(liveMemory()).toEqual(before);
}

/** Operations with indices: each takes a square matrix of indices, or its first row. */
const byIndices: Readonly<Record<string, (x: Tensor, index: Tensor<"int64">) => Tensor>> = {
  gather: (x, index) => library.gather(x, index, { dim: 1 }),
  takeAlongDim: (x, index) => library.takeAlongDim(x, index, { dim: 1 }),
  indexSelect: (x, index) => byRow(index, (row) => library.indexSelect(x, row, { dim: 1 })),
  scatter: (x, index) => library.scatter(x, index, x, { dim: 1 }),
  scatterAdd: (x, index) => library.scatterAdd(x, index, x, { dim: 1 }),
  indexAdd: (x, index) => byRow(index, (row) => library.indexAdd(x, row, x, { dim: 1 })),
  embedding: (x, index) => library.embedding(index, x),
  embeddingBag: (x, index) => library.embeddingBag(index, x),
  crossEntropy: (x, index) => byRow(index, (row) => library.crossEntropy(x, row)),
  oneHot: (x, index) => byRow(index, (row) => library.oneHot(row, { numClasses: x.shape[0] })),
};

function byRow(index: Tensor<"int64">, call: (row: Tensor<"int64">) => Tensor): Tensor {
  using row = library.select(index, 0, 0);
  return call(row);
}

/** Statistics count every buffer of Metal, and on the cpu blocks of 64 KB and more. */
const sizes: Readonly<Record<BackendName, number>> = { metal: 10, cpu: 130, reference: 10 };

// hides warnings of fallbacks due to lack of memory
const warnings = spyOn(console, "warn").mockImplementation(() => undefined);
afterAll(() => warnings.mockRestore());

test("every operation has invalid calls", () => {
  const refused = new Set([...mistakes, ...limits].map(({ operation }) => functions[operation]));
  expect(names.filter((name) => !refused.has(functions[name]))).toEqual([]);
});

describe.each(tested)("invalid operands on %s", (backend: BackendName) => {
  const on = <Result>(body: () => Result, strict = true): Result =>
    withStrict(strict, () => withBackend(backend, body));
  if (backend === "metal") metalContext().configure("check", true);
  const operands = on(() => makeOperands(sizes[backend]));

  test.each(Object.entries(Object.groupBy(mistakes, ({ kind }) => kind)))("%s rejects invalid calls", (_kind, list) => {
    on(() => refuse(list!, operands));
  });

  test("a tensor that was disposed of is rejected", () => {
    const list = names.flatMap((name) => disposedOf(name as OperationName, operands));
    expect(list.length).toBeGreaterThan(150);
    on(() => refuse(list, operands));
  });

  test("more memory than available is an error", () => {
    on(() => refuse(limits, operands), false);
  });

  test("calls with indices release their memory at once, on success and on failure", () => {
    const size = sizes[backend];
    const x = on(() => library.ones([size, size]));
    const [right, wrong] = [1, size].map((value) => on(() => library.full([size, size], value, { dtype: "int64" })));
    const read = (call: () => Tensor) =>
      on(() => {
        using result = call();
        result.dataSync();
      });
    for (const call of Object.values(byIndices)) read(() => call(x, right)); // permanent memory is allocated once
    const before = liveMemory();
    for (const [name, call] of Object.entries(byIndices)) {
      read(() => call(x, right));
      const least = name === "takeAlongDim" ? -size : 0;
      expect(() => read(() => call(x, wrong)), name).toThrow(
        new RegExp(`\\[${name}\\] expected indices of ${least} to ${size - 1}, got ${size} at \\[0`),
      );
      expect(liveMemory(), name).toEqual(before);
    }
    const held = [x, right, wrong];
    for (const tensor of held) tensor.dispose();
    expect(held.filter(({ storage }) => !storage.isReleased)).toEqual([]);
  });

  test("backward of a tensor that is not a scalar, or has no graph, is an error", () => {
    // these graphs keep their tensors until they are collected, since no backward pass visits them
    const own = on(() => makeOperands(sizes[backend]));
    const isLeft = (name: string) =>
      (name === "floatPower" && backend === "metal") || // Metal has no float64
      (name.endsWith("Attention") && whyMissing(backend) !== undefined);
    const found = names.map((name) => on(() => tidy(() => backwardOf(name as OperationName, own)), !isLeft(name)));
    expect(found.flatMap(({ problems }) => problems)).toEqual([]);
    expect(found.filter(({ codes }) => codes.includes("notAScalar")).length).toBeGreaterThan(70);
    const giveTensors = names.filter((name) => !["allClose", "equal"].includes(name)); // these return a boolean
    expect(found.filter(({ codes }) => codes.includes("noGraph")).length).toBe(giveTensors.length);
  });

  test("after errors, valid calls are right, and disposing of the operands releases their memory", () => {
    expect(on(() => tidy(() => library.indexSelect(operands.vector, operands.places, { dim: 0 }).sum().item()))).toBe(
      operands.vector.size,
    );
    liveMemory(); // waits for work that uses the tensors
    if (backend === "metal") expect(metalContext().report({ clear: true }).findings).toEqual([]);
    const held = tensorsIn(operands);
    for (const tensor of held) tensor.dispose();
    expect(held.filter(({ storage }) => !storage.isReleased).map((tensor) => tensor.describe())).toEqual([]);
  });
});
