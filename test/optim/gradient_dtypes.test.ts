/** Gradients whose dtype differs from the parameter's: a step is the same as with the same gradient in float32. */
import { describe, expect, test } from "bun:test";
import { toDType } from "../../src/index.ts";
import { bitsOf, draw, make, type OptimizerName, on, parameterOf, tested } from "./run.ts";

const optimizers: readonly (readonly [OptimizerName, object])[] = [
  ["SGD", { lr: 0.1 }],
  ["SGD", { lr: 0.1, momentum: 0.9 }],
  ["AdamW", { lr: 0.01, amsgrad: true }],
  ["Lion", { lr: 0.01 }],
  ["RMSprop", { lr: 0.01, momentum: 0.9, centered: true }],
];
const dtypes = ["float32", "float16", "bfloat16"] as const;
/** Sizes below, at and above the number of elements that kernels convert at once, and a size for several threads. */
const sizes = [1, 511, 512, 513, 1500, 40_000];

describe.each(tested)("a step on %s", (backend) => {
  test.each(optimizers)("%s %j steps with gradients of another dtype", (name, options) => {
    on(backend, () => {
      for (const [at, size] of (backend === "cpu" ? sizes : sizes.slice(0, 5)).entries())
        for (const dtype of dtypes)
          for (const narrow of ["float16", "bfloat16"] as const) {
            const gradient = draw(size, at, narrow);
            const step = (isWide: boolean) => {
              const parameter = parameterOf(draw(size, size, dtype), dtype);
              const given = parameterOf(gradient, narrow).detach();
              parameter.grad = isWide ? toDType(given, "float32") : given;
              const optimizer = make(name, [parameter], { ...options, masterWeights: at % 2 === 1 });
              optimizer.step();
              return [bitsOf([parameter]), bitsOf(Object.values(optimizer.stateDict().tensors))];
            };
            expect([dtype, narrow, size, ...step(false)]).toEqual([dtype, narrow, size, ...step(true)]);
          }
    });
  });
});
