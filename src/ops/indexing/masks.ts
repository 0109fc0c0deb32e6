/**
 * The primitives of masks. `maskStarts` counts the selected elements by blocks, which gives the size of a result and
 * the place of each block in it. `nonzero`, `maskedSelect` and `maskedScatter` then share the blocks among threads. On
 * metal they are composed of other operations.
 */
import { noGrad } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import type { Implementation } from "../../backend/backend.ts";
import { cpuCall, nest } from "../../backend/cpu/call.ts";
import { execute } from "../../backend/dispatch.ts";
import { array, dtype, whole } from "../../backend/fields.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { forEachIndex, store, toIntegers, toNumbers } from "../../backend/reference/elements.ts";
import { firstBackend } from "../../backend/registry.ts";
import { isFloat } from "../../tensor/dtype.ts";
import { collapse, elementCount, MAX_RANK, type Shape } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { contiguous } from "../copy/copy.ts";
import { where } from "../elementwise/where.ts";
import { filled } from "../view/embed.ts";
import { reshape } from "../view/reshape.ts";
import { paddedTo } from "./adjoint.ts";

/** Elements of a block, which one thread counts and copies. */
const BLOCK = 2 ** 14;

const maskStartsCall = cpuCall("maskStarts", { dtype, offset: whole, blockSize: whole, nest: nest(1) }, [
  "x",
  "starts",
]);
const nonzeroCall = cpuCall(
  "nonzero",
  {
    dtype,
    offset: whole,
    blockSize: whole,
    selected: whole,
    rank: whole,
    sizes: array(whole, MAX_RANK),
    nest: nest(1),
  },
  ["x", "starts", "output"],
);
const maskedSelectCall = cpuCall(
  "maskedSelect",
  { dtype, offsets: array(whole, 2), blockSize: whole, selected: whole, nest: nest(2) },
  ["x", "mask", "starts", "output"],
);
const maskedScatterCall = cpuCall(
  "maskedScatter",
  { dtype, offsets: array(whole, 3), sourceOffset: whole, blockSize: whole, selected: whole, nest: nest(3) },
  ["x", "mask", "source", "starts", "output"],
);

/** Whether each element is set, in row-major order. */
const flagsOf = (x: Tensor): boolean[] =>
  isFloat(x.dtype) ? Array.from(toNumbers(x), (value) => value !== 0) : toIntegers(x).map((value) => value !== 0n);

const composed = { missing: "metal composes masks of other operations" } as const;

const maskStartsCpu: Implementation<undefined, [Tensor], [Tensor]> = {
  run({ operation, inputs: [x], outputs: [starts] }) {
    const layout = collapse(x.shape, [x.strides]);
    maskStartsCall(operation, { dtype: x.dtype, offset: x.offset, blockSize: BLOCK, nest: layout }, [x, starts]);
  },
};

const maskStartsReference: Implementation<undefined, [Tensor], [Tensor]> = {
  run({ inputs: [x], outputs: [starts] }) {
    let before = 0n;
    const found = new Array<bigint>(starts.size).fill(0n);
    for (const [at, isSet] of flagsOf(x).entries()) {
      if (at % BLOCK === 0) found[at / BLOCK] = before;
      before += BigInt(isSet);
    }
    found[starts.size - 1] = before;
    store(starts, found);
  },
};

/** Input: x of any dtype. Output: int64 [blocks + 1], the number of set elements before each block, and of all. */
const maskStartsPrimitive = definePrimitive({
  name: "maskStarts",
  family: "indexing",
  implementations: { metal: composed, cpu: maskStartsCpu, reference: maskStartsReference },
});

interface NonzeroAttributes {
  /** The shape whose coordinates are written: x's, or its number of elements for row-major positions. */
  readonly sizes: Shape;
}

const nonzeroCpu: Implementation<NonzeroAttributes, [Tensor, ...Tensor[]], [Tensor]> = {
  run({ operation, inputs: [x, starts], outputs: [output], attributes: { sizes } }) {
    const block = {
      dtype: x.dtype,
      offset: x.offset,
      blockSize: BLOCK,
      selected: output.shape[0],
      rank: sizes.length,
      sizes: [...sizes, ...new Array<number>(MAX_RANK - sizes.length).fill(1)],
      nest: collapse(x.shape, [x.strides]),
    };
    nonzeroCall(operation, block, [x, starts, output]);
  },
};

const nonzeroReference: Implementation<NonzeroAttributes, [Tensor], [Tensor]> = {
  run({ inputs: [x], outputs: [output], attributes: { sizes } }) {
    const after = sizes.map((_, axis) => elementCount(sizes.slice(axis + 1)));
    const coordinates = (at: number) => after.map((count, axis) => BigInt(Math.floor(at / count) % sizes[axis]));
    store(
      output,
      flagsOf(x).flatMap((isSet, at) => (isSet ? coordinates(at) : [])),
    );
  },
};

/** Inputs: x and `maskStarts` of x. Output: int64 [set elements, axes]. */
const nonzeroPrimitive = definePrimitive<NonzeroAttributes>({
  name: "nonzero",
  family: "indexing",
  implementations: { metal: composed, cpu: nonzeroCpu, reference: nonzeroReference },
});

