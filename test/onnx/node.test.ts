/**
 * The node tests of the ONNX standard, drawn nodes of com.microsoft and of all versions of the standard, and models of
 * scikit-learn, with onnxruntime's results, on every backend: the results agree, or the difference is named.
 */
import { describe, expect, test } from "bun:test";
import type { BackendName } from "../../src/backend/names.ts";
import { getBackend, withBackend } from "../../src/backend/policy.ts";
import { io, Tensor } from "../../src/index.ts";
import type { Value } from "../../src/onnx/call.ts";
import { isStrings } from "../../src/onnx/strings.ts";
import { tested } from "../ops/run.ts";
import { isExhaustive } from "../support/repeats.ts";
import { type NodeCase, readNodeCases } from "./cases.ts";
import { type Difference, differences } from "./differences.ts";

const cases = [...readNodeCases(), ...readNodeCases("contrib"), ...readNodeCases("versions"), ...readNodeCases("ml")];
const differenceOf = (name: string): Difference | undefined => differences.find(({ applies }) => applies(name));

/** The software device is slow: a usual run has every tenth case. */
const casesFor = (backend: BackendName): readonly NodeCase[] =>
  backend === "metal" && !isExhaustive ? cases.filter((_, at) => at % 10 === 3) : cases;

/** Operators of one name are one test. */
const familyOf = (name: string): string => /^(?:test_)?([a-z0-9]+)/.exec(name)?.[1] ?? name;

for (const backend of tested)
  describe(`node tests of the standard on ${backend}`, () => {
    for (const [family, list] of Map.groupBy(casesFor(backend), ({ name }) => familyOf(name)))
      test(`${family}: ${list.length}`, async () => {
        const problems: string[] = [];
        for (const each of list) {
          const problem = await problemOf(each, backend);
          if (problem !== undefined) problems.push(`${each.name}: ${problem}`);
        }
        expect(problems).toEqual([]);
      });
  });

async function problemOf(item: NodeCase, backend: BackendName): Promise<string | undefined> {
  const difference = differenceOf(item.name);
  try {
    const wrong = await withBackend(backend, () => firstDifference(item));
    return difference?.error ? "it passed, although a difference says that it fails" : difference ? undefined : wrong;
  } catch (error) {
    const { message } = error as Error;
    return difference?.error?.test(message) ? undefined : message;
  }
}

/** How a model computes: node by node, while it makes a plan for shapes that occur again, and by this plan. */
const RUNS = ["node by node", "while making a plan", "by a plan"];
/** On the cpu backend, a plan becomes a native program after two equal runs. */
const NATIVE_RUNS = [...RUNS, "by a plan again", "by a native program"];

/** Runs a case, and describes the first result that differs. */
async function firstDifference({ model: bytes, sets, rtol, atol }: NodeCase): Promise<string | undefined> {
  const model = await io.loadOnnx(bytes);
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
  const [x, y] = [actual, expected].map((each) => Array.from(each.dataSync() as ArrayLike<number>, Number));
  const relative = Math.max(rtol, lastPlaces[actual.dtype] ?? 0);
  const at = x!.findIndex(
    (value, index) =>
      !(Object.is(value, y![index]) || value === y![index]) &&
      !(Math.abs(value - y![index]!) <= Math.max(atol, LEAST_ATOL) + relative * Math.abs(y![index]!)),
  );
  return at < 0 ? undefined : `element ${at}: expected ${y![at]}, got ${x![at]}`;
}

const isSequence = (value: Value): value is readonly Value[] => Array.isArray(value);

const describeValue = (value: Value): string =>
  value instanceof Tensor ? value.describe() : value instanceof Map ? `${[...value]}` : JSON.stringify(value ?? null);

test("every difference applies to a case", () => {
  const used = new Set(cases.map(({ name }) => differenceOf(name)));
  expect(differences.filter((difference) => !used.has(difference))).toEqual([]);
});
