/** Checks programs of untrusted files: every index, and every number of bytes that native code trusts. */
import type { NativeFunction } from "../../backend/cpu/tables.ts";
import { bytesOf, isDType } from "../../tensor/dtype.ts";
import { MAX_RANK } from "../../tensor/shape.ts";
import type { Tree } from "../tree.ts";
import type { SavedJson, SavedLayout, SavedLeaf } from "./format.ts";

/** Throws the error of a file. */
export type Fail = (message: string) => never;

const MOST_DEPTH = 64;

export const isWhole = (value: unknown, below = Number.MAX_SAFE_INTEGER): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) < below;

const isList = (value: unknown): value is readonly unknown[] => Array.isArray(value);

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Returns the first and the last element of a layout, from the start of its memory; null if it has none. */
export function extentOf({ shape, strides, offset }: SavedLayout): { first: number; last: number } | null {
  let [first, last] = [offset, offset];
  for (const [axis, size] of shape.entries()) {
    if (size === 0) return null;
    const span = (size - 1) * strides[axis];
    if (span < 0) first += span;
    else last += span;
  }
  return { first, last };
}

/** Returns the number of bytes from the first to the last element of an argument. */
export function inputBytes(layout: SavedLayout): number {
  const extent = extentOf(layout);
  return extent ? (extent.last - extent.first + 1) * bytesOf(layout.dtype) : 0;
}

/** Checks a layout. @param isFree whether its offset may be negative, as in a view of an argument */
export function checkLayout(value: unknown, fail: Fail, isFree = false): SavedLayout {
  if (!isRecord(value)) return fail("a layout is not an object");
  const { dtype, shape, strides, offset } = value;
  if (!isDType(dtype)) return fail("a tensor has an unknown dtype");
  if (!isList(shape) || shape.length > MAX_RANK || !shape.every((size) => isWhole(size, 2 ** 40)))
    return fail("a shape is not a list of sizes");
  if (!isList(strides) || strides.length !== shape.length || !strides.every(isStep))
    return fail("strides are not a list of one number per axis");
  if (!(isFree ? isStep(offset) : isWhole(offset, 2 ** 40))) return fail("an offset is not a number of elements");
  const layout = value as SavedLayout;
  const extent = extentOf(layout);
  if (extent && !(Math.abs(extent.first) < 2 ** 45 && Math.abs(extent.last) < 2 ** 45))
    return fail("a tensor is too large");
  return layout;
}

const isStep = (value: unknown): boolean => Number.isSafeInteger(value) && Math.abs(value as number) < 2 ** 40;

/** Checks a tree, and converts its leaves. */
export function checkTree<Leaf>(value: unknown, leafOf: (leaf: unknown) => Leaf, fail: Fail, depth = 0): Tree<Leaf> {
  if (!isRecord(value) || depth > MOST_DEPTH) return fail("expected a tree of arguments or results");
  const { kind, items, keys } = value;
  if (kind === "leaf") return { kind, leaf: leafOf(value["leaf"]) };
  if (kind === "value" && typeof value["value"] === "string") return { kind, value: value["value"] };
  if (!isList(items)) return fail("expected a list of arguments or results");
  const children = items.map((item) => checkTree(item, leafOf, fail, depth + 1));
  if (kind === "array") return { kind, items: children };
  if (
    kind !== "object" ||
    !isList(keys) ||
    keys.length !== items.length ||
    !keys.every((key) => typeof key === "string")
  )
    return fail("expected an object of arguments or results");
  return { kind, keys: keys, items: children };
}

/** The bytes of memory by kind. */
export interface Sizes {
  readonly inputs: readonly number[];
  readonly state: readonly number[];
  readonly constants: readonly number[];
}

