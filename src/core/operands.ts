/**
 * The operands of a call whose number is fixed by what is called, such as the tensors of a primitive. The first eight
 * have a type without undefined, under `noUncheckedIndexedAccess` too.
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
