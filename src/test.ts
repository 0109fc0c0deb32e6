/**
 * Matchers for `bun test`: `import "orchard-metal/test";` in a test, or as `preload` in bunfig.toml. It adds
 * `toBeCloseToTensor` and `toHaveShape`, and has `toEqual` and `toStrictEqual` compare tensors by dtype, shape and
 * elements, also inside arrays and plain objects. Without it `toEqual` sees none of a tensor's elements: they are in
 * memory that is no property.
 */
import { expect } from "bun:test";
import { allClose, type CloseOptions } from "./ops/reduction/close.ts";
import "./index.ts";
import { Tensor } from "./tensor/tensor.ts";

declare module "bun:test" {
  interface Matchers<T> {
    /**
     * That a tensor has the shape and dtype of another, and elements within atol + rtol · |expected| of its.
     *
     * @example
     * expect(softmax(x, 0).sum(0)).toBeCloseToTensor(ones([3]), { rtol: 1e-6 });
     */
    toBeCloseToTensor(expected: Tensor, options?: CloseOptions): void;
    /**
     * That a tensor has a shape.
     *
     * @example
     * expect(zeros([2, 3])).toHaveShape([2, 3]);
     */
    toHaveShape(shape: readonly number[]): void;
  }
}

interface Outcome {
  readonly pass: boolean;
  readonly message: () => string;
}

/** Bun's own matcher of the name, which the extended one calls. */
type Matcher = (this: unknown, expected: unknown) => void;

const builtIn = Object.getPrototypeOf(expect(0)) as Record<"toEqual" | "toStrictEqual", Matcher>;

/** Bun has no `addEqualityTesters` yet: tensors become plain values, which Bun's own matcher compares and prints. */
function comparing(matcher: Matcher) {
  return (received: unknown, expected: unknown): Outcome => {
    try {
      matcher.call(expect(plain(received)), plain(expected));
      return { pass: true, message: () => `expected other than ${Bun.inspect(received)}` };
    } catch (error) {
      return { pass: false, message: () => (error instanceof Error ? error.message : String(error)) };
    }
  };
}

/** The same value with every tensor as an object of dtype, shape and elements; itself where it has no tensor. */
function plain(value: unknown, seen: ReadonlySet<unknown> = new Set()): unknown {
  if (Tensor.isTensor(value)) return { tensor: value.dtype, shape: [...value.shape], elements: value.toArray() };
  if (typeof value !== "object" || value === null || seen.has(value)) return value;
  const inner = new Set([...seen, value]);
  if (Array.isArray(value)) return replaced(value, (element) => plain(element, inner));
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return value;
  const entries = Object.entries(value);
  const values = replaced(
    entries.map(([, own]) => own),
    (own) => plain(own, inner),
  );
  return entries.every(([, own], index) => own === values[index])
    ? value
    : Object.fromEntries(entries.map(([key], index) => [key, values[index]]));
}

/** The list itself where nothing changes. */
function replaced(list: readonly unknown[], change: (element: unknown) => unknown): readonly unknown[] {
  const changed = list.map(change);
  return changed.every((element, index) => Object.is(element, list[index])) ? list : changed;
}

const kindOf = (x: Tensor): string => `${x.dtype}[${x.shape.join(", ")}]`;
const isSame = (a: readonly number[], b: readonly number[]): boolean =>
  a.length === b.length && a.every((size, axis) => size === b[axis]);
const failed = (message: string): Outcome => ({ pass: false, message: () => message });

function toBeCloseToTensor(received: unknown, expected: unknown, options: CloseOptions = {}): Outcome {
  if (!Tensor.isTensor(received)) return failed(`expected a tensor, got ${Bun.inspect(received)}`);
  if (!Tensor.isTensor(expected)) return failed(`expected to compare with a tensor, got ${Bun.inspect(expected)}`);
  if (received.dtype !== expected.dtype || !isSame(received.shape, expected.shape))
    return failed(`expected ${kindOf(expected)}, got ${kindOf(received)}`);
  const pass = allClose(received, expected, options);
  const both = `${Bun.inspect(expected)}\ngot ${Bun.inspect(received)}`;
  return { pass, message: () => (pass ? `expected elements that differ from ${both}` : `expected ${both}`) };
}

function toHaveShape(received: unknown, shape: unknown): Outcome {
  if (!Tensor.isTensor(received)) return failed(`expected a tensor, got ${Bun.inspect(received)}`);
  const pass = Array.isArray(shape) && isSame(received.shape, shape);
  const expected = `shape ${Bun.inspect(shape)}`;
  return { pass, message: () => `expected ${pass ? "another than " : ""}${expected}, got ${kindOf(received)}` };
}

expect.extend({
  toBeCloseToTensor,
  toHaveShape,
  toEqual: comparing(builtIn.toEqual),
  toStrictEqual: comparing(builtIn.toStrictEqual),
});