/** Checks a result's tensor: that its elements are in its memory. */
export function checkLeaf(
  value: unknown,
  inputs: readonly SavedLayout[],
  json: Pick<SavedJson, "results">,
  sizes: Sizes,
  fail: Fail,
): SavedLeaf {
  if (!isRecord(value)) return fail("a result is not an object");
  const { from, index } = value;
  const layout = checkLayout(value["layout"], fail, from === "input");
  const memory =
    from === "input"
      ? sizes.inputs
      : from === "state"
        ? sizes.state
        : from === "result"
          ? json.results.map(({ bytes }) => bytes)
          : fail("a result has no memory");
  if (!isWhole(index, memory.length)) return fail("a result has no memory");
  const extent = extentOf(layout);
  const size = bytesOf(layout.dtype);
  if (extent && (extent.first < 0 || (extent.last + 1) * size > memory[index]))
    return fail("a result is outside of its memory");
  if (from === "input" && (bytesOf(inputs[index].dtype) % size !== 0 || typeof value["isSame"] !== "boolean"))
    return fail("a result is no view of an argument");
  return value as SavedLeaf;
}

/** Checks the JSON except its trees. */
export function checkJson(value: unknown, doubles: number, fail: Fail): SavedJson {
  if (!isRecord(value)) return fail("its JSON is not an object");
  const { slots, results, draws } = value;
  for (const key of ["arenaBytes", "state", "constants", "advance"])
    if (!isWhole(value[key], 2 ** 48)) return fail(`${key} is not a whole number`);
  if (!isList(slots) || !slots.every(isRecord)) return fail("slots is not a list of objects");
  if (!isList(results) || !results.every((each) => isRecord(each) && isWhole(each["bytes"], 2 ** 48)))
    return fail("results is not a list of sizes");
  const isPlace = (place: unknown) => isWhole(place, doubles - 1);
  const isDraw = (draw: unknown) =>
    isRecord(draw) && isWhole(draw["ahead"]) && isList(draw["places"]) && draw["places"].every(isPlace);
  if (!isList(draws) || !draws.every(isDraw)) return fail("draws is not a list of random numbers");
  return value as unknown as SavedJson;
}

/** Returns the bytes of each slot; −1 for an unused one. */
export function slotBytes({ slots, arenaBytes, results }: SavedJson, sizes: Sizes, fail: Fail): number[] {
  const of = (list: readonly number[], index: unknown): number =>
    isWhole(index, list.length) ? list[index] : fail("a slot has no memory");
  return slots.map((slot) => {
    if (slot.kind === "unused") return -1;
    if (slot.kind === "input") return of(sizes.inputs, slot.index);
    if (slot.kind === "state") return of(sizes.state, slot.index);
    if (slot.kind === "constant") return of(sizes.constants, slot.index);
    if (slot.kind === "result")
      return of(
        results.map(({ bytes }) => bytes),
        slot.index,
      );
    if (slot.kind !== "arena") return fail("a slot is of an unknown kind");
    const isInside = isWhole(slot.offset) && isWhole(slot.bytes) && slot.offset + slot.bytes <= arenaBytes;
    return isInside ? slot.bytes : fail("a slot is outside of its memory");
  });
}

/** Reads instructions in the format of `orchard_cpu_program.h`. */
class Words {
  private at = 0;

  constructor(
    private readonly words: Int32Array,
    private readonly fail: Fail,
  ) {}

  get isAtEnd(): boolean {
    return this.at >= this.words.length;
  }

  /** Returns the next number, which must be below `limit`. */
  next(limit: number, least = 0): number {
    const value = this.words[this.at++];
    if (value === undefined || value < least || value >= limit) return this.fail("an instruction has a wrong number");
    return value;
  }
}

/** What instructions refer to: their numbers, the calls' blocks, the bytes of each slot, and the called functions. */
interface Instructions {
  readonly words: Int32Array;
  readonly blocks: Float64Array;
  readonly bytes: readonly number[];
  readonly functions: readonly NativeFunction[];
}

/** A limit of lengths in elements. */
const LONGEST = 2 ** 31;

/** Checks instructions, and that the operands' sizes in the blocks match the slots. */
class Checker {
  /** The places of operands' sizes in the blocks. */
  readonly sizePlaces = new Set<number>();
  private readonly reader: Words;

