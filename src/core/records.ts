/** `Object.keys`, `entries` and `fromEntries` with typed names, for records that have only the names of their type. */

/** Returns the names of a record. */
export const keysOf = <T extends object>(record: T): (keyof T & string)[] =>
  Object.keys(record) as (keyof T & string)[];

/** Returns the names of a record with their values. */
export const entriesOf = <T extends object>(record: T): [keyof T & string, T[keyof T & string]][] =>
  keysOf(record).map((name) => [name, record[name]]);

/** Returns a record with a value for each name. */
export function recordOf<Name extends string, Value>(
  names: readonly Name[],
  make: (name: Name, at: number) => Value,
): Record<Name, Value> {
  return Object.fromEntries(names.map((name, at) => [name, make(name, at)])) as Record<Name, Value>;
}

/** Returns the members of a record that are not undefined. */
export const definedOf = <T extends object>(record: T): Partial<T> =>
  Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined)) as Partial<T>;

/** Whether a record itself, not its prototype, has a property of this name. */
export const hasName = <T extends object>(record: T, name: PropertyKey): name is keyof T & string =>
  Object.hasOwn(record, name);
