/** Kinds of parameters of kernels, buffers and contexts. */
import { aNumber, choice, listed } from "../../core/kinds.ts";
import type { Kind } from "../../core/parameters.ts";
import type { StorageMode } from "../../tensor/memory.ts";
import type { NumericArray, NumericArrayConstructor } from "./buffer.ts";
import type { Size } from "./encode.ts";

export const storageMode: Kind<StorageMode> = choice("shared", "private");

/** A length or an offset: a whole number of at least 0. */
export const wholeNumber: Kind<number> = aNumber({
  holds: (value) => Number.isSafeInteger(value) && value >= 0,
  expected: "a whole number of at least 0",
});

/** One to three numbers of threads. The kernel checks which sizes are valid. */
export const aSize: Kind<Size> = {
  expected: "a number, or a list of one to three numbers",
  parse(value) {
    const list = typeof value === "number" ? [value] : listed(value);
    const isSize = list !== undefined && list.length >= 1 && list.length <= 3;
    return isSize && list.every((extent) => typeof extent === "number") ? (list as unknown as Size) : undefined;
  },
};

const arrays = [
  Float32Array,
  Float16Array,
  Int8Array,
  Uint8Array,
  Int16Array,
  Uint16Array,
  Int32Array,
  Uint32Array,
  BigInt64Array,
  BigUint64Array,
];
const arrayNames = arrays.map(({ name }) => name).join(", ");

/** A typed array with a corresponding Metal type, whose buffer is not detached. */
export const aNumericArray: Kind<NumericArray> = {
  expected: `a typed array (${arrayNames}) that was not transferred`,
  parse: (value) =>
    arrays.some((type) => value instanceof type) && !((value as NumericArray).buffer as ArrayBuffer).detached
      ? (value as NumericArray)
      : undefined,
};

/** The constructor of such an array. */
export const anArrayType: Kind<NumericArrayConstructor<NumericArray>> = {
  expected: `a class of typed arrays (${arrayNames})`,
  parse: (value) => arrays.find((array) => array === value),
};
