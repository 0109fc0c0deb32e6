/** Damaged files end in typed errors: bytes of the standard's models are changed, cut, doubled and exchanged. */
import { expect, test } from "bun:test";
import { withBackend } from "../../src/backend/policy.ts";
import { OrchardError } from "../../src/core/errors.ts";
import { io } from "../../src/index.ts";
import type { Value } from "../../src/onnx/call.ts";
import { Random } from "../ops/samples.ts";
import { repeats } from "../support/repeats.ts";
import { readNodeCases } from "./cases.ts";

/** Loops and shapes from the file can ask for as much time or memory as they like; that is the author's to decide. */
const cases = readNodeCases().filter(({ name, model }) => model.length < 4000 && !/loop|range|scan/.test(name));

/** Mutations of bytes. Each keeps most of a file, so that the reader gets past the mutation. */
const changes: readonly ((bytes: Uint8Array, at: number, random: Random) => Uint8Array)[] = [
  (bytes, at, random) => bytes.with(at, Math.floor(random.next() * 256)),
  (bytes, at, random) => bytes.with(at, bytes[at]! ^ (1 << Math.floor(random.next() * 8))),
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
    const error = await withBackend("reference", () => loadAndRun(bytes, sets[0]!.inputs)).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    if (error !== undefined && !(error instanceof OrchardError)) throw error;
    outcomes[error ? "rejected" : "loaded"]++;
  }
  expect(outcomes.loaded).toBeGreaterThan(100);
  expect(outcomes.rejected).toBeGreaterThan(100);
});

/** Runs the model with the inputs of the sound one. */
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
