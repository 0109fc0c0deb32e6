import type { MetalImplementation, TicketRange } from "../../backend/backend.ts";
import { launch, metalTypeOf, noFloat64, reads, spanOf, writes } from "../../backend/metal/launch.ts";
import { mergedLoop } from "../../backend/metal/loop.ts";
import { scratchTensor } from "../../backend/metal/scratch.ts";
import { elementCount } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { launchSort, tooLongToSort } from "../sorting/sort.metal.ts";
import { distinct } from "./indices.ts";
import { type IndexAttributes, scatterAddParameters } from "./primitive.ts";
import { checkRangeLater } from "./range.metal.ts";

export const scatterAddMetal: MetalImplementation<IndexAttributes> = {
  unsupported: (call) => noFloat64(call) ?? tooLongToSort(call.inputs[1]!, call.attributes.dim),

  run({ inputs: [x, index, source], outputs: [output], attributes: { operation, dim, axes } }) {
    const check = checkRangeLater({ operation, index: index!, size: x!.shape[dim]!, axes });
    using indices = distinctBut(index!, dim);
    using keys = scratchTensor(indices.shape, indices.dtype);
    using order = scratchTensor(indices.shape, "int64");
    if (indices.size > 0) launchSort(indices, keys, order, { dim, descending: false });
    // The sort lies between the two.
    return spanOf([check, launchSums(x!, source!, keys, order, output!, dim)]);
  },
};

/** {@link distinct}, but along an axis: every element of the source there is added. */
const distinctBut = (index: Tensor, dim: number): Tensor => {
  using once = distinct(index);
  return new Tensor(index.storage, index.dtype, once.shape.with(dim, index.shape[dim]!), index.strides, index.offset);
};

function launchSums(x: Tensor, source: Tensor, keys: Tensor, order: Tensor, output: Tensor, dim: number): TicketRange {
  const repeated = keys.strides.map((stride, axis) => (axis === dim || keys.shape[axis] === 1 ? 0 : stride));
  const { grid, threadgroup, loop } = mergedLoop(output.shape, [
    { tensor: x, strides: x.strides },
    { tensor: output, strides: output.strides },
    { tensor: source, strides: source.strides.with(dim, 0) },
    { tensor: keys, strides: repeated },
  ]);
  return launch({
    file: "indexing/scatter_add.metal",
    name: `scatter_add_${metalTypeOf(x.dtype)}_${metalTypeOf(keys.dtype)}`,
    operands: [reads(x), reads(source), reads(keys), reads(order), writes(output)],
    parameters: scatterAddParameters.bytes({
      loop,
      inner: elementCount(output.shape.slice(dim + 1)),
      size: x.shape[dim]!,
      length: source.shape[dim]!,
      sourceStride: source.strides[dim]!,
      keyStride: keys.strides[dim]!,
    }),
    grid,
    threadgroup,
  });
}
