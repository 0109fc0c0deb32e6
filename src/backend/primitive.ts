/**
 * Primitives: the operations that backends run. Each has an implementation for every backend, or the reason why there
 * is none.
 */
import type { Primitive } from "./backend.ts";

const defined = new Map<string, Primitive<never>>();

/** Registers a primitive by name, for overrides and reports. @throws {TypeError} if the name is already used. */
export function definePrimitive<Attributes = undefined>(primitive: Primitive<Attributes>): Primitive<Attributes> {
  const { name } = primitive;
  if (defined.has(name)) throw new TypeError(`the primitive ${name} is defined twice`);
  defined.set(name, primitive);
  return primitive;
}

/** The primitives of all loaded modules by name. */
export const primitives: ReadonlyMap<string, Primitive<never>> = defined;

let loadOthers = (): void => {};

/** @internal Sets the function that loads the modules that the package loads on first use. */
export function loadPrimitivesBy(load: () => void): void {
  loadOthers = load;
}

/** Returns all primitives by name, after loading their modules. */
export function allPrimitives(): ReadonlyMap<string, Primitive<never>> {
  loadOthers();
  return defined;
}

/** Returns the primitive of a name. @throws {TypeError} if its module is not loaded */
export function primitiveOf(name: string): Primitive<never> {
  const primitive = defined.get(name);
  if (!primitive) throw new TypeError(`there is no primitive ${name}`);
  return primitive;
}
