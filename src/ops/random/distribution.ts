import { definePrimitive } from "../../backend/primitive.ts";
import { instanceOf } from "../../core/kinds.ts";
import { type Kind, named } from "../../core/parameters.ts";
import { defaultGenerator, Generator } from "../../random/generator.ts";
import { type BatchLevel, batchLevels, VmapError } from "../../tensor/batched.ts";
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
  /** The random number generator. Default: the global one, which `manualSeed` seeds. */
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
export function nextStart({ generator = defaultGenerator }: GeneratorOptions): RandomStart {
  const start = (): RandomStart => ({ key: generator.nextKey(), counter: [0, 0, 0, 0] });
  const levels = batchLevels.get();
  return levels.length === 0 ? start() : startOfExamples(start, levels);
}

/** Returns a start for each example of the running `vmap`s: see {@link Randomness}. @throws {VmapError} */
function startOfExamples(start: () => RandomStart, levels: readonly BatchLevel[]): RandomStart {
  const level = levels.at(-1);
  const others = levels.slice(0, -1);
  if (level === undefined) return start();
  if (level.randomness === "error")
    throw new VmapError(
      "vmap",
      "randomness",
      'random numbers require { randomness: "different" } (different numbers for each example) or "same"',
    );
  if (level.randomness === "same") return startOfExamples(start, others);
  const examples = Array.from({ length: level.size }, () => startOfExamples(start, others));
  return { ...(examples[0] ?? start()), perExample: { level, examples } };
}

/** @internal Returns attributes that contain a start, and the starts of the examples of `vmap`. */
export function fromStart<A extends object>(start: RandomStart, make: (start: RandomStart) => A): A {
  const { perExample } = start;
  if (!perExample) return make(start);
  const examples = perExample.examples.map((example) => fromStart(example as RandomStart, make));
  return { ...make(start), perExample: { ...perExample, examples } };
}

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
