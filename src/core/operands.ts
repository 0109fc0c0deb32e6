/**
 * The operands of a primitive, which fixes their number. The types of the first eight exclude undefined, also under
 * `noUncheckedIndexedAccess`.
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
