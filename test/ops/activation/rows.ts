/** Shared by the tests of activations: rows of the table, gradients of gradients, gradients at given points. */
import { describe, expect, test } from "bun:test";
import { enableGrad } from "../../../src/autograd/modes.ts";
import { withBackend } from "../../../src/backend/policy.ts";
import { tensor } from "../../../src/ops/creation/tensor.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import { gradcheck } from "../../../src/ops/gradient/gradcheck.ts";
import { normal } from "../../../src/ops/random/randn.ts";
import { Generator } from "../../../src/random/generator.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { floats, mapped, sampleOf, specials, unarySamples } from "../elementwise/oracle.ts";
import { tested } from "../run.ts";
import type { Values } from "../samples.ts";
import type { OperationRow } from "../table.ts";

export interface ActivationOptions {
  /** Default: −2 to 2. Gradients are compared at these values: choose them between kinks. */
  readonly values?: Values;
  /** The error of a result in units in the last place. Default 4. */
  readonly ulps?: number;
  /** Whether results are multiples of an exponential, which has fewer digits in float32 where it is subnormal. */
  readonly isMultipleOfExponential?: boolean;
}

/** A subnormal exponential has an error of up to 2⁻¹⁵⁰, and is multiplied by up to a few hundred. */
const faintest = 6 * 2 ** -118;

/** An elementwise function of floats, with its formula in float64. */
export const activationRow = (
  name: string,
  compute: (x: Tensor) => Tensor,
  formula: (x: number) => number,
  { values, ulps = 4, isMultipleOfExponential = false }: ActivationOptions = {},
): OperationRow => ({
  name,
  compute: ([x]) => compute(x),
  dtypes: floats,
  samples: [...unarySamples(values), sampleOf("specials", specials)],
  oracle: (blocks) => {
    const expected = mapped(blocks, formula);
    const isFaint = isMultipleOfExponential && blocks[0].dtype !== "float64";
    return isFaint ? { ...expected, roundings: expected.values.map(() => faintest) } : expected;
  },
  accuracy: { ulps },
  gradient: true,
});

/** The gradient of a function, as a function of the cotangent and the operands. */
export const gradientOf =
  (compute: (...operands: Tensor[]) => Tensor) =>
  (cotangent: Tensor, ...operands: Tensor[]): Tensor[] => {
    // Finite differences pass operands that do not require gradients.
    for (const operand of operands) if (operand.edge === null) operand.requiresGrad = true;
    return enableGrad(() => grad([compute(...operands)], operands, { gradOutputs: [cotangent], createGraph: true }));
  };

/** A leaf in float64, normally distributed. */
export function leaf(shape: readonly number[], seed: number, deviation = 1): Tensor {
  const x = normal(0, deviation, shape, { dtype: "float64", generator: new Generator(seed) });
  x.requiresGrad = true;
  return x;
}

/** Gradients of gradients, by finite differences. */
export function testSecondGradients(functions: Readonly<Record<string, (x: Tensor) => Tensor>>): void {
  describe.each(["cpu", "reference"] as const)("gradients of gradients on %s", (backend) => {
    test.each(Object.entries(functions))("%s", (_name, compute) => {
      withBackend(backend, () => gradcheck(gradientOf(compute), [leaf([5, 4], 1), leaf([5, 4], 2, 2.5)]));
    });
  });
}

/** Exact derivatives at points such as kinks, on every backend in float32. */
export function testDerivatives(
  name: string,
  compute: (x: Tensor) => Tensor,
  { at, are }: { readonly at: readonly number[]; readonly are: readonly number[] },
): void {
  test.each(tested)(`derivatives of ${name} at given points on %s`, (backend) => {
    withBackend(backend, () => {
      const x = tensor([...at], { requiresGrad: true });
      const [found] = grad([compute(x)], [x], { gradOutputs: [tensor(at.map(() => 1))] });
      const values = Array.from(found.dataSync() as Float32Array, (value) => value + 0); // -0 is 0
      expect(values).toEqual(are.map(Math.fround));
    });
  });
}
