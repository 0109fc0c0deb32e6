/**
 * A program: calls every operation on a backend with tensors that occupy no memory and have far more elements than
 * there is memory or time for. It prints a line when a call begins, and one when it ends.
 */
import type { BackendName } from "../../src/backend/names.ts";
import { withBackend } from "../../src/backend/policy.ts";
import { OrchardError } from "../../src/core/errors.ts";
import * as library from "../../src/index.ts";
import { Tensor } from "../../src/tensor/tensor.ts";
import { tidy } from "../../src/tensor/tidy.ts";
import { calls, makeOperands, type Operands, type OperationName, operationNames } from "../ops/calls.ts";

const backend = process.argv[2] as BackendName;
const functions = library as unknown as Readonly<Record<string, (...values: readonly unknown[]) => unknown>>;
const side = 2 ** 26;

/** Operands of the usual ranks and dtypes; each is a single element, expanded to the shape. */
function virtualOperands(vector: number): Operands {
  const shapes: Record<string, number[]> = {
    value: [],
    vector: [vector],
    other: [vector],
    places: [vector],
    single: [1, side],
    triples: [side ** 2 / 4, 3], // a shape must have fewer than 2^53 elements
    batch: [1, side, side],
    signal: [1, 1, side ** 2],
    picture: [1, 1, side, side],
    volume: [1, 1, side, side, 1],
  };
  const expanded = (name: string, one: Tensor): Tensor => {
    const shape = shapes[name] ?? [side, side];
    return library.expand(
      library.ones(
        shape.map(() => 1),
        { dtype: one.dtype },
      ),
      shape,
    );
  };
  const ones = Object.entries(makeOperands(1));
  return Object.fromEntries(ones.map(([name, one]) => [name, expanded(name, one)])) as Operands;
}

/**
 * Operations that accept the user's arrays, which are not virtual, or that read so little of a matrix that they may
 * compute.
 */
const exempt: ReadonlySet<string> = new Set(["fromArray", "tensor", "trace"]);
const matrices = virtualOperands(side);
const vectors = virtualOperands(side ** 2);

const hasMatrix = (value: unknown): boolean =>
  value instanceof Tensor ? value.size > side : Array.isArray(value) && value.some(hasMatrix);

const outcomeOf = (call: () => unknown): string =>
  tidy(() => {
    try {
      const result = call();
      const [first] = Array.isArray(result) ? result : [result];
      return first instanceof Tensor && first.size > side ? "view" : `VALUE ${String(first)}`;
    } catch (error) {
      return error instanceof OrchardError ? `${error.name} ${error.message}` : `UNTYPED ${error}`;
    }
  });

function report(name: string, call: () => unknown): void {
  console.log(JSON.stringify({ begins: name }));
  const { user, system } = process.cpuUsage();
  const outcome = outcomeOf(call);
  const used = process.cpuUsage({ user, system });
  console.log(JSON.stringify({ ends: name, outcome, seconds: (used.user + used.system) / 1e6 }));
}

/** A call with matrices; if it accepts none, with vectors of the same number of elements. */
const argumentsOf = (name: OperationName): readonly unknown[] => {
  const own = calls[name](matrices);
  return own.some(hasMatrix) ? own : calls[name](vectors);
};

const x = matrices.x;
const leaf = library.ones([1, 1], { requiresGrad: true });
const others: Readonly<Record<string, () => unknown>> = {
  dataSync: () => x.dataSync(),
  toArray: () => x.toArray(),
  item: () => x.item(),
  backward: () => library.backward(library.expand(leaf, [side, side]), x),
  "split into one each": () => library.split(x, 1),
  "chunk of many": () => library.chunk(x, side),
  "multinomial of many": () => library.multinomial(x, side),
  "topk of many": () => library.topk(x, side),
  "sum of all": () => library.sum(x),
  "norm of all": () => library.norm(x),
  "argmax of all": () => library.argmax(x),
  "softmax of columns": () => library.softmax(x, { dim: 0 }),
};

withBackend(backend, () => {
  for (const name of operationNames) if (!exempt.has(name)) report(name, () => functions[name](...argumentsOf(name)));
  for (const [name, call] of Object.entries(others)) report(name, call);
});
console.log(JSON.stringify({ text: String(x).slice(0, 20000) }));