  constructor(
    private readonly given: Instructions,
    private readonly fail: Fail,
  ) {
    this.reader = new Words(given.words, fail);
  }

  /** Returns the number of instructions. */
  checkAll(): number {
    let count = 0;
    for (; !this.reader.isAtEnd; count++) this.checkNext();
    return count;
  }

  private checkNext(): void {
    const code = this.reader.next(4);
    if (code === 0) this.checkCall();
    else if (code === 1) this.checkComparison();
    else if (code === 2) this.checkFused();
    else this.checkProduct();
  }

  private checkCall(): void {
    const { operands, length } = this.nextBlock();
    const rows = Math.max(this.reader.next(1 << 24), 1);
    const stride = length + operands;
    const start = this.nextStart(stride * rows);
    for (let row = 0; row < rows; row++)
      for (let at = 0; at < operands; at++) this.checkSize(start + row * stride + length + at, this.nextSlot(-1));
  }

  /** Checks the comparison of two slots' contents. */
  private checkComparison(): void {
    const [first, second] = [this.nextSlot(0), this.nextSlot(0)];
    const length = this.reader.next(LONGEST);
    const { bytes } = this.given;
    if (length > bytes[first] || length > bytes[second]) this.fail("a check reads outside of its memory");
  }

  /** Checks a chain of calls that runs tile by tile, whose results may be in local buffers. */
  private checkFused(): void {
    const { reader } = this;
    const [calls] = [reader.next(1 << 20), reader.next(LONGEST), reader.next(1 << 20, 1), reader.next(1 << 20, 1)];
    const locals = reader.next(1 << 10);
    for (let at = 0; at < calls; at++) {
      const { operands, length } = this.nextBlock();
      const start = this.nextStart(length + operands);
      reader.next(length);
      for (let operand = 0; operand < operands; operand++) {
        const isLocal = reader.next(2) === 1;
        const place = isLocal ? reader.next(locals) : this.nextSlot(-1);
        if (!isLocal) this.checkSize(start + length + operand, place);
        for (const most of [length, 1 << 20]) reader.next(most);
      }
    }
  }

  private checkProduct(): void {
    const { operands, length } = this.nextBlock();
    const start = this.nextStart(length + operands);
    for (let at = 0; at < operands; at++) this.checkSize(start + length + at, this.nextSlot(-1));
    this.checkFused();
  }

  /** Reads a function's index. Returns its number of operands and the doubles of its block. */
  private nextBlock(): { readonly operands: number; readonly length: number } {
    const { blockBytes, operands } = this.given.functions[this.reader.next(this.given.functions.length)];
    return { operands, length: blockBytes / 8 };
  }

  private nextStart(doubles: number): number {
    return this.reader.next(this.given.blocks.length - doubles + 1);
  }

  private nextSlot(least: number): number {
    return this.reader.next(this.given.bytes.length, least);
  }

  private checkSize(place: number, slot: number): void {
    this.sizePlaces.add(place);
    const size = this.given.blocks[place];
    const most = slot < 0 ? -1 : this.given.bytes[slot];
    if (slot >= 0 && most < 0) this.fail("an instruction uses an unused slot");
    if (!(slot < 0 ? size === -1 : Number.isInteger(size) && size >= 0 && size <= most))
      this.fail("the size of an operand is outside its memory");
  }
}

/**
 * Checks that the operands' sizes in the blocks match the slots, and that random numbers don't replace them.
 * Returns the number of instructions.
 */
export function checkInstructions(given: Instructions, draws: SavedJson["draws"], fail: Fail): number {
  const checker = new Checker(given, fail);
  const count = checker.checkAll();
  const { sizePlaces } = checker;
  for (const { places } of draws)
    for (const place of places)
      if (sizePlaces.has(place) || sizePlaces.has(place + 1)) fail("a random number replaces the size of an operand");
  return count;
}
