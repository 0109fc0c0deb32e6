/** Operands in drawn memory layouts. */
import { fromPairs, tensor } from "../../../src/ops/creation/tensor.ts";
import { type DType, isComplex } from "../../../src/tensor/dtype.ts";
import { rowMajorStrides } from "../../../src/tensor/shape.ts";
import { Tensor } from "../../../src/tensor/tensor.ts";

/**
 * Creates a tensor from row-major elements (pairs if complex), with an offset, an order of its axes in memory and gaps
 * that depend on the seed.
 */
export function operandIn(seed: number, data: readonly number[], shape: readonly number[], dtype: DType): Tensor {
  const parts = isComplex(dtype) ? 2 : 1;
  const order = [...shape.keys()];
  if (seed % 2 === 1) order.reverse();
  const gap = 1 + (seed % 3);
  const offset = seed % 4;
  const strides = new Array<number>(shape.length).fill(0);
  let stride = gap;
  for (const axis of order.toReversed()) {
    strides[axis] = stride;
    stride *= Math.max(1, shape[axis]);
  }
  const list = new Array<number>((offset + stride + 1) * parts).fill(Number.NaN);
  const dense = rowMajorStrides(shape);
  for (let at = 0; at < data.length / parts; at++) {
    const place = shape.reduce(
      (sum, size, axis) => sum + (Math.floor(at / dense[axis]) % size) * strides[axis],
      offset,
    );
    for (let part = 0; part < parts; part++) list[place * parts + part] = data[at * parts + part];
  }
  const base = stored(list, dtype);
  return new Tensor(base.storage, dtype, shape, strides, offset);
}

function stored(list: readonly number[], dtype: DType): Tensor {
  if (dtype === "complex64") return fromPairs(Float32Array.from(list), [list.length / 2]);
  if (dtype === "complex128") return fromPairs(Float64Array.from(list), [list.length / 2]);
  const numbers = list.map((value) => (Number.isNaN(value) && !/float/.test(dtype) ? 0 : value));
  return tensor(numbers, { dtype });
}
