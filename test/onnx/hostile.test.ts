/** Damaged files end in typed errors: bytes of the standard's models are changed, cut, doubled and exchanged. */
import { expect, test } from "bun:test";
import { withBackend } from "../../src/backend/policy.ts";
import { OrchardError } from "../../src/core/errors.ts";
import { io, ones } from "../../src/index.ts";
import type { Value } from "../../src/onnx/call.ts";
import { Random } from "../ops/samples.ts";
import { repeats } from "../support/repeats.ts";
import { readNodeCases } from "./cases.ts";
import { mutated } from "./mutate.ts";
import { graph, message, model, tensorInput, text, varint } from "./write.ts";

/** Loops and shapes from the file may require any amount of time or memory. The file's author chooses them. */
const cases = readNodeCases().filter(({ name, model }) => model.length < 4000 && !/loop|range|scan/.test(name));

/** Mutations of bytes. Each keeps most of a file, so that the reader gets past the mutation. */
const changes: readonly ((bytes: Uint8Array, at: number, random: Random) => Uint8Array)[] = [
  (bytes, at, random) => bytes.with(at, Math.floor(random.next() * 256)),
  (bytes, at, random) => bytes.with(at, bytes[at] ^ (1 << Math.floor(random.next() * 8))),
  (bytes, at) => bytes.slice(0, at),
  (bytes, at) => Uint8Array.from([...bytes.subarray(0, at), ...bytes.subarray(at + 1)]),
  (bytes, at) => Uint8Array.from([...bytes.subarray(0, at), 0xff, ...bytes.subarray(at)]),
  (bytes, at) => Uint8Array.from([...bytes.subarray(0, at), ...bytes.subarray(0, at), ...bytes.subarray(at)]),
];

test("damaged models load, or are rejected with a typed error, in seconds", async () => {
  const random = new Random(5);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random.next() * list.length)]!;
  const outcomes = { loaded: 0, rejected: 0 };
  for (let at = 0; at < repeats({ usual: 1500, all: 20_000 }); at++) {
    const { model: original, sets } = pick(cases);
    let bytes: Uint8Array = new Uint8Array(original);
    for (let change = 0; change <= at % 3 && bytes.length > 0; change++)
      bytes = pick(changes)(bytes, Math.floor(random.next() * bytes.length), random);
    const error = await withBackend("reference", () => loadAndRun(bytes, sets[0].inputs)).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    if (error !== undefined && !(error instanceof OrchardError)) throw error;
    outcomes[error ? "rejected" : "loaded"]++;
  }
  expect(outcomes.loaded).toBeGreaterThan(100);
  expect(outcomes.rejected).toBeGreaterThan(100);
});

test("files whose fields were changed load, or are rejected with a typed error", async () => {
  const small = [...readNodeCases(), ...readNodeCases("contrib"), ...readNodeCases("ml")].filter(
    ({ name, model }) => model.length < 6000 && !/loop|range|scan/.test(name),
  );
  const outcomes = { loaded: 0, rejected: 0 };
  for (let at = 0; at < repeats({ usual: 600, all: 20_000 }); at++) {
    const random = new Random(8e6 + at);
    const { name, model: original, sets } = small[Math.floor(random.next() * small.length)];
    const bytes = mutated(new Uint8Array(original), random);
    const error = await withBackend("cpu", () => loadAndRun(bytes, sets[0].inputs)).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    if (error !== undefined && !(error instanceof OrchardError)) throw new Error(`${at}, ${name}`, { cause: error });
    outcomes[error ? "rejected" : "loaded"]++;
  }
  expect(outcomes.loaded).toBeGreaterThan(100);
  expect(outcomes.rejected).toBeGreaterThan(100);
});

test("padding that would exhaust memory is rejected", async () => {
  const pads = message(5, [text(1, "pads"), ...[2 ** 31 - 1, 0, 0, 0].map((each) => varint(8, each)), varint(20, 7)]);
  const kernel = message(5, [text(1, "kernel_shape"), varint(8, 2), varint(8, 2), varint(20, 7)]);
  const pool = message(1, [text(1, "x"), text(2, "y"), text(4, "AveragePool"), pads, kernel]);
  const described = { inputs: [tensorInput("x", [1, 1, 4, 4])], outputs: [tensorInput("y", [1, 1, "a", "b"])] };
  const loaded = await io.loadOnnx(model(graph({ nodes: [pool], initializers: [], ...described })));
  await expect(loaded.run({ x: ones([1, 1, 4, 4]) })).rejects.toThrow("is too large for [4,4]");
});

test("lists that would take minutes are rejected", async () => {
  const amounts = message(5, [text(1, "pads"), ...[1, 2 ** 31, 0, 1].map((each) => varint(8, each)), varint(20, 7)]);
  const mode = message(5, [text(1, "mode"), text(4, "reflect"), varint(20, 3)]);
  const node = message(1, [text(1, "x"), text(2, "y"), text(4, "Pad"), amounts, mode]);
  const described = { inputs: [tensorInput("x", [3, 4])], outputs: [tensorInput("y", ["a", "b"])] };
  const bytes = Buffer.concat([
    varint(1, 8),
    graph({ nodes: [node], initializers: [], ...described }),
    message(8, [text(1, ""), varint(2, 10)]),
  ]);
  const loaded = await io.loadOnnx(bytes);
  await expect(loaded.run({ x: ones([3, 4]) })).rejects.toThrow("is too long; at most");
});

/** Runs the damaged model with the inputs of the original. */
async function loadAndRun(bytes: Uint8Array, inputs: readonly (() => Value)[]): Promise<void> {
  const model = await io.loadOnnx(bytes);
  const values = inputs.map((read) => {
    try {
      return read();
    } catch {
      return undefined; // strings and other elements without a dtype
    }
  });
  await model.run(Object.fromEntries(model.inputs.map(({ name }, at) => [name, values[at]])));
}
