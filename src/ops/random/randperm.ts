import type { Primitive } from "../../backend/backend.ts";
import { DTypeError } from "../../errors.ts";
import { philox } from "../../random/philox.ts";
import { type DType, integerRange, isFloat } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkCreation, create } from "../creation/create.ts";
import { nextStart, type RandomOptions, type RandomStart } from "./distribution.ts";
import { permutationCpu } from "./randperm.cpu.ts";
import { permutationMetal } from "./randperm.metal.ts";
import { permutationReference } from "./randperm.reference.ts";

/**
 * @internal A permutation of 0 … n − 1 whose every element is a function of its place, with no sort and no memory beside the result.
 *
 * A Feistel network of {@link ROUNDS} rounds permutes the numbers of `leftBits + rightBits` bits: in turn, one half is changed by a mix of the
 * other half and a key (Luby and Rackoff, 1988). A place that lands at n or beyond walks on until it is below (Black and Rogaway, "Ciphers with
 * arbitrary finite domains", 2002). A network makes even permutations only, so that even and odd ones of the places would not be as
 * frequent: a further bit of the key says whether places 0 and 1 change before.
 */
export interface PermutationAttributes {
  readonly leftBits: number;
  readonly rightBits: number;
  /** Whether places 0 and 1 change before. */
  readonly swaps: boolean;
  /** 32 bits each, one a round. */
  readonly keys: readonly number[];
}

const ROUNDS = 24;
const LEAST_BITS = 6;

const permutationPrimitive: Primitive<PermutationAttributes> = {
  name: "randperm",
  implementations: { metal: permutationMetal, cpu: permutationCpu, reference: permutationReference },
};

/**
 * The numbers 0 to n − 1 in random order.
 *
 * @param options `dtype`, by default int64; `generator`
 *
 * @example
 * const order = randperm(images.shape[0]);
 *
 * @throws {ShapeError} for an n that is no whole number of at least 0. @throws {DTypeError} where the dtype can't hold n − 1.
 */
export function randperm<D extends DType = "int64">(n: number, options: RandomOptions<D> = {}): Tensor<D> {
  const dtype = options.dtype ?? ("int64" as D);
  checkCreation("randperm", [n], dtype, options);
  if (n > 0 && n - 1 > mostOf(dtype))
    throw new DTypeError(
      "randperm",
      "doesNotFit",
      `${n - 1} is among the numbers; ${dtype} holds up to ${mostOf(dtype)}`,
    );
  return create("randperm", permutationPrimitive, [n], dtype, networkOf(n, nextStart(options)), options);
}

/** The network of a call: its size by n, its keys by the words of blocks 0 to 6. */
function networkOf(n: number, { key, counter }: RandomStart): PermutationAttributes {
  const bits = Math.max(LEAST_BITS, Math.ceil(Math.log2(Math.max(n, 1))));
  const leftBits = bits >> 1;
  const words = Array.from({ length: ROUNDS / 4 + 1 }, (_, block) =>
    philox([block, 0, counter[2], counter[3]], key),
  ).flat();
  const swaps = n > 1 && words[ROUNDS]! % 2 === 1;
  return { leftBits, rightBits: bits - leftBits, swaps, keys: words.slice(0, ROUNDS) };
}

const mostWhole = { float64: 2 ** 53, float32: 2 ** 24, float16: 2 ** 11, bfloat16: 2 ** 8 } as const;

/** The largest number up to which a dtype holds every whole one. */
const mostOf = (dtype: DType): number => (isFloat(dtype) ? mostWhole[dtype] : Number(integerRange(dtype)[1]));
