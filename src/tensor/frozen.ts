/**
 * Lists of sizes and of strides that nobody can change. JavaScriptCore keeps a frozen array in a table, whose elements
 * take about 20 ns each to read, and half a microsecond to make: so equal lists share one frozen array, and each has a
 * plain copy beside it, which never leaves this library.
 */

/** Returns what it is given, so that a subclass adds its private fields to an object that it did not make. */
class Given {
  constructor(object: object) {
    // biome-ignore lint/correctness/noConstructorReturn: the one way to give an array a private field
    return object;
  }
}

/** A frozen array with its plain copy. */
class FrozenList extends Given {
  readonly #plain: readonly number[];
  #rowMajor: readonly number[] | null = null;

  private constructor(plain: readonly number[]) {
    super([...plain]);
    this.#plain = plain;
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

  static rowMajorOf(list: FrozenList): readonly number[] {
    list.#rowMajor ??= freezeList(rowMajor(list.#plain));
    return list.#rowMajor;
  }
}

/** One list for each hash: a program with more of them than this makes some anew. */
const SLOTS = 2048;
const known = new Array<readonly number[] | null>(SLOTS).fill(null);

/** A frozen list of the same numbers: itself where it is one, else one that is shared. */
export function freezeList(list: readonly number[]): readonly number[] {
  if (FrozenList.has(list)) return list;
  let hash = list.length;
  for (let at = 0; at < list.length; at++) hash = Math.imul(hash ^ list[at]!, 0x9e3779b1);
  const slot = (hash ^ (hash >>> 15)) & (SLOTS - 1);
  const found = known[slot]!;
  if (found !== null && isEqual(plainList(found), list)) return found;
  const made = FrozenList.of(list);
  known[slot] = made;
  return made;
}

/** The same numbers, fast to read; for reading alone, and not to be handed out. */
export const plainList = (list: readonly number[]): readonly number[] =>
  FrozenList.has(list) ? FrozenList.plainOf(list) : list;

/** The row-major strides of a frozen shape, frozen and made once. */
export const frozenRowMajor = (shape: readonly number[]): readonly number[] =>
  FrozenList.rowMajorOf(shape as unknown as FrozenList);

/** Whether two plain lists have the same numbers. */
export function isEqual(a: readonly number[], b: readonly number[]): boolean {
  if (a.length !== b.length) return false;
  for (let at = 0; at < a.length; at++) if (a[at] !== b[at]) return false;
  return true;
}

/** The strides of a row-major tensor without gaps. */
export function rowMajor(shape: readonly number[]): number[] {
  const strides = new Array<number>(shape.length);
  let stride = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    strides[axis] = stride;
    stride *= Math.max(shape[axis]!, 1);
  }
  return strides;
}
