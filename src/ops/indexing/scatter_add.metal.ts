import type { Implementation } from "../../backend/backend.ts";
import { metalContext } from "../../backend/metal/context.ts";
import { launch, metalTypeOf, noFloat64, reads, writes } from "../../backend/metal/launch.ts";
import { mergedLoop } from "../../backend/metal/loop.ts";
import { MetalMemory } from "../../backend/metal/memory.ts";
import type { DType } from "../../tensor/dtype.ts";
import { elementCount, type Shape } from "../../tensor/shape.ts";
import { Storage } from "../../tensor/storage.ts";
import { byteLengthOf, Tensor } from "../../tensor/tensor.ts";
import { launchSort, tooLongToSort } from "../sorting/sort.metal.ts";
import { distinct } from "./indices.ts";
import { checkRangeLater } from "./range.metal.ts";
import type { ScatterAttributes } from "./scatter_add_primitive.ts";

export const scatterAddMetal: Implementation<ScatterAttributes> = {
  unsupported: (call) => noFloat64(call) ?? tooLongToSort(call.inputs[1]!, call.attributes.dim),

  run({ inputs: [x, index, source], outputs: [output], attributes: { operation, dim, axes } }) {
    checkRangeLater({ operation, index: index!, size: x!.shape[dim]!, axes });
    const line = distinct(index!);
    const keys = scratch(line.shape, line.dtype);
    const order = scratch(line.shape, "int64");
    if (line.size > 0) launchSort(line, keys, order, { dim, descending: false });
    launchSums(x!, source!, keys, order, output!, dim);
    for (const tensor of [line, keys, order]) tensor.dispose();
  },
};

/** Memory of the device until it is disposed of; the allocator does not hand it out again before the kernels that use it are done. */
const scratch = <D extends DType>(shape: Shape, dtype: D): Tensor<D> =>
  new Tensor(new Storage(new MetalMemory(metalContext(), byteLengthOf(shape, dtype))), dtype, shape);

function launchSums(x: Tensor, source: Tensor, keys: Tensor, order: Tensor, output: Tensor, dim: number): void {
  const repeated = keys.strides.map((stride, axis) => (axis === dim || keys.shape[axis] === 1 ? 0 : stride));
  const nest = mergedLoop(
    output.shape,
    [
      { tensor: x, strides: x.strides },
      { tensor: output, strides: output.strides },
      { tensor: source, strides: source.strides.with(dim, 0) },
      { tensor: keys, strides: repeated },
    ],
    [
      elementCount(output.shape.slice(dim + 1)),
      ...[x.shape[dim]!, source.shape[dim]!],
      ...[source.strides[dim]!, keys.strides[dim]!],
    ],
  );
  launch({
    file: "indexing/scatter_add.metal",
    name: `scatter_add_${metalTypeOf(x.dtype)}_${metalTypeOf(keys.dtype)}`,
    operands: [reads(x), reads(source), reads(keys), reads(order), writes(output)],
    parameters: nest.parameters,
    grid: nest.grid,
    threadgroup: nest.threadgroup,
  });
}
