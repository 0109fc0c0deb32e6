import type { Implementation } from "../../backend/backend.ts";
import { metalContext } from "../../backend/metal/context.ts";
import { launch, metalTypeOf, noFloat64, reads, startOf, writes } from "../../backend/metal/launch.ts";
import { MetalMemory } from "../../backend/metal/memory.ts";
import type { DType } from "../../tensor/dtype.ts";
import { Storage } from "../../tensor/storage.ts";
import { byteLengthOf, Tensor } from "../../tensor/tensor.ts";
import { checkRangeLater, findLater } from "../indexing/range.metal.ts";
import { launchSort, tooLongToSort } from "../sorting/sort.metal.ts";
import { boundsError } from "./bounds.ts";
import { type BagAttributes, bagModes } from "./modes.ts";

const FILE = "embedding/bags.metal";
const THREADS = 256;
const SIMD = 32;

export const bagMetal: Implementation<BagAttributes> = {
  unsupported: noFloat64,
  run({ operation, inputs, outputs, attributes }) {
    const [indices, bounds, factors, table] = inputs as [Tensor, Tensor, Tensor, Tensor];
    const [output, counts, best = counts] = outputs as [Tensor, Tensor, Tensor?];
    checkRangeLater({ operation, index: indices, size: attributes.rows });
    if (attributes.length === null) checkBoundsLater(bounds, indices.size);
    const columns = Math.max(1, table.shape[1]!);
    const side = Math.min(columns, THREADS);
    launch({
      ...kernelOf("bag_rows", attributes, table, indices),
      operands: [...[indices, bounds, factors, table].map(reads), ...[output, counts, best].map(writes)],
      parameters: parametersOf(attributes, indices, { table }),
      grid: [columns, attributes.bags],
      threadgroup: [side, Math.max(1, Math.floor(THREADS / side))],
    });
  },
};

export const bagGradientMetal: Implementation<BagAttributes> = {
  unsupported: (call) => noFloat64(call) ?? tooLongToSort(flat(call.inputs[0]!), 0),
  run({ inputs, outputs: [output], attributes }) {
    const [indices, bounds, factors, gradients, counts, best = counts] = inputs as BagGradientInputs;
    const line = flat(indices);
    const keys = scratch(line.shape, line.dtype);
    const order = scratch(line.shape, "int64");
    if (line.size > 0) launchSort(line, keys, order, { dim: 0, descending: false });
    const numbers = numbersOf(bounds, indices, attributes, order);
    const threads = Math.min(THREADS, SIMD * Math.ceil(output!.shape[1]! / SIMD));
    launch({
      ...kernelOf("bag_gradient", attributes, gradients, indices),
      operands: [...[keys, order, numbers, factors, gradients, counts, best].map(reads), writes(output!)],
      parameters: parametersOf(attributes, indices, { gradients }),
      threadgroups: [attributes.rows, Math.ceil(output!.shape[1]! / threads)],
      threadgroup: threads,
      threadgroupMemory: [16],
    });
    for (const tensor of new Set([line, keys, order, numbers])) tensor.dispose();
  },
};

type BagGradientInputs = [Tensor, Tensor, Tensor, Tensor, Tensor, Tensor?];

export const bagFactorsMetal: Implementation<BagAttributes> = {
  unsupported: noFloat64,
  run({ inputs, outputs: [output], attributes }) {
    const [indices, bounds, table, gradients] = inputs as [Tensor, Tensor, Tensor, Tensor];
    const numbers = numbersOf(bounds, indices, attributes, indices);
    launch({
      ...kernelOf("bag_factors", { ...attributes, hasFactors: false }, table, indices),
      operands: [...[indices, numbers, table, gradients].map(reads), writes(output!)],
      parameters: parametersOf(attributes, indices, { table, gradients }),
      threadgroups: Math.ceil(indices.size / (THREADS / SIMD)),
      threadgroup: THREADS,
    });
    if (numbers !== indices) numbers.dispose();
  },
};

const kernelOf = (name: string, { mode, hasFactors }: BagAttributes, matrix: Tensor, indices: Tensor) => ({
  file: FILE,
  name: `${name}_${metalTypeOf(matrix.dtype)}_${metalTypeOf(indices.dtype)}`,
  constants: [bagModes.indexOf(mode) + (hasFactors ? 4 : 0)],
});

/** Dense indices of any shape as one line: a view for a call. */
const flat = ({ storage, dtype, size, offset }: Tensor): Tensor => new Tensor(storage, dtype, [size], [1], offset);

/** Memory of the device until it is disposed of; the allocator does not hand it out again before the kernels that use it are done. */
const scratch = <D extends DType>(shape: readonly number[], dtype: D): Tensor<D> =>
  new Tensor(new Storage(new MetalMemory(metalContext(), byteLengthOf(shape, dtype))), dtype, shape);

/** The bag of each index, where bounds say which; `otherwise` where nothing is read. */
function numbersOf(bounds: Tensor, indices: Tensor, attributes: BagAttributes, otherwise: Tensor): Tensor {
  if (attributes.length !== null || indices.size === 0) return otherwise;
  const numbers = scratch([indices.size], "int64");
  launch({
    file: FILE,
    name: `bag_numbers_${metalTypeOf(bounds.dtype)}`,
    constants: [0],
    operands: [reads(bounds), writes(numbers)],
    parameters: parametersOf(attributes, indices, {}),
    grid: indices.size,
    threadgroup: THREADS,
  });
  return numbers;
}

/** `Bags` of the kernels. */
function parametersOf(
  { bags, length, rows, padding }: BagAttributes,
  indices: Tensor,
  { table, gradients }: { table?: Tensor; gradients?: Tensor },
): Uint8Array {
  const placed = (matrix: Tensor | undefined) => (matrix ? [...matrix.strides, startOf(matrix)] : [0, 0, 0]);
  const width = (table ?? gradients)?.shape[1] ?? 0;
  const numbers = [bags, indices.size, length ?? -1, rows, width, padding, ...placed(table), ...placed(gradients)];
  return new Uint8Array(BigInt64Array.from(numbers.map(BigInt)).buffer);
}

/** Has the device look at the bounds; the error comes as that of an index out of range does. */
function checkBoundsLater(bounds: Tensor, total: number): void {
  const { storage, dtype, offset, size } = bounds;
  findLater(
    bounds,
    (first) =>
      launch({
        file: FILE,
        name: `find_descent_${metalTypeOf(dtype)}`,
        constants: [0],
        operands: [reads(bounds), { tensor: first, access: "readwrite" }],
        parameters: new Uint8Array(BigInt64Array.of(BigInt(size), BigInt(total)).buffer),
        grid: size,
        threadgroup: Math.min(size, THREADS),
      }),
    (position, isKnown) => {
      if (!isKnown) return boundsError(position, undefined, total);
      const at = (place: number) => Number(storage.array(dtype)[offset + place]);
      const value = at(position);
      const isRight = position === 0 ? value === 0 : value >= at(position - 1) && value <= total;
      return isRight ? undefined : boundsError(position, value, total); // computed again since: see checkRangeLater
    },
  );
}
