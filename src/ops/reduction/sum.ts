import { record } from "../../autograd/record.ts";
import type { Implementation, Primitive } from "../../backend/backend.ts";
import { execute } from "../../backend/dispatch.ts";
import { store, toIntegers, toNumbers } from "../../backend/reference/elements.ts";
import { type DType, isFloat } from "../../tensor/dtype.ts";
import { normalizeAxes } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { expand } from "../view/expand.ts";
import { reshape } from "../view/reshape.ts";

const sumReference: Implementation<{ axes: readonly number[] }> = {
  run({ inputs: [input], outputs: [output], attributes: { axes } }) {
    const { shape } = input!;
    const places = (index: number): number => {
      let rest = index;
      let at = 0;
      let stride = 1;
      for (let axis = shape.length - 1; axis >= 0; axis--) {
        if (!axes.includes(axis)) {
          at += (rest % shape[axis]!) * stride;
          stride *= shape[axis]!;
        }
        rest = Math.floor(rest / shape[axis]!);
      }
      return at;
    };
    if (isFloat(input!.dtype)) {
      const sums = new Float64Array(output!.size);
      for (const [index, value] of toNumbers(input!).entries()) sums[places(index)]! += value;
      store(output!, sums);
    } else {
      const sums = new Array<bigint>(output!.size).fill(0n);
      for (const [index, value] of toIntegers(input!).entries()) sums[places(index)]! += value;
      store(output!, sums);
    }
  },
};

const sumPrimitive: Primitive<{ axes: readonly number[] }> = {
  name: "sum",
  implementations: {
    metal: { missing: "not written yet" },
    cpu: { missing: "not written yet" },
    reference: sumReference,
  },
};

export interface SumOptions {
  /** Axes to sum over; default all. */
  dim?: number | readonly number[];
  /** Keep them with size 1. */
  keepdim?: boolean;
}

/** The sum over axes; integers and bools sum to int64. */
export function sum(x: Tensor, { dim, keepdim = false }: SumOptions = {}): Tensor {
  const axes = normalizeAxes("sum", dim, x.rank);
  const input = isFloat(x.dtype) ? x : toDType(x, "int64");
  const kept = input.shape.map((size, axis) => (axes.includes(axis) ? 1 : size));
  const shape = keepdim ? kept : input.shape.filter((_, axis) => !axes.includes(axis));
  const output = execute(sumPrimitive, [input], shape, input.dtype as DType, { axes });
  const whole = input.shape;
  record("sum", [input], [output], [], ([gradient]) => [expand(reshape(gradient!, kept), whole)]);
  return output;
}
