import { Tensor } from "../tensor/tensor.ts";
import { Module } from "./module.ts";

/** @internal A place in a module that holds a tensor or another module: a property, or an element of an array or map in one. */
export interface Slot<Value extends Tensor | Module = Tensor | Module> {
  /** From the module on, with a dot for each step: `blocks.0.attention`. */
  readonly name: string;
  readonly value: Value;
  /** Puts another tensor or module into its place. */
  replace(value: Value): void;
}

/** @internal The places in a module's own properties, not in those of its parts, in the order in which they were declared. */
export function* slotsOf(module: Module): Generator<Slot> {
  for (const [name, value] of Object.entries(module))
    yield* slotsIn(name, value, (next) => void Reflect.set(module, name, next));
}

/** Arrays and maps are looked into, as deep as they are nested; any other value is none of a module's state. */
function* slotsIn(name: string, value: unknown, replace: (next: unknown) => void): Generator<Slot> {
  if (value instanceof Tensor || value instanceof Module) yield { name, value, replace };
  else if (Array.isArray(value)) {
    for (const [index, item] of value.entries())
      yield* slotsIn(`${name}.${index}`, item, (next) => void value.splice(index, 1, next));
  } else if (value instanceof Map) {
    for (const [key, item] of value)
      yield* slotsIn(`${name}.${String(key)}`, item, (next) => void value.set(key, next));
  }
}

/** @internal The tensors among them. Results of operations are no state, and left out. */
export function* ownTensorsOf(module: Module): Generator<Slot<Tensor>> {
  for (const { name, value, replace } of slotsOf(module))
    if (value instanceof Tensor && value.isLeaf) yield { name, value, replace };
}

/** @internal A module and all parts of it, each once, under the first of its names; the module's own name is empty. */
export function modulesIn(module: Module): Map<string, Module> {
  const named = new Map<string, Module>();
  const seen = new Set<Module>();
  const visit = (name: string, part: Module): void => {
    if (seen.has(part)) return;
    seen.add(part);
    named.set(name, part);
    for (const slot of slotsOf(part)) if (slot.value instanceof Module) visit(join(name, slot.name), slot.value);
  };
  visit("", module);
  return named;
}

/** @internal Every place of a tensor in a module and its parts, by its whole name: one that is in several places comes up in each. */
export function* tensorSlotsIn(module: Module, prefix = "", within: readonly Module[] = []): Generator<Slot<Tensor>> {
  if (within.includes(module)) return;
  for (const { name, value, replace } of slotsOf(module)) {
    if (value instanceof Module) yield* tensorSlotsIn(value, join(prefix, name), [...within, module]);
    else if (value.isLeaf) yield { name: join(prefix, name), value, replace };
  }
}

const join = (prefix: string, name: string): string => (prefix ? `${prefix}.${name}` : name);
