/** The JSON Schema Test Suite: what its schemas accept, and how many of them can be enforced. */
import { expect, test } from "bun:test";
import { schemaRules } from "../../../src/text/constraint/schema_rules.ts";
import { usually } from "../../support/repeats.ts";
import { SchemaForm } from "./schema_forms.ts";

interface Group {
  readonly name: string;
  readonly schema: object;
  readonly tests: readonly (readonly [value: unknown, isValid: boolean])[];
}
const groups: readonly Group[] = await Bun.file(
  new URL("../../fixtures/text/json_schema.json", import.meta.url),
).json();

/** Rejected schemas, and why; any other rejection is a defect. */
const refusals = [
  /a definition of this schema/, // a reference to another document, or a $dynamicRef with several targets
  /its negation can't be enforced/,
  /uniqueItems requires items with at most/,
  /\.format: expected/, // the format regex
  /expected minProperties to be at most/,
];

test("few schemas are rejected, each for a documented reason", async () => {
  let refused = 0;
  for (const { name, schema } of groups)
    try {
      schemaRules(JSON.stringify(schema));
    } catch (error) {
      refused++;
      expect([name, refusals.some((own) => own.test((error as Error).message)) ? "" : String(error)]).toEqual([
        name,
        "",
      ]);
    }
  expect(groups.length).toBe(357);
  expect(refused).toBeLessThanOrEqual(40);
  const page = await Bun.file(new URL("../../../docs/serving.md", import.meta.url)).text();
  expect(page.replace(/\s+/g, " ")).toContain(`${refused} of its ${groups.length} schemas`);
});

const isHeld = ({ schema }: Group): boolean => {
  try {
    return schemaRules(JSON.stringify(schema)) !== "";
  } catch {
    return false; // counted above
  }
};

test("no invalid value is accepted, and nearly all valid ones are", async () => {
  let [accepted, valid] = [0, 0];
  for (const group of usually(groups, (_, at) => at % 6 === 1).filter(isHeld)) {
    using form = await SchemaForm.of(group.schema);
    for (const [value, isValid] of group.tests) {
      const isAccepted = await form.accepts(JSON.stringify(value));
      if (!isValid) expect([group.name, value, isAccepted]).toEqual([group.name, value, false]);
      if (isValid) valid++;
      if (isValid && isAccepted) accepted++;
    }
  }
  // Other instances have properties or items that no schema names, or list them in a different order.
  expect(accepted / valid).toBeGreaterThan(0.9);
});
