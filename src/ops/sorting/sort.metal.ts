import type { Implementation } from "../../backend/backend.ts";
import { metalContext } from "../../backend/metal/context.ts";
import {
  type KernelName,
  launch,
  metalTypeOf,
  noFloat64,
  pipelineFor,
  reads,
  startOf,
  writes,
} from "../../backend/metal/launch.ts";
import { MetalMemory } from "../../backend/metal/memory.ts";
import type { DType } from "../../tensor/dtype.ts";
import { collapse, elementCount } from "../../tensor/shape.ts";
import { Storage } from "../../tensor/storage.ts";
import { byteLengthOf, Tensor } from "../../tensor/tensor.ts";
import type { SortAttributes } from "./sort_primitive.ts";

/** Elements that one threadgroup sorts: `BLOCK` in the kernel. */
const BLOCK = 1024;
const MAX_RANK = 8;
const THREADS = 256;

export const sortMetal: Implementation<SortAttributes> = {
  unsupported: (call) => noFloat64(call) ?? tooLongToSort(call.inputs[0]!, call.attributes.dim),
  run: ({ inputs: [x], outputs: [values, indices], attributes }) => launchSort(x!, values!, indices!, attributes),
};

/** Why a line can't be sorted: its indices have 32 bits while they are. */
export const tooLongToSort = ({ shape }: Tensor, dim: number): string | undefined =>
  shape[dim]! > 2 ** 32 - BLOCK ? `axis ${dim} has more than ${2 ** 32 - BLOCK} elements` : undefined;

/** Encodes the sort of `x` along an axis: its first elements in order, as many as `values` and `indices` have. */
export function launchSort(x: Tensor, values: Tensor, indices: Tensor, { dim, descending }: SortAttributes): void {
  const operands = [x, values, indices];
  const lines = elementCount(x.shape.with(dim, 1));
  const parameters = (run: number) => parametersOf(operands, dim, descending, run);
  if (x.shape[dim]! > BLOCK) sortInBlocks(x, values, indices, lines, dim, parameters);
  else
    launchGroups(`sort_line_${metalTypeOf(x.dtype)}`, [lines], x.shape[dim]!, {
      operands: [reads(x), writes(values), writes(indices)],
      parameters: parameters(0),
    });
}

function sortInBlocks(
  x: Tensor,
  values: Tensor,
  indices: Tensor,
  lines: number,
  dim: number,
  parameters: (run: number) => Uint8Array,
): void {
  const length = x.shape[dim]!;
  const kind = metalTypeOf(x.dtype);
  let from = records(x.dtype, lines * length);
  let to = records(x.dtype, lines * length);
  launchGroups(`sort_block_${kind}`, [Math.ceil(length / BLOCK), lines], BLOCK, {
    operands: [reads(x), writes(from.keys), writes(from.order)],
    parameters: parameters(0),
  });
  for (let run = BLOCK; run < length; run *= 2) {
    launchThreads(`sort_merge_${x.dtype === "int64" ? "ulong" : "uint"}`, [length, lines], {
      operands: [reads(from.keys), reads(from.order), writes(to.keys), writes(to.order)],
      parameters: parameters(run),
    });
    [from, to] = [to, from];
  }
  launchThreads(`sort_finish_${kind}`, [values.shape[dim]!, lines], {
    operands: [reads(x), writes(values), writes(indices), reads(from.order)],
    parameters: parameters(0),
  });
  for (const tensor of [from.keys, from.order, to.keys, to.order]) tensor.dispose();
}

/** Memory for records; see the kernel. The allocator does not hand it out again before the kernels that use it are done. */
function records(dtype: DType, count: number): { keys: Tensor; order: Tensor } {
  const scratch = (kind: DType) =>
    new Tensor(new Storage(new MetalMemory(metalContext(), byteLengthOf([count], kind))), kind, [count]);
  return { keys: scratch(dtype === "int64" ? "int64" : "uint32"), order: scratch("uint32") };
}

type Bound = Pick<Parameters<typeof launch>[0], "operands" | "parameters">;

/** One threadgroup a block of at most `elements`, with a thread for every two or fewer. */
function launchGroups(name: string, threadgroups: [number, number?], elements: number, bound: Bound): void {
  const kernel: KernelName = { file: "sorting/sort.metal", name };
  const { maxTotalThreads } = pipelineFor(metalContext(), kernel).info;
  const threads = Math.min(THREADS, maxTotalThreads, Math.max(32, Math.ceil(elements / 2)));
  const [x, y = 1] = threadgroups;
  launch({ ...kernel, ...bound, threadgroups: [x, y], threadgroup: [threads] });
}

/** One thread an element of each line. */
function launchThreads(name: string, [length, lines]: [number, number], bound: Bound): void {
  const threadgroup = [Math.min(length, THREADS)] as const;
  launch({ file: "sorting/sort.metal", name, ...bound, grid: [length, lines], threadgroup });
}

/** The `Sort` of the kernel. */
function parametersOf(operands: readonly Tensor[], dim: number, descending: boolean, run: number): Uint8Array {
  const [x, values] = operands as [Tensor, Tensor];
  const nest = collapse(
    x.shape.with(dim, 1),
    operands.map(({ strides }) => strides),
  );
  const words = new BigInt64Array(MAX_RANK * 4 + 11);
  const write = (numbers: readonly number[], start: number) => {
    for (const [at, number] of numbers.entries()) words[start + at] = BigInt(number);
  };
  write(nest.shape, 0);
  for (const [operand, strides] of nest.strides.entries()) write(strides, MAX_RANK * (1 + operand));
  write(operands.map(startOf), MAX_RANK * 4);
  write(
    operands.map(({ strides }) => strides[dim]!),
    MAX_RANK * 4 + 3,
  );
  write([nest.shape.length, x.shape[dim]!, values.shape[dim]!, descending ? 1 : 0, run], MAX_RANK * 4 + 6);
  return new Uint8Array(words.buffer);
}
