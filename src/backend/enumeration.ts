/**
 * Lists of names that kernels identify by number. A list is defined once in TypeScript. Metal's kernels include it as a
 * generated header; the cpu dylib exports its list, in which the number of a name is looked up.
 */
import { recordOf } from "../core/records.ts";
import { snakeCase } from "./fields.ts";

/** A named list of names, such as `Scan` with `cumsum` and `cumprod`. */
export interface Enumeration<Name extends string = string> {
  /** The name of the C++ enumeration, in PascalCase. */
  readonly type: string;
  readonly names: readonly Name[];
  /** The groups of names; empty if there is one list. */
  readonly groups: Readonly<Record<string, readonly Name[]>>;
  /** Returns a name's number in Metal's kernels. */
  ordinal(name: Name): number;
  /** The generated header `generated/<type>.h` of Metal's kernels. */
  readonly header: Header;
  /** The generated header of the cpu dylib, which also has the names as texts. */
  readonly cpuHeader: Header;
}

/** A generated header. */
export interface Header {
  readonly name: string;
  readonly text: string;
}

/** The names of an enumeration, as a union. */
export type NameOf<E> = E extends Enumeration<infer Name> ? Name : never;

const defined = new Map<string, Enumeration>();

/**
 * Defines an enumeration from a list of names or from groups, which are lists of names that are computed in the same
 * way, such as on integers. A name may be in several groups. The order of names has no meaning. Metal's kernels get a
 * macro for all names and one for each group, which expands to a row per name. A kernel writes its `switch` with it, so
 * that a name without a formula does not compile.
 *
 * @example
 * const scans = enumeration("Scan", ["cumsum", "cumprod"]);
 * // a kernel: #include "generated/scan.h" … switch (operation) { SCAN_NAMES(ORCHARD_CASE, Step, of(x)) }
 * // C++: #include "../../.build/generated/scan.h" …  switch (operation) { case Scan::cumsum: … }
 */
export function enumeration<const Name extends string>(
  type: string,
  members: readonly Name[] | Readonly<Record<string, readonly Name[]>>,
): Enumeration<Name> {
  if (defined.has(type)) throw new TypeError(`the enumeration ${type} is defined twice`);
  const groups: Enumeration<Name>["groups"] = isList(members) ? {} : members;
  const names = isList(members) ? members : [...new Set(Object.values(members).flat())];
  let ordinals: Readonly<Record<Name, number>> | undefined;
  let header: Header | undefined;
  const result: Enumeration<Name> = {
    type,
    names,
    groups,
    ordinal(name) {
      ordinals ??= Object.fromEntries(names.map((each, index) => [each, index])) as Record<Name, number>;
      return ordinals[name];
    },
    get header() {
      header ??= headerOf(type, { names, ...groups });
      return header;
    },
    get cpuHeader() {
      return cpuHeaderOf(type, result.header, names);
    },
  };
  defined.set(type, result);
  return result;
}

const isList = <Name>(
  members: readonly Name[] | Readonly<Record<string, readonly Name[]>>,
): members is readonly Name[] => Array.isArray(members);

/** Returns all defined enumerations. */
export const enumerations = (): readonly Enumeration[] => [...defined.values()];

/**
 * A case of a switch over names, which calls a function such as `of(x)` of a struct. The struct is a template, declared
 * for all names and specialized for each.
 */
const caseMacro = "#define ORCHARD_CASE(name, Of, call) \\\n    case name: return Of<name>::call;\n";

type Lists = { readonly names: readonly string[] } & Readonly<Record<string, readonly string[]>>;

function headerOf(type: string, lists: Lists): Header {
  const constant = (name: string) => `${snakeCase(type)}_${snakeCase(name)}`.toUpperCase();
  const rows = lists.names.map((name, index) => `    ${constant(name)} = ${index},\n`);
  const macros = Object.entries(lists).map(([list, names]) => {
    const calls = names.map((name) => ` \\\n    ROW(${constant(name)}, __VA_ARGS__)`);
    return `#define ${constant(list)}(ROW, ...)${calls.join("")}\n`;
  });
  const text = `enum ${type} {\n${rows.join("")}};\n${caseMacro}${macros.join("")}`;
  return { name: `generated/${snakeCase(type)}.h`, text };
}

/** The C++ header of an enumeration, with the TypeScript name of each constant. */
function cpuHeaderOf(type: string, { name, text }: Header, names: readonly string[]): Header {
  const list = names.map((each) => `"${each}"`).join(", ");
  const nameOf = `constexpr const char *names_of(${type} name) {\n  constexpr const char *names[] = {${list}};\n`;
  return { name, text: `#pragma once\n\nnamespace orchard {\n\n${text}\n${nameOf}  return names[name];\n}\n\n}\n` };
}

/** Creates a table with an entry for each name. */
export const byName = <Name extends string, Value>(
  names: readonly Name[],
  make: (name: Name) => Value,
): Readonly<Record<Name, Value>> => recordOf(names, (name) => make(name));
