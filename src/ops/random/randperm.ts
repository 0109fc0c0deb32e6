import { definePrimitive } from "../../backend/primitive.ts";
import { DTypeError } from "../../core/errors.ts";
import { someNumber } from "../../core/kinds.ts";
import { parameters, required } from "../../core/parameters.ts";
import { type Permutation, permutationOf } from "../../random/permutation.ts";
import { type DType, integerRange, isFloat, type RealDType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkCreation, checkReal, create } from "../creation/create.ts";
import { fromStart, nextStart, type RandomOptions, randomOptions } from "./distribution.ts";
import { permutationCpu } from "./randperm.cpu.ts";
import { permutationMetal } from "./randperm.metal.ts";
import { permutationReference } from "./randperm.reference.ts";

const permutationPrimitive = definePrimitive<Permutation>({
  name: "randperm",
  family: "random",
  implementations: { metal: permutationMetal, cpu: permutationCpu, reference: permutationReference },
});

/**
 * Returns the numbers 0 to n − 1 in random order.
 *
 * @param options `dtype`: default int64; `generator`
 * @returns [n]
 *
 * @example
 * const order = randperm(images.shape[0]);
 *
 * @throws {ShapeError} if n is not a whole number of at least 0.
 * @throws {DTypeError} if the dtype can't hold n − 1.
 */
export function randperm<D extends DType = "int64">(n: number, options?: RandomOptions<D>): Tensor<D>;
export function randperm(...values: unknown[]): Tensor {
  const { n, dtype = "int64", ...options } = randpermParameters(values);
  checkCreation("randperm", [n], dtype, options);
  checkReal("randperm", dtype);
  if (n > 0 && n - 1 > mostOf(dtype))
    throw new DTypeError(
      "randperm",
      "doesNotFit",
      `expected numbers up to ${mostOf(dtype)} for ${dtype}, got ${n - 1}`,
    );
  const permutation = fromStart(nextStart(options), ({ key, counter }) =>
    permutationOf(n, key, [counter[2], counter[3]]),
  );
  return create("randperm", permutationPrimitive, [n], dtype, permutation, options);
}

const randpermParameters = parameters("randperm", { n: required(someNumber), ...randomOptions });

const mostWhole = { float64: 2 ** 53, float32: 2 ** 24, float16: 2 ** 11, bfloat16: 2 ** 8 } as const;

/** The largest n such that a dtype holds all whole numbers from 0 to n. */
const mostOf = (dtype: RealDType): number => (isFloat(dtype) ? mostWhole[dtype] : Number(integerRange(dtype)[1]));
