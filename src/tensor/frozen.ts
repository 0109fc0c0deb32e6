/**
 * Immutable lists of sizes and strides. In JavaScriptCore, reading an element of a frozen array takes about 20 ns, and
 * freezing an array half a microsecond. So equal lists share one frozen array, and each has an unfrozen copy for
 * internal use.
 */

/** Returns its argument from the constructor, so that a subclass can add private fields to an existing object. */
class Given {
  constructor(object: object) {
    // biome-ignore lint/correctness/noConstructorReturn: the one way to give an array a private field
    return object;
  }
}

/** A frozen array with its unfrozen copy. */
class FrozenList extends Given {
  static #made = 0;
  readonly #plain: readonly number[];
  /** Differs between lists, so that caches can find a slot without reading elements. */
  readonly #serial = FrozenList.#made++;
  #rowMajor: readonly number[] | null = null;

  private constructor(plain: readonly number[]) {
    super([...plain]);
    this.#plain = plain;
    Object.setPrototypeOf(this, fastMethods);
    Object.freeze(this);
  }

  static of(list: readonly number[]): readonly number[] {
    const plain = Array.from(list, (number) => number || 0); // not −0, which equals 0 and would be shared
    return new FrozenList(plain) as unknown as readonly number[];
  }

  static has(list: object): list is FrozenList {
    return #plain in list;
  }

  static plainOf(list: FrozenList): readonly number[] {
    return list.#plain;
  }

  static serialOf(list: FrozenList): number {
    return list.#serial;
  }

  static rowMajorOf(list: FrozenList): readonly number[] {
    list.#rowMajor ??= freezeList(rowMajor(list.#plain));
    return list.#rowMajor;
  }
}

type Each<Result> = (number: number, at: number, list: readonly number[]) => Result;
type Sizes = readonly number[];

/**
 * Methods of frozen lists that read the unfrozen copy, which takes a fifth of the time. They are in the lists'
 * prototype, which inherits from the prototype of arrays, so that a list is equal to an array of its numbers. Callbacks
 * get the frozen list.
 */
const methods = {
  at(this: Sizes, at: number) {
    return plainList(this).at(at);
  },
  every(this: Sizes, holds: Each<unknown>, self?: unknown) {
    const plain = plainList(this);
    for (let at = 0; at < plain.length; at++) if (!holds.call(self, plain[at], at, this)) return false;
    return true;
  },
  filter(this: Sizes, holds: Each<unknown>, self?: unknown) {
    const plain = plainList(this);
    const result: number[] = [];
    for (let at = 0; at < plain.length; at++) if (holds.call(self, plain[at], at, this)) result.push(plain[at]);
    return result;
  },
  includes(this: Sizes, number: number, from?: number) {
    return plainList(this).includes(number, from);
  },
  map(this: Sizes, compute: Each<unknown>, self?: unknown) {
    const plain = plainList(this);
    const result = new Array<unknown>(plain.length);
    for (let at = 0; at < plain.length; at++) result[at] = compute.call(self, plain[at], at, this);
    return result;
  },
  slice(this: Sizes, start?: number, end?: number) {
    return plainList(this).slice(start, end);
  },
  some(this: Sizes, holds: Each<unknown>, self?: unknown) {
    const plain = plainList(this);
    for (let at = 0; at < plain.length; at++) if (holds.call(self, plain[at], at, this)) return true;
    return false;
  },
  toSpliced(this: Sizes, ...change: [start: number, skipped: number, ...added: number[]]) {
    return plainList(this).toSpliced(...change);
  },
  with(this: Sizes, at: number, number: number) {
    return plainList(this).with(at, number);
  },
};
const fastMethods: object = Object.create(
  Array.prototype,
  Object.fromEntries(Object.entries(methods).map(([name, value]) => [name, { value, enumerable: false }])),
);

/** Number of cache slots, in pairs: two lists of one hash are kept. A third replaces the one used least recently. */
const SLOTS = 2 ** 11;
const known = new Array<readonly number[] | null>(SLOTS).fill(null);

/** Returns a frozen list of the same numbers: the list itself if it is frozen here, else a shared one. */
export function freezeList(list: readonly number[]): readonly number[] {
  if (FrozenList.has(list)) return list;
  let hash = Math.imul(list.length + 1, 0x9e3779b1); // not the length, which would give [] and [1] one hash
  for (let at = 0; at < list.length; at++) hash = Math.imul(hash ^ list[at], 0x9e3779b1);
  const slot = Math.imul(hash ^ (hash >>> 15), 0x85ebca6b) >>> 21; // as many bits as SLOTS has
  const found = known[slot]!;
  if (found !== null && isEqual(plainList(found), list)) return found;
  const other = known[slot ^ 1]!;
  known[slot ^ 1] = found;
  known[slot] = other !== null && isEqual(plainList(other), list) ? other : FrozenList.of(list);
  return known[slot];
}

/** Returns the unfrozen copy, which is fast to read. Don't modify it or return it to callers. */
export const plainList = (list: readonly number[]): readonly number[] =>
  FrozenList.has(list) ? FrozenList.plainOf(list) : list;

/** Returns a number that differs between frozen lists; 0 for other lists. */
export const serialOf = (list: readonly number[]): number => (FrozenList.has(list) ? FrozenList.serialOf(list) : 0);

/** Returns the row-major strides of a frozen shape, frozen and cached. */
export const frozenRowMajor = (shape: readonly number[]): readonly number[] =>
  FrozenList.rowMajorOf(shape as unknown as FrozenList);

/** Whether two unfrozen lists have the same numbers. */
export function isEqual(a: readonly number[], b: readonly number[]): boolean {
  if (a.length !== b.length) return false;
  for (let at = 0; at < a.length; at++) if (a[at] !== b[at]) return false;
  return true;
}

/** Returns the strides of a contiguous row-major tensor. */
export function rowMajor(shape: readonly number[]): number[] {
  const strides = new Array<number>(shape.length);
  let stride = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    strides[axis] = stride;
    stride *= Math.max(shape[axis], 1);
  }
  return strides;
}
