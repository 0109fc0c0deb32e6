/**
 * The operands of a primitive. A primitive has a fixed number of operands, so the types of the first eight exclude
 * undefined also in programs that set `noUncheckedIndexedAccess`.
 */
export interface Operands<T> extends ReadonlyArray<T> {
  readonly 0: T;
  readonly 1: T;
  readonly 2: T;
  readonly 3: T;
  readonly 4: T;
  readonly 5: T;
  readonly 6: T;
  readonly 7: T;
}
