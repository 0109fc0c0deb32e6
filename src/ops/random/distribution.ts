import { definePrimitive } from "../../backend/primitive.ts";
import { instanceOf } from "../../core/kinds.ts";
import { type Kind, named } from "../../core/parameters.ts";
import { defaultGenerator, Generator } from "../../random/generator.ts";
import { type DType, isComplex } from "../../tensor/dtype.ts";
import type { Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type CreationOptions, checkCreation, checkFloat, create, creationOptions } from "../creation/create.ts";
import { distributionCpu } from "./distribution.cpu.ts";
import { distributionMetal } from "./distribution.metal.ts";
import { distributionReference } from "./distribution.reference.ts";
import type { Distribution, DistributionAttributes, RandomStart } from "./primitive.ts";

/** The generator option of all random functions. */
export interface GeneratorOptions {
  /** Default: the global generator, which `manualSeed` seeds. */
  generator?: Generator | undefined;
}

/** @internal */
export const aGenerator: Kind<Generator> = instanceOf(Generator, "a Generator");

/** Options of functions that create random tensors. */
export interface RandomOptions<D extends DType = DType> extends CreationOptions<D>, GeneratorOptions {}

/** @internal Kinds of {@link RandomOptions}. */
export const randomOptions = { ...creationOptions, generator: named(aGenerator) } as const;

/** Fills a contiguous tensor with random numbers; see `src/random/philox.ts`. */
export const distributionPrimitive = definePrimitive<DistributionAttributes>({
  name: "random",
  family: "random",
  implementations: { metal: distributionMetal, cpu: distributionCpu, reference: distributionReference },
});

/**
 * @internal Advances the generator by one call, so that later numbers do not depend on the backend that runs this one.
 */
export const nextStart = ({ generator = defaultGenerator }: GeneratorOptions): RandomStart => ({
  key: generator.nextKey(),
  counter: [0, 0, 0, 0],
});

/** @internal Creates a tensor of random numbers. */
export function drawTensor<D extends DType>(
  operation: string,
  shape: Shape,
  dtype: D,
  distribution: Distribution,
  options: RandomOptions,
): Tensor<D> {
  checkCreation(operation, shape, dtype, options);
  return create(
    operation,
    distributionPrimitive,
    shape,
    dtype,
    { ...nextStart(options), distribution, dtype },
    options,
  );
}

/** @internal Creates a tensor of random floats, by default float32. */
export function drawFloats<D extends DType>(
  operation: string,
  shape: Shape,
  distribution: Distribution,
  options: RandomOptions<D>,
  takesComplex = false,
): Tensor<D> {
  const dtype = options.dtype ?? ("float32" as D);
  if (!(takesComplex && isComplex(dtype))) checkFloat(operation, dtype);
  return drawTensor(operation, shape, dtype, distribution, options);
}

/** @internal Returns the raw words of the generator, for tests. */
export const randomBits = (shape: Shape, start: RandomStart): Tensor<"uint32"> =>
  create("random", distributionPrimitive, shape, "uint32", {
    ...start,
    distribution: { kind: "bits" },
    dtype: "uint32",
  });
