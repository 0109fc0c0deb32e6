/**
 * The node tests of the ONNX standard, drawn nodes of com.microsoft and of all versions of the standard, and models of
 * scikit-learn, with onnxruntime's results, on every backend: the results agree, or the difference is named.
 */
import { describe, expect, test } from "bun:test";
import type { BackendName } from "../../src/backend/names.ts";
import { withBackend } from "../../src/backend/policy.ts";
import { tested } from "../ops/run.ts";
import { usually } from "../support/repeats.ts";
import { type NodeCase, readNodeCases } from "./cases.ts";
import { firstDifference } from "./compare.ts";
import { type Difference, differences } from "./differences.ts";

const cases = [
  ...readNodeCases(),
  ...readNodeCases("contrib"),
  ...readNodeCases("versions"),
  ...readNodeCases("ml"),
  ...readNodeCases("graphs"),
];
const differenceOf = (name: string): Difference | undefined => differences.find(({ applies }) => applies(name));

/**
 * A usual run has every case on cpu, every third on `reference`, and every tenth on metal, whose software device is
 * slow. Importing a node is the same for all backends, whose operations have separate tests.
 */
const usualPeriods: Readonly<Record<BackendName, number>> = { cpu: 1, reference: 3, metal: 10 };

const casesFor = (backend: BackendName): readonly NodeCase[] =>
  usually(cases, (_, at) => (at + 1) % usualPeriods[backend] === 0);

/** Operators of one name are one test. */
const familyOf = (name: string): string => /^(?:test_)?([a-z0-9]+)/.exec(name)?.[1] ?? name;

for (const backend of tested)
  describe(`node tests of the standard pass on ${backend}`, () => {
    for (const [family, list] of Map.groupBy(casesFor(backend), ({ name }) => familyOf(name)))
      test(`${family}: ${list.length} cases have the standard's results`, async () => {
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

test("every difference applies to a case", () => {
  const used = new Set(cases.map(({ name }) => differenceOf(name)));
  expect(differences.filter((difference) => !used.has(difference))).toEqual([]);
});
