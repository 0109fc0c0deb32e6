/** Returns the value of a key, creating and storing it if there is none. */
export function getOrMake<Key, Value>(
  map: { get(key: Key): Value | undefined; set(key: Key, value: Value): unknown },
  key: Key,
  make: () => Value,
): Value {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}

/** Returns the last element of a list that is not empty. */
export const lastElement = <T>(list: ArrayLike<T>): T => list[list.length - 1];
