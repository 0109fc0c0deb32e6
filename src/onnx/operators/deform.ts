/** Deformable convolution: each element of the kernel samples the picture at a separate offset. */
import { tupleOf } from "../../core/tuples.ts";
import * as ops from "../../ops/index.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { Call, Operators } from "../call.ts";
import { NodeProblem } from "../errors.ts";

interface Layout {
  readonly kernel: readonly number[];
  /** Sizes of the picture and of the result. */
  readonly sizes: readonly number[];
  readonly outputs: readonly number[];
  readonly offsetGroups: number;
}

/**
 * Dai et al., "Deformable convolutional networks" (2017), with the masks of its second version: the picture is sampled
 * at every element of every kernel window, and the samples are multiplied by the weights.
 */
function deformConv(call: Call): Tensor {
  const [x, weight, offset, bias, mask] = [
    call.tensor(0),
    call.tensor(1),
    call.tensor(2),
    call.optional(3),
    call.optional(4),
  ];
  const rank = x.rank - 2;
  if (rank !== 2 && rank !== 3) throw new NodeProblem(`expected pictures or volumes, got ${x.describe()}`);
  const [batch, channels] = tupleOf(x.shape, 2);
  const kernel = weight.shape.slice(2);
  const [groups, offsetGroups] = [call.attributes.number("group", 1), call.attributes.number("offset_group", 1)];
  const layout = { kernel, sizes: x.shape.slice(2), outputs: offset.shape.slice(2), offsetGroups };
  const [taps, places] = [kernel, layout.outputs].map((sizes) => sizes.reduce((product, size) => product * size, 1));
  const pictures = ops.reshape(x, [batch * offsetGroups, channels / offsetGroups, ...layout.sizes]);
  const sampled = ops.gridSample(pictures, gridOf(call, offset, layout), { alignCorners: false });
  const byGroup = ops.reshape(sampled, [batch, offsetGroups, channels / offsetGroups, taps, places]);
  const masked = mask ? ops.mul(byGroup, ops.reshape(mask, [batch, offsetGroups, 1, taps, places])) : byGroup;
  const columns = ops.reshape(masked, [batch, groups, (channels / groups) * taps, places]);
  const rows = ops.reshape(weight, [groups, weight.shape[0] / groups, (channels / groups) * taps]);
  const result = ops.reshape(ops.matmul(rows, columns), [batch, weight.shape[0], ...layout.outputs]);
  return bias ? ops.add(result, ops.reshape(bias, [-1, ...layout.outputs.map(() => 1)])) : result;
}

/**
 * Returns the sampling positions, from −1 to 1: [batch · offset groups, taps · first output size, …, axes], the last
 * axis first.
 */
function gridOf(call: Call, offset: Tensor, { kernel, sizes, outputs, offsetGroups }: Layout): Tensor {
  const rank = kernel.length;
  const numbers = (name: string, byDefault: number) =>
    call.attributes.numbers(name) ?? new Array<number>(2 * rank).fill(byDefault);
  const [strides, pads, dilations] = [numbers("strides", 1), numbers("pads", 0), numbers("dilations", 1)];
  const batch = offset.shape[0];
  const along = (axis: number, size: number, step: number): Tensor => {
    const shape = new Array<number>(2 * rank).fill(1);
    shape[axis] = size;
    return ops.reshape(ops.mul(ops.arange(size, { dtype: "float32" }), step), shape);
  };
  const offsets = ops.reshape(offset, [batch * offsetGroups, ...kernel, rank, ...outputs]);
  const places = kernel.map((size, axis) => {
    const regular = ops.add(along(axis, size, dilations[axis]), along(rank + axis, outputs[axis], strides[axis]));
    const place = ops.add(ops.select(offsets, rank + 1, axis), ops.sub(regular, pads[axis]));
    return ops.sub(ops.mul(ops.add(place, 0.5), 2 / sizes[axis]), 1); // the first element's center is at 1/size − 1
  });
  const [first, ...others] = outputs;
  const taps = kernel.reduce((product, size) => product * size, 1);
  return ops.reshape(ops.stack(places.reverse(), { dim: -1 }), [batch * offsetGroups, taps * first, ...others, rank]);
}

export const deformable: Operators = { DeformConv: deformConv };
