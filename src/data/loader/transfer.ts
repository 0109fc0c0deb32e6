/** Transfers items between threads: tensors as their elements, everything else by structured clone. */
import { recordIn } from "../../core/values.ts";
import { fromPairs, type TensorArray, tensor } from "../../ops/creation/tensor.ts";
import { type DType, dtypeFacts, isComplex, type RealDType, realDType } from "../../tensor/dtype.ts";
import { Tensor } from "../../tensor/tensor.ts";

/** A tensor as plain data. Its key is unlikely to occur in an item by chance. */
interface Packed {
  readonly [KEY]: { readonly dtype: DType; readonly shape: readonly number[]; readonly elements: ArrayBuffer };
}
const KEY = "orchard-metal:tensor";

/** Packs the tensors of an item, and lists the memory of their elements, which is transferred, not copied. */
export function pack(item: unknown): { readonly value: unknown; readonly moved: ArrayBuffer[] } {
  const moved: ArrayBuffer[] = [];
  const value = mapped(item, (part) => {
    if (!Tensor.isTensor(part)) return undefined;
    // bfloat16 is widened to float32, which holds each of its values.
    const elements = part.dataSync().buffer as ArrayBuffer; // a fresh row-major copy, so it can be transferred
    moved.push(elements);
    return { [KEY]: { dtype: part.dtype, shape: [...part.shape], elements } } satisfies Packed;
  });
  return { value, moved };
}

/** Restores an item that {@link pack} packed. */
export const unpack = (value: unknown): unknown =>
  mapped(value, (part) => {
    if (!isPacked(part)) return undefined;
    const { dtype, shape, elements } = part[KEY];
    if (isComplex(dtype)) return fromPairs(arrayOf(realDType(dtype), elements) as Float32Array, shape);
    return tensor(arrayOf(dtype, elements), { dtype: dtype as "float32", shape: [...shape] });
  });

const isPacked = (part: object): part is Packed => Object.hasOwn(part, KEY);

/** The elements as `dataSync` returned them: bfloat16 as float32. */
const arrayOf = (dtype: RealDType, elements: ArrayBuffer): TensorArray =>
  new dtypeFacts[dtype === "bfloat16" ? "float32" : dtype].array(elements);

/** Copies lists and plain objects with parts replaced. Cycles and shared parts are preserved. */
function mapped(value: unknown, replace: (part: object) => unknown, seen = new Map<object, unknown>()): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (seen.has(value)) return seen.get(value);
  const replaced = replace(value);
  if (replaced !== undefined) {
    seen.set(value, replaced);
    return replaced;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (!Array.isArray(value) && prototype !== Object.prototype && prototype !== null) return value;
  const copy: Record<string, unknown> = recordIn(Array.isArray(value) ? [] : {});
  seen.set(value, copy);
  for (const [name, part] of Object.entries(value))
    Object.defineProperty(copy, name, {
      value: mapped(part, replace, seen),
      enumerable: true,
      writable: true,
      configurable: true,
    });
  return copy;
}
