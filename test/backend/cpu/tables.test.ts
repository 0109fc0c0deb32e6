/** The tables of the cpu dylib, whose entries are made on first use. */
import { expect, test } from "bun:test";
import { nativeFunction, nativeOrdinals, nativeTables } from "../../../src/backend/cpu/tables.ts";

test("functions and names do not depend on earlier lookups, and are in the order of their ordinals", () => {
  const last = Object.keys(nativeTables().functions).at(-1)!;
  nativeFunction(last);
  nativeOrdinals("Unary");
  const { functions, names } = nativeTables();
  const entries = Object.entries(functions);
  expect(entries.length).toBeGreaterThan(100);
  expect(entries.map(([, { ordinal }]) => ordinal)).toEqual(entries.map((_, at) => at));
  for (const [name, entry] of entries) expect(nativeFunction(name)).toEqual(entry);
  expect(Object.keys(names).length).toBeGreaterThan(5);
  for (const [type, ordinals] of Object.entries(names)) expect(nativeOrdinals(type)).toEqual(ordinals);
});

test("an unknown function is undefined, and an unknown list is empty", () => {
  expect([nativeFunction("none"), nativeOrdinals("None")]).toEqual([undefined, {}]);
});
