import { expect, test } from "bun:test";
import { join } from "node:path";
import type { Primitive } from "../../src/backend/backend.ts";
import { packageRoot } from "../../src/core/paths.ts";

/** A copy of the module, whose primitives no other test sees. */
async function fresh(copy: string): Promise<typeof import("../../src/backend/primitive.ts")> {
  return await import(`${join(packageRoot, "src", "backend", "primitive.ts")}?${copy}`);
}

const implementations = { metal: "none", cpu: "none", reference: "none" };
const named = (name: string): Primitive => ({ name, family: "copy", implementations }) as unknown as Primitive;

test("primitives are found by name, those that are defined after a look-up too", async () => {
  const { definePrimitive, loadedPrimitives, primitiveOf } = await fresh("found");
  const [first, second] = [definePrimitive(named("first")), named("second")];
  expect(primitiveOf("first") as unknown).toBe(first);
  expect(() => primitiveOf("second")).toThrow("there is no primitive second");
  definePrimitive(second);
  expect([...loadedPrimitives().keys()]).toEqual(["first", "second"]);
});

test("a name that is used twice is an error of every look-up", async () => {
  const { definePrimitive, loadedPrimitives, primitiveOf } = await fresh("twice");
  for (const name of ["one", "two", "one"]) definePrimitive(named(name));
  for (const look of [loadedPrimitives, () => primitiveOf("two")])
    expect(look).toThrow("the primitive one is defined twice");
});
