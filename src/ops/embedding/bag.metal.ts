import type { Launched, MetalImplementation, TicketRange } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, spanOf, startOf, writes } from "../../backend/metal/launch.ts";
import { scratchTensor } from "../../backend/metal/scratch.ts";
import { tupleOf } from "../../core/tuples.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { checkRangeLater, findLater } from "../indexing/range.metal.ts";
import { launchSort, tooLongToSort } from "../sorting/sort.metal.ts";
import { offsetsError } from "./offsets.ts";
import { type BagAttributes, bagModes, bagParameters, offsetsParameters } from "./primitive.ts";

const FILE = "embedding/bags.metal";
const THREADS = 256;
const SIMD = 32;
/**
 * In the gradient kernel: the rows of the table per threadgroup, and the bytes for where these rows and the next one
 * start.
 */
const ROWS_OF_GROUP = 8;
const RUN_BYTES = Math.ceil(((ROWS_OF_GROUP + 1) * 8) / 16) * 16;
/** Constants for kernels that depend on neither the mode nor factors. */
const NO_CONSTANTS = [0, 0];

export const bagMetal: MetalImplementation<BagAttributes> = {
  unsupported: noFloat64,
  run({ operation, inputs, outputs, attributes }) {
    const [indices, offsets, factors, table] = tupleOf(inputs, 4);
    const [output, counts, best = counts] = outputs as [Tensor, Tensor, Tensor?];
    const range = checkRangeLater({ operation, index: indices, size: attributes.rows });
    const order = attributes.length === null ? checkOffsetsLater(offsets, indices.size) : undefined;
    const columns = Math.max(1, table.shape[1]);
    const side = Math.min(columns, THREADS);
    const launched = launch({
      ...kernelOf("bag_rows", attributes, table, indices),
      operands: [...[indices, offsets, factors, table].map(reads), ...[output, counts, best].map(writes)],
      parameters: parametersOf(attributes, indices, { table }),
      grid: [columns, attributes.bags],
      threadgroup: [side, Math.max(1, Math.floor(THREADS / side))],
    });
    return spanOf([range, order, launched]);
  },
};

export const bagGradientMetal: MetalImplementation<BagAttributes, readonly Tensor[], [Tensor]> = {
  unsupported: (call) => noFloat64(call) ?? tooLongToSort(flat(call.inputs[0]), 0),
  run({ inputs, outputs: [output], attributes }) {
    const [indices, offsets, factors, gradients, counts, best = counts] = inputs as BagGradientInputs;
    const flatIndices = flat(indices);
    const keys = scratchTensor(flatIndices.shape, flatIndices.dtype);
    const order = scratchTensor(flatIndices.shape, "int64");
    const sorted: Launched =
      flatIndices.size > 0 ? launchSort(flatIndices, keys, order, { dim: 0, descending: false }) : undefined;
    const { numbers, launched } = numbersOf(offsets, indices, attributes, order);
    const threads = Math.min(THREADS, SIMD * Math.ceil(output.shape[1] / SIMD));
    const summed = launch({
      ...kernelOf("bag_gradient", attributes, gradients, indices),
      operands: [...[keys, order, numbers, factors, gradients, counts, best].map(reads), writes(output)],
      parameters: parametersOf(attributes, indices, { gradients }),
      threadgroups: [Math.ceil(attributes.rows / ROWS_OF_GROUP), Math.ceil(output.shape[1] / threads)],
      threadgroup: threads,
      threadgroupMemory: [RUN_BYTES],
    });
    for (const tensor of new Set([flatIndices, keys, order, numbers])) tensor.dispose();
    return spanOf([sorted, launched, summed]);
  },
};

type BagGradientInputs = [Tensor, Tensor, Tensor, Tensor, Tensor, Tensor?];

export const bagFactorsMetal: MetalImplementation<BagAttributes, readonly Tensor[], [Tensor]> = {
  unsupported: noFloat64,
  run({ inputs, outputs: [output], attributes }) {
    const [indices, offsets, table, gradients] = tupleOf(inputs, 4);
    const { numbers, launched } = numbersOf(offsets, indices, attributes, indices);
    const multiplied = launch({
      ...kernelOf("bag_factors", { ...attributes, hasFactors: false }, table, indices),
      operands: [...[indices, numbers, table, gradients].map(reads), writes(output)],
      parameters: parametersOf(attributes, indices, { table, gradients }),
      threadgroups: Math.ceil(indices.size / (THREADS / SIMD)),
      threadgroup: THREADS,
    });
    if (numbers !== indices) numbers.dispose();
    return spanOf([launched, multiplied]);
  },
};

const kernelOf = (name: string, { mode, hasFactors }: BagAttributes, matrix: Tensor, indices: Tensor) => ({
  file: FILE,
  name: `${name}_${metalTypeOf(matrix.dtype)}_${metalTypeOf(indices.dtype)}`,
  constants: [bagModes.ordinal(mode), Number(hasFactors)],
});

/** Returns contiguous indices of any shape as a vector: a view for one call. */
const flat = ({ storage, dtype, size, offset }: Tensor): Tensor => new Tensor(storage, dtype, [size], [1], offset);

/** Computes the bag of each index from the offsets, or returns `otherwise` if kernels don't read it. */
function numbersOf(
  offsets: Tensor,
  indices: Tensor,
  attributes: BagAttributes,
  otherwise: Tensor,
): { readonly numbers: Tensor; readonly launched?: TicketRange } {
  if (attributes.length !== null || indices.size === 0) return { numbers: otherwise };
  const numbers = scratchTensor([indices.size], "int64");
  const launched = launch({
    file: FILE,
    name: `bag_numbers_${metalTypeOf(offsets.dtype)}`,
    constants: NO_CONSTANTS,
    operands: [reads(offsets), writes(numbers)],
    parameters: parametersOf(attributes, indices, {}),
    grid: indices.size,
    threadgroup: THREADS,
  });
  return { numbers, launched };
}

function parametersOf(
  { bags, length, rows, padding }: BagAttributes,
  indices: Tensor,
  matrices: { table?: Tensor; gradients?: Tensor },
): Uint8Array {
  const numbersOfMatrix = (matrix: Tensor | undefined) => (matrix ? [...matrix.strides, startOf(matrix)] : []);
  return bagParameters.bytes({
    bags,
    total: indices.size,
    length: length ?? -1,
    rows,
    padding,
    width: (matrices.table ?? matrices.gradients)?.shape[1] ?? 0,
    table: numbersOfMatrix(matrices.table),
    gradients: numbersOfMatrix(matrices.gradients),
  });
}

/** Checks the offsets on the device. The error is thrown when a result is read, as for an index out of range. */
function checkOffsetsLater(offsets: Tensor, total: number): TicketRange {
  const { storage, dtype, offset, size } = offsets;
  return findLater(
    offsets,
    (first) =>
      launch({
        file: FILE,
        name: `find_descent_${metalTypeOf(dtype)}`,
        constants: NO_CONSTANTS,
        operands: [reads(offsets), { tensor: first, access: "readwrite" }],
        parameters: offsetsParameters.bytes({ count: size, total }),
        grid: size,
        threadgroup: Math.min(size, THREADS),
      }),
    (position, isKnown) => {
      if (!isKnown) return offsetsError(position, undefined, total);
      const at = (index: number) => Number(storage.array(dtype)[offset + index]);
      const value = at(position);
      const isRight = position === 0 ? value === 0 : value >= at(position - 1) && value <= total;
      // undefined if recovery has recomputed the offset: see checkRangeLater
      return isRight ? undefined : offsetsError(position, value, total);
    },
  );
}
