import type { MetalImplementation, TicketRange } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, spanOf, writes } from "../../backend/metal/launch.ts";
import { scratchTensor } from "../../backend/metal/scratch.ts";
import { sliceValues } from "../../backend/metal/slices.ts";
import type { DType } from "../../tensor/dtype.ts";
import { type Slices, sliceCount, slicesOf } from "../../tensor/slices.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type SortAttributes, sortParameters } from "./primitive.ts";

/**
 * Elements sorted by a threadgroup, elements per thread, and elements merged by a thread. The kernel has the same
 * constants.
 */
const [BLOCK, OWN, MERGED] = [1024, 4, 8];
const SIMD_WIDTH = 32;
const MERGE_THREADS = 128;
const FILE = "sorting/sort.metal";

export const sortMetal: MetalImplementation<SortAttributes, [Tensor], [Tensor, Tensor]> = {
  unsupported: (call) => noFloat64(call) ?? tooLongToSort(call.inputs[0], call.attributes.dim),
  run: ({ inputs: [x], outputs: [values, indices], attributes }) => launchSort(x, values, indices, attributes),
};

/** Returns the reason why an axis can't be sorted, if any: the kernels' indices have 32 bits. */
export const tooLongToSort = ({ shape }: Tensor, dim: number): string | undefined =>
  shape[dim] > 2 ** 32 - BLOCK ? `axis ${dim} has more than ${2 ** 32 - BLOCK} elements` : undefined;

/** Sorts `x` along an axis and writes as many of the first elements as `values` and `indices` have. */
export function launchSort(
  x: Tensor,
  values: Tensor,
  indices: Tensor,
  { dim, descending }: SortAttributes,
): TicketRange {
  const operands = [x, values, indices];
  const slices = slicesOf(operands, dim, { isOrdered: true });
  const count = values.shape[dim];
  const fields = sliceValues(slices, operands);
  const parameters = (run: number) => sortParameters.bytes({ slices: fields, count, run, descending });
  if (slices.length > BLOCK) return sortInBlocks({ x, values, indices, slices, count, parameters });
  return launchGroups(`sort_slice_${metalTypeOf(x.dtype)}`, [sliceCount(slices)], slices.length, {
    operands: [reads(x), writes(values), writes(indices)],
    parameters: parameters(0),
  });
}

interface Sort {
  readonly x: Tensor;
  readonly values: Tensor;
  readonly indices: Tensor;
  readonly slices: Slices;
  readonly count: number;
  /** @param run length of the sorted runs */
  readonly parameters: (run: number) => Uint8Array;
}

function sortInBlocks({ x, values, indices, slices, count, parameters }: Sort): TicketRange {
  const { length } = slices;
  const total = sliceCount(slices);
  const type = metalTypeOf(x.dtype);
  let from = records(x.dtype, total * length);
  let to = records(x.dtype, total * length);
  const first = launchGroups(`sort_block_${type}`, [Math.ceil(length / BLOCK), total], BLOCK, {
    operands: [reads(x), writes(from.keys), writes(from.order)],
    parameters: parameters(0),
  });
  let run = BLOCK;
  for (; 2 * run < length; run *= 2) {
    launchThreads(`sort_merge_${x.dtype === "int64" ? "ulong" : "uint"}`, [length, total], {
      operands: [reads(from.keys), reads(from.order), writes(to.keys), writes(to.order)],
      parameters: parameters(run),
    });
    [from, to] = [to, from];
  }
  const last = launchThreads(`sort_finish_${type}`, [count, total], {
    operands: [reads(x), writes(values), writes(indices), reads(from.keys), reads(from.order)],
    parameters: parameters(run),
  });
  for (const tensor of [from.keys, from.order, to.keys, to.order]) tensor.dispose();
  return spanOf([first, last]);
}

/** Allocates memory for records: their keys, and their order. */
const records = (dtype: DType, count: number): { keys: Tensor; order: Tensor } => ({
  keys: scratchTensor([count], dtype === "int64" ? "int64" : "uint32"),
  order: scratchTensor([count], "uint32"),
});

type Bound = Pick<Parameters<typeof launch>[0], "operands" | "parameters">;

/** Launches one threadgroup per block of at most `elements`, padded to a power of 2. */
function launchGroups(name: string, threadgroups: [number, number?], elements: number, bound: Bound): TicketRange {
  const threads = Math.max(SIMD_WIDTH, 2 ** Math.ceil(Math.log2(Math.max(1, elements / OWN))));
  const [x, y = 1] = threadgroups;
  return launch({ file: FILE, name, ...bound, threadgroups: [x, y], threadgroup: [threads] });
}

/** Launches one thread for every {@link MERGED} elements of each slice. */
function launchThreads(name: string, [length, slices]: [number, number], bound: Bound): TicketRange {
  const threads = Math.ceil(length / MERGED);
  const threadgroup = [Math.min(threads, MERGE_THREADS)] as const;
  return launch({ file: FILE, name, ...bound, grid: [threads, slices], threadgroup });
}
