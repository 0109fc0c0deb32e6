/** Calls of every operation with random operands, from the calls that tests of all operations share. */
import * as library from "../../src/index.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { flatten } from "../../src/transforms/tree.ts";
import { calls, makeOperands, type Operands, operationNames } from "../ops/calls.ts";

const { gt, mul, add, rand, randint, manualSeed, ones } = library;

const functions = library as unknown as Readonly<Record<string, unknown>>;

/** An operation as a function of its tensors. */
export interface Sample {
  readonly name: string;
  readonly operands: readonly Tensor[];
  /** Calls the operation with other tensors in these places, with the same random numbers each time. */
  readonly call: (operands: readonly Tensor[]) => Tensor[];
}

/** Returns random elements: floats in [0.1, 0.9), indices of the first two places. */
export function drawn(dtype: Tensor["dtype"], shape: readonly number[]): Tensor {
  if (dtype === "bool") return gt(rand(shape), 0.5);
  if (dtype === "float32" || dtype === "float64") return add(mul(rand(shape, { dtype }), 0.8), 0.1) as Tensor;
  return dtype.includes("int") ? randint(0, 2, shape, { dtype }) : ones(shape, { dtype });
}

/** Operations that change their first operand: vmap.test.ts has cases of them. */
const changing = (name: string): boolean => name.endsWith("_");

/** Returns a call of each operation with operands of a size. @param dtype of operands that are floats */
export function samples(size: number, dtype: "float32" | "float64"): Sample[] {
  const given = Object.entries(makeOperands(size)).map(([name, { dtype: own, shape }]) => [
    name,
    drawn(own === "float32" ? dtype : own, shape),
  ]);
  const operands = Object.fromEntries(given) as unknown as Operands;
  return operationNames
    .filter((name) => !changing(name))
    .map((name): Sample => {
      const { leaves, rebuild } = flatten(calls[name](operands));
      const operation = functions[name] as (...values: unknown[]) => unknown;
      const call = (tensors: readonly Tensor[]) => {
        manualSeed(3);
        return flatten(operation(...(rebuild(tensors) as unknown[]))).leaves.slice();
      };
      return { name, operands: leaves, call };
    });
}

/** Returns the elements of a tensor, of complex numbers their parts. */
export const partsOf = (x: Tensor): ArrayLike<number | bigint> =>
  (x.dtype.startsWith("complex") ? library.viewAsReal(x as Tensor<"complex64">) : x).dataSync() as ArrayLike<number>;

/** The largest difference of elements, relative to those above 1; NaN only where the other is NaN. */
export function difference(found: ArrayLike<number | bigint>, expected: ArrayLike<number | bigint>): number {
  if (found.length !== expected.length) return Infinity;
  let worst = 0;
  for (let at = 0; at < expected.length; at++) {
    const [a, b] = [Number(found[at]), Number(expected[at])];
    if (Object.is(a, b) || (a === b && a === 0)) continue;
    const error = Math.abs(a - b) / (1 + Math.abs(b));
    if (!(error <= worst)) worst = Number.isNaN(error) ? Infinity : error;
  }
  return worst;
}
