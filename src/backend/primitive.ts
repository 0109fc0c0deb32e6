/**
 * Primitives: the operations that backends run. Each has an implementation for every backend, or the reason why there
 * is none.
 */
import type { Primitive } from "./backend.ts";

const defined = new Map<string, Primitive<never>>();
const added: Primitive<never>[] = [];
/** The number of added primitives that are in the map. */
let counted = 0;

/**
 * Registers a primitive by name, for overrides and reports. An import calls this hundreds of times, so it does little:
 * JavaScriptCore would compile a longer function, in several milliseconds. Names are compared at the first look-up.
 */
export function definePrimitive<Attributes = undefined>(primitive: Primitive<Attributes>): Primitive<Attributes> {
  added.push(primitive);
  return primitive;
}

/** Returns the primitives of all loaded modules by name. @throws {TypeError} if two have the same name */
export function loadedPrimitives(): ReadonlyMap<string, Primitive<never>> {
  for (; counted < added.length; counted++) {
    const { name } = added[counted];
    if (defined.has(name)) throw new TypeError(`the primitive ${name} is defined twice`);
    defined.set(name, added[counted]);
  }
  return defined;
}

let loadOthers = (): void => {};

/** @internal Sets the function that loads the modules that the package loads on first use. */
export function loadPrimitivesBy(load: () => void): void {
  loadOthers = load;
}

/** Returns all primitives by name, after loading their modules. */
export function allPrimitives(): ReadonlyMap<string, Primitive<never>> {
  loadOthers();
  return loadedPrimitives();
}

/** Returns the primitive of a name. @throws {TypeError} if its module is not loaded */
export function primitiveOf(name: string): Primitive<never> {
  const primitive = loadedPrimitives().get(name);
  if (!primitive) throw new TypeError(`there is no primitive ${name}`);
  return primitive;
}
