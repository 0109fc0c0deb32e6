/** The operations, one line a file. */
export * from "../random/generator.ts";
export * from "./creation/arange.ts";
export type { CreationOptions } from "./creation/create.ts";
export * from "./creation/eye.ts";
export * from "./creation/full.ts";
export * from "./creation/linspace.ts";
export * from "./creation/tensor.ts";
export * from "./random/bernoulli.ts";
export type { GeneratorOptions, RandomOptions } from "./random/distribution.ts";
export * from "./random/multinomial.ts";
export * from "./random/rand.ts";
export * from "./random/randint.ts";
export * from "./random/randn.ts";
export * from "./random/randperm.ts";
