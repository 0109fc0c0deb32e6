/** Runs cases of nodes and graphs in every way in which a model computes, and compares the results. */
import { getBackend } from "../../src/backend/policy.ts";
import { io, Tensor } from "../../src/index.ts";
import type { Value } from "../../src/onnx/call.ts";
import { isStrings } from "../../src/onnx/strings.ts";
import type { NodeCase } from "./cases.ts";

/** How a model computes: node by node, while it makes a plan for repeated shapes, and by that plan. */
const RUNS = ["node by node", "while making a plan", "by a plan"];
/** On the cpu backend, a plan becomes a native program after two equal runs. */
const NATIVE_RUNS = [...RUNS, "by a plan again", "by a native program"];

/** Runs a case, and describes the first result that differs. @param source the model's bytes or path */
export async function firstDifference(
  { model: bytes, sets, rtol, atol }: NodeCase,
  source: string | Uint8Array = bytes,
): Promise<string | undefined> {
  const model = await io.loadOnnx(source);
  for (const { inputs, outputs } of sets) {
    const given = Object.fromEntries(model.inputs.map(({ name }, at) => [name, inputs[at]?.()]));
    const expected = outputs.map((make) => make());
    for (const how of getBackend() === "cpu" ? NATIVE_RUNS : RUNS) {
      const results = await model.run(given);
      for (const [at, { name }] of model.outputs.entries()) {
        const problem = differenceBetween(results[name], expected[at], rtol, atol);
        if (problem !== undefined) return `${name}, ${how}: ${problem}`;
      }
    }
  }
  return undefined;
}

/** The standard's tolerances hold for float32; in half precision, results may differ in their last place. */
const lastPlaces: Readonly<Record<string, number>> = { float16: 2 ** -9, bfloat16: 2 ** -6 };
/** Expected values near 0 are rounding errors of the standard's own computation in float32. */
const LEAST_ATOL = 2e-6;

function differenceBetween(actual: Value, expected: Value, rtol: number, atol: number): string | undefined {
  if (expected === undefined || actual === undefined)
    return actual === expected ? undefined : `expected ${describeValue(expected)}, got ${describeValue(actual)}`;
  if (isStrings(expected)) return Bun.deepEquals(actual, expected) ? undefined : `expected ${describeValue(expected)}`;
  if (expected instanceof Map) {
    const isNear = ([key, value]: [string | number, number]) =>
      actual instanceof Map && Math.abs(actual.get(key) - value) <= LEAST_ATOL + rtol * Math.abs(value);
    return [...expected].every(isNear) ? undefined : `expected ${[...expected]}, got ${describeValue(actual)}`;
  }
  if (!(expected instanceof Tensor)) {
    if (!isSequence(expected) || !isSequence(actual) || actual.length !== expected.length)
      return `expected ${describeValue(expected)}`;
    return expected.map((each, at) => differenceBetween(actual[at], each, rtol, atol)).find(Boolean);
  }
  if (!(actual instanceof Tensor)) return `expected ${expected.describe()}, got a sequence`;
  if (actual.describe() !== expected.describe()) return `expected ${expected.describe()}, got ${actual.describe()}`;
  const [x, y] = [actual, expected].map((each) => each.dataSync() as ArrayLike<number | bigint>);
  const relative = Math.max(rtol, lastPlaces[actual.dtype] ?? 0);
  for (let at = 0; at < y.length; at++) {
    const [got, wanted] = [Number(x[at]), Number(y[at])];
    if (got === wanted || Object.is(got, wanted)) continue;
    if (!(Math.abs(got - wanted) <= Math.max(atol, LEAST_ATOL) + relative * Math.abs(wanted)))
      return `element ${at}: expected ${wanted}, got ${got}`;
  }
  return undefined;
}

const isSequence = (value: Value): value is readonly Value[] => Array.isArray(value);

const describeValue = (value: Value): string =>
  value instanceof Tensor ? value.describe() : value instanceof Map ? `${[...value]}` : JSON.stringify(value ?? null);
