import type { MetalImplementation, TicketRange } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, spanOf, writes } from "../../backend/metal/launch.ts";
import { mergedLoop } from "../../backend/metal/loop.ts";
import { scratchTensor } from "../../backend/metal/scratch.ts";
import { elementCount } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { launchSort, tooLongToSort } from "../sorting/sort.metal.ts";
import { distinct } from "./indices.ts";
import {
  type IndexAttributes,
  type ScatterAttributes,
  type ScatterOthersAttributes,
  scatterings,
  scatterParameters,
} from "./primitive.ts";
import { checkRangeLater } from "./range.metal.ts";

type Unsupported = MetalImplementation<IndexAttributes, [Tensor, Tensor, Tensor], [Tensor]>["unsupported"];
const unsupported: Unsupported = (call) => noFloat64(call) ?? tooLongToSort(call.inputs[1], call.attributes.dim);

export const scatterMetal: MetalImplementation<ScatterAttributes, [Tensor, Tensor, Tensor], [Tensor]> = {
  unsupported,
  run({ inputs: [x, index, source], outputs: [output], attributes }) {
    const kernel = {
      name: "scatter",
      constants: [scatterings.ordinal(attributes.way), Number(attributes.includesSelf)],
    };
    return launchSorted(kernel, { x: x, index: index, source: source, output: output }, attributes);
  },
};

export const scatterOthersMetal: MetalImplementation<ScatterOthersAttributes, [Tensor, Tensor, Tensor], [Tensor]> = {
  unsupported,
  run({ inputs: [x, index, source], outputs: [output], attributes }) {
    const kernel = { name: "scatter_others", constants: [0, Number(attributes.includesSelf)] };
    return launchSorted(kernel, { x: x, index: index, source: source, output: output }, attributes);
  },
};

interface Operands {
  readonly x: Tensor;
  readonly index: Tensor;
  readonly source: Tensor;
  readonly output: Tensor;
}

interface Kernel {
  readonly name: string;
  readonly constants: readonly number[];
}

/** Sorts the indices. Then one thread per element of x combines the elements scattered to it. */
function launchSorted(kernel: Kernel, { index, ...operands }: Operands, attributes: IndexAttributes): TicketRange {
  const { operation, dim, axes, isSigned } = attributes;
  const check = checkRangeLater({ operation, index, size: operands.x.shape[dim], axes, isSigned });
  using indices = distinctBut(index, dim);
  using keys = scratchTensor(indices.shape, indices.dtype);
  using order = scratchTensor(indices.shape, "int64");
  if (indices.size > 0) launchSort(indices, keys, order, { dim, descending: false });
  // The sort was encoded between the check and this kernel, so the range of tickets includes it.
  return spanOf([check, launchRuns(kernel, { ...operands, keys, order }, dim)]);
}

/** Returns {@link distinct} of all axes but `dim`, along which every element of the source is scattered. */
const distinctBut = (index: Tensor, dim: number): Tensor => {
  using once = distinct(index);
  return new Tensor(index.storage, index.dtype, once.shape.with(dim, index.shape[dim]), index.strides, index.offset);
};

type Sorted = Omit<Operands, "index"> & { readonly keys: Tensor; readonly order: Tensor };

function launchRuns({ name, constants }: Kernel, { x, source, keys, order, output }: Sorted, dim: number): TicketRange {
  const repeated = keys.strides.map((stride, axis) => (axis === dim || keys.shape[axis] === 1 ? 0 : stride));
  const isAsSource = name === "scatter_others";
  const { grid, threadgroup, loop } = mergedLoop(x.shape, [
    { tensor: x, strides: x.strides },
    { tensor: output, strides: isAsSource ? output.strides.with(dim, 0) : output.strides },
    { tensor: source, strides: source.strides.with(dim, 0) },
    { tensor: keys, strides: repeated },
  ]);
  return launch({
    file: "indexing/scatter.metal",
    name: `${name}_${metalTypeOf(x.dtype)}_${metalTypeOf(keys.dtype)}`,
    constants,
    operands: [reads(x), reads(source), reads(keys), reads(order), writes(output)],
    parameters: scatterParameters.bytes({
      loop,
      inner: elementCount(x.shape.slice(dim + 1)),
      size: x.shape[dim],
      length: source.shape[dim],
      sourceStride: source.strides[dim],
      keyStride: keys.strides[dim],
      outputStride: output.strides[dim],
    }),
    grid,
    threadgroup,
  });
}
