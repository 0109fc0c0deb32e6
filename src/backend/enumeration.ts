/**
 * Lists of names that kernels know by number. A list is written down once, here in TypeScript; Metal's kernels include
 * it as a generated header, and the cpu dylib exports its own list, in which a name's number is looked up.
 */

/** A list of names with a type's name, such as `Scan` with `cumsum` and `cumprod`. */
export interface Enumeration<Name extends string = string> {
  /** In PascalCase, as the C++ enumeration is called. */
  readonly type: string;
  readonly names: readonly Name[];
  /** A name's number in Metal's kernels. */
  ordinal(name: Name): number;
  /** What a kernel reads under `generated/<type>.h`. */
  readonly header: { readonly name: string; readonly text: string };
}

/** The names of an enumeration, as a union. */
export type NameOf<E> = E extends Enumeration<infer Name> ? Name : never;

const defined = new Map<string, Enumeration>();

/**
 * Defines an enumeration. The order of its names has no meaning.
 *
 * @example
 * const scans = enumeration("Scan", ["cumsum", "cumprod"]);
 * // a kernel: #include "generated/scan.h" … case SCAN_CUMSUM:
 * // C++: ORCHARD_NAMES(Scan, cumsum, cumprod)
 */
export function enumeration<const Name extends string>(type: string, names: readonly Name[]): Enumeration<Name> {
  if (defined.has(type)) throw new TypeError(`the enumeration ${type} is defined twice`);
  const ordinals = Object.fromEntries(names.map((name, index) => [name, index])) as Record<Name, number>;
  const result: Enumeration<Name> = {
    type,
    names,
    ordinal: (name) => ordinals[name],
    get header() {
      return headerOf(type, names);
    },
  };
  defined.set(type, result as unknown as Enumeration);
  return result;
}

/** Every enumeration that was defined. */
export const enumerations = (): readonly Enumeration[] => [...defined.values()];

const snakeCase = (name: string): string => name.replace(/(?<=[a-z0-9])[A-Z]/g, (letter) => `_${letter}`).toLowerCase();

function headerOf(type: string, names: readonly string[]): Enumeration["header"] {
  const constant = (name: string) => `${snakeCase(type)}_${snakeCase(name)}`.toUpperCase();
  const rows = names.map((name, index) => `    ${constant(name)} = ${index},`);
  return { name: `generated/${snakeCase(type)}.h`, text: `enum ${type} {\n${rows.join("\n")}\n};\n` };
}

/** A table with a row for each name. */
export const byName = <Name extends string, Value>(
  names: readonly Name[],
  make: (name: Name) => Value,
): Readonly<Record<Name, Value>> => Object.fromEntries(names.map((name) => [name, make(name)])) as Record<Name, Value>;