const maskedSelectCpu: Implementation<undefined, [Tensor, Tensor, ...Tensor[]], [Tensor]> = {
  run({ operation, inputs: [x, mask, starts], outputs: [output] }) {
    const block = {
      dtype: x.dtype,
      offsets: [x.offset, mask.offset],
      blockSize: BLOCK,
      selected: output.size,
      nest: collapse(x.shape, [x.strides, mask.strides]),
    };
    maskedSelectCall(operation, block, [x, mask, starts, output]);
  },
};

/** Copies elements in their stored form. */
const maskedSelectReference: Implementation<undefined, [Tensor, Tensor], [Tensor]> = {
  run({ inputs: [x, mask], outputs: [output] }) {
    const [from, flags] = [x.storage.array(x.dtype), flagsOf(mask)];
    const to = output.storage.array(output.dtype);
    let next = output.offset;
    forEachIndex(x.shape, [x], ([at], element) => {
      if (flags[element]) to[next++] = from[at];
    });
  },
};

/** Inputs: x, a mask of its shape, and `maskStarts` of the mask. Output: a vector. */
const maskedSelectPrimitive = definePrimitive({
  name: "maskedSelect",
  family: "indexing",
  implementations: { metal: composed, cpu: maskedSelectCpu, reference: maskedSelectReference },
});

interface MaskedScatterAttributes {
  /** The number of true elements in the mask. */
  readonly selected: number;
}

const maskedScatterCpu: Implementation<MaskedScatterAttributes, [Tensor, Tensor, Tensor, ...Tensor[]], [Tensor]> = {
  run({ operation, inputs: [x, mask, source, starts], outputs: [output], attributes: { selected } }) {
    const block = {
      dtype: x.dtype,
      offsets: [x.offset, mask.offset, output.offset],
      sourceOffset: source.offset,
      blockSize: BLOCK,
      selected,
      nest: collapse(x.shape, [x.strides, mask.strides, output.strides]),
    };
    maskedScatterCall(operation, block, [x, mask, source, starts, output]);
  },
};

/** Copies elements in their stored form. */
const maskedScatterReference: Implementation<MaskedScatterAttributes, [Tensor, Tensor, Tensor], [Tensor]> = {
  run({ inputs: [x, mask, source], outputs: [output] }) {
    const [from, values, flags] = [x.storage.array(x.dtype), source.storage.array(x.dtype), flagsOf(mask)];
    const to = output.storage.array(output.dtype);
    let next = source.offset;
    forEachIndex(x.shape, [x, output], ([at, target], element) => {
      to[target] = flags[element] ? values[next++] : from[at];
    });
  },
};

/** Inputs: x, a mask of its shape, a contiguous source, and `maskStarts` of the mask. The output has x's shape. */
const maskedScatterPrimitive = definePrimitive<MaskedScatterAttributes>({
  name: "maskedScatter",
  family: "indexing",
  implementations: { metal: composed, cpu: maskedScatterCpu, reference: maskedScatterReference },
});

/** Whether a backend has these primitives: all but metal. */
export const hasMasks = (): boolean => firstBackend() !== "metal";

/** The elements of a tensor that are set: their number, and how many come before each block. */
export interface Selection {
  readonly starts: Tensor<"int64">;
  readonly count: number;
}

/** Counts the elements that are not zero, which waits for the device. */
export function selectionOf(operation: string, x: Tensor): Selection {
  const shape = [Math.ceil(x.size / BLOCK) + 1];
  const starts = execute(maskStartsPrimitive, [x], shape, "int64", undefined, operation);
  return { starts, count: Number(starts.storage.array("int64")[starts.offset + starts.size - 1]) };
}

/** Returns the coordinates of set elements in a shape of as many elements: int64 [count, axes]. */
export function coordinatesOfSet(operation: string, x: Tensor, sizes: Shape): Tensor<"int64"> {
  const { starts, count } = selectionOf(operation, x);
  return execute(nonzeroPrimitive, [x, starts], [count, sizes.length], "int64", { sizes }, operation);
}

/** Returns the elements where a mask of x's shape is true, and records the gradient. */
export function selectSet(operation: string, x: Tensor, mask: Tensor): Tensor {
  const { starts, count } = noGrad(() => selectionOf(operation, mask));
  const output = execute(maskedSelectPrimitive, [x, mask, starts], [count], x.dtype, undefined, operation);
  const { shape } = x;
  record("maskedSelect", [x], [output], [mask], ([gradient], [saved]) => {
    const zeros = filled(shape, gradient.dtype, 0);
    return [scatterSet("maskedScatter", zeros, saved, gradient, selectionOf("maskedScatter", saved))];
  });
  return output;
}

/** Returns x with elements of the source where a mask of its shape is true, and records the gradient. */
export function scatterSet(operation: string, x: Tensor, mask: Tensor, source: Tensor, selection: Selection): Tensor {
  const { starts, count } = selection;
  const dense = source.isContiguous ? source : noGrad(() => contiguous(source));
  using values = new Tensor(dense.storage, dense.dtype, [count], [1], dense.offset);
  const inputs = [x, mask, values, starts];
  const output = execute(maskedScatterPrimitive, inputs, x.shape, x.dtype, { selected: count }, operation);
  const { shape, size } = source;
  record("maskedScatter", [x, source], [output], [mask], ([gradient], [saved], needs) => [
    needs[0] ? where(saved, 0, gradient) : null,
    needs[1] ? reshape(paddedTo(selectSet("maskedSelect", gradient, saved), [size]), shape) : null,
  ]);
  return output;
}
