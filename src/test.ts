/**
 * Matchers for `bun test`: `import "orchard-metal/test";` in a test, or as `preload` in bunfig.toml. It adds
 * `toBeCloseToTensor` and `toHaveShape`.
 *
 * `toEqual`, `toStrictEqual` and the like compare tensors by dtype, shape and elements without this import if
 * `NODE_ENV` is `"test"`, as it is in `bun test`. With any other `NODE_ENV`, they require the import.
 */
import { expect } from "bun:test";
import { allClose, type CloseOptions } from "./ops/reduction/close.ts";
import "./index.ts";
import { showContents, Tensor } from "./tensor/tensor.ts";

declare module "bun:test" {
  interface Matchers<T> {
    /**
     * Expects a tensor of the shape and dtype of another, whose elements differ by at most atol + rtol · |expected|.
     *
     * @example
     * expect(softmax(x, 0).sum(0)).toBeCloseToTensor(ones([3]), { rtol: 1e-6 });
     */
    toBeCloseToTensor(expected: Tensor, options?: CloseOptions): void;
    /**
     * Expects a tensor of a shape.
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
  return { pass, message: () => `expected ${pass ? "any other than " : ""}${expected}, got ${kindOf(received)}` };
}

showContents();
expect.extend({ toBeCloseToTensor, toHaveShape });
