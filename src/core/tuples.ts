/** Lists whose length the caller knows, as tuples: `const [rows, columns] = tupleOf(x.shape, 2)`. */

interface Tuples<T> {
  readonly 1: [T];
  readonly 2: [T, T];
  readonly 3: [T, T, T];
  readonly 4: [T, T, T, T];
  readonly 5: [T, T, T, T, T];
  readonly 6: [T, T, T, T, T, T];
  readonly 7: [T, T, T, T, T, T, T];
  readonly 8: [T, T, T, T, T, T, T, T];
}

/**
 * Returns the list itself, typed by the number of elements that the caller reads. It may be longer.
 *
 * @throws Error if it is shorter: a fault of the caller, not of a user's arguments
 */
export function tupleOf<T, N extends keyof Tuples<T>>(list: readonly T[], count: N): Tuples<T>[N] {
  if (list.length < count) throw new Error(`expected ${count} elements, got ${list.length}`);
  return list as Tuples<T>[N];
}
