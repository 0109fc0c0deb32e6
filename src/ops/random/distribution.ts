import { definePrimitive } from "../../backend/primitive.ts";
import { instanceOf } from "../../core/kinds.ts";
import { type Kind, named } from "../../core/parameters.ts";
import { defaultGenerator, Generator } from "../../random/generator.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type CreationOptions, checkCreation, checkFloat, create, creationOptions } from "../creation/create.ts";
import { distributionCpu } from "./distribution.cpu.ts";
import { distributionMetal } from "./distribution.metal.ts";
import { distributionReference } from "./distribution.reference.ts";
import type { Distribution, DistributionAttributes, RandomStart } from "./primitive.ts";

/** What every random function takes. */
export interface GeneratorOptions {
  /** Default: the one that `manualSeed` seeds. */
  generator?: Generator | undefined;
}

/** @internal */
export const aGenerator: Kind<Generator> = instanceOf(Generator, "a Generator");

/** What functions take that make a random tensor from nothing. */
export interface RandomOptions<D extends DType = DType> extends CreationOptions<D>, GeneratorOptions {}

/** @internal What they have to be. */
export const randomOptions = { ...creationOptions, generator: named(aGenerator) } as const;

/** Makes a dense tensor of random numbers: see `src/random/philox.ts`. */
export const distributionPrimitive = definePrimitive<DistributionAttributes>({
  name: "random",
  family: "random",
  implementations: { metal: distributionMetal, cpu: distributionCpu, reference: distributionReference },
});

/**
 * @internal Takes the next call of the generator, so that what follows does not depend on the backend that serves it.
 */
export const nextStart = ({ generator = defaultGenerator }: GeneratorOptions): RandomStart => ({
  key: generator.nextKey(),
  counter: [0, 0, 0, 0],
});

/** @internal A new tensor of random numbers. */
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

/** @internal A new tensor of random floats, by default of float32. */
export function drawFloats<D extends DType>(
  operation: string,
  shape: Shape,
  distribution: Distribution,
  options: RandomOptions<D>,
): Tensor<D> {
  const dtype = options.dtype ?? ("float32" as D);
  checkFloat(operation, dtype);
  return drawTensor(operation, shape, dtype, distribution, options);
}

/** @internal Words as they come, for tests of the generator itself. */
export const randomBits = (shape: Shape, start: RandomStart): Tensor<"uint32"> =>
  create("random", distributionPrimitive, shape, "uint32", {
    ...start,
    distribution: { kind: "bits" },
    dtype: "uint32",
  });
