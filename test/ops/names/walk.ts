/** The names of an enumeration, each with a function that computes its result for the same drawn operands. */

import type { Primitive } from "../../../src/backend/backend.ts";
import { execute } from "../../../src/backend/dispatch.ts";
import { loadedPrimitives } from "../../../src/backend/primitive.ts";
import type { Tensor } from "../../../src/index.ts";
import { tensor } from "../../../src/index.ts";
import type { DType } from "../../../src/tensor/dtype.ts";
import type { Shape } from "../../../src/tensor/shape.ts";
import { makeBlock, Random, type Values } from "../samples.ts";

/** A path from a primitive through its enumerations to a result. */
export interface Walk {
  readonly names: readonly string[];
  /** The operands. No name's result may equal one of them, except for names in `unchanged`. */
  readonly operands: () => readonly Tensor[];
  readonly compute: (name: string, operands: readonly Tensor[]) => Tensor | readonly Tensor[];
  /** Computes without any of the options. No name may give the same result, except for names in `unchanged`. */
  readonly base?: (operands: readonly Tensor[]) => readonly Tensor[];
  /** Sets of names that compute the same function for these operands. */
  readonly same?: readonly (readonly string[])[];
  /** Names whose result equals an operand, or the result without the option. */
  readonly unchanged?: readonly string[];
}

/** A tensor of drawn numbers, the same on every backend. */
export function drawn(label: string, shape: Shape, values: Values, dtype: DType = "float32"): Tensor {
  const seed = [...label].reduce((state, letter) => state * 31 + letter.charCodeAt(0), 7) >>> 0;
  return shaped(shape, makeBlock({ shape, values }, dtype, new Random(seed)).values, dtype);
}

/** A tensor of given numbers. */
export function shaped(shape: Shape, values: readonly number[], dtype: DType = "float32"): Tensor {
  const converted = dtype === "int64" ? values.map(BigInt) : dtype === "bool" ? values.map(Boolean) : values;
  return tensor(converted as number[], { dtype }).reshape(shape) as Tensor;
}

/** Runs a primitive by its name. */
export const run = (name: string, inputs: readonly Tensor[], shape: Shape, dtype: DType, attributes?: object): Tensor =>
  execute(loadedPrimitives().get(name) as unknown as Primitive<object>, inputs, shape, dtype, attributes!);

export const numbersOf = (result: Tensor | readonly Tensor[]): number[] =>
  [result].flat().flatMap((part) => flattened(part.toArray()));

const flattened = (value: unknown): number[] => (Array.isArray(value) ? value.flatMap(flattened) : [Number(value)]);

/** A copy that has a gradient. */
export function variable(x: Tensor): Tensor {
  const copy = x.clone() as Tensor;
  copy.requiresGrad = true;
  return copy;
}
