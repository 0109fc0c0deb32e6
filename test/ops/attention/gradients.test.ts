/** Gradients compared with finite differences in float64, for each option; and gradients of gradients. */
import { describe, expect, test } from "bun:test";
import { enableGrad } from "../../../src/autograd/modes.ts";
import { withBackend } from "../../../src/backend/policy.ts";
import { flashAttention } from "../../../src/ops/attention/flash_attention.ts";
import { tensor } from "../../../src/ops/creation/tensor.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import { gradcheck } from "../../../src/ops/gradient/gradcheck.ts";
import { Generator } from "../../../src/random/generator.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { isExhaustive, repeats, usually } from "../../support/repeats.ts";
import { Random } from "../samples.ts";
import { caseOf, goTogether, type OptionName, optionNames } from "./cases.ts";
import { type Call, drawCall } from "./draw.ts";
import { on, type Way, ways } from "./run.ts";

/**
 * The cost of finite differences of gradients is the square of the number of elements, so a usual run has smaller
 * heads.
 */
const sizes = [2, 4, 5, ...(isExhaustive ? ([3, 2] as const) : ([2, 1] as const))] as const;

/** Options alone, and in pairs that occur together in the gradient's formula. */
const combinations: readonly (readonly OptionName[])[] = [
  [],
  ...optionNames.map((name) => [name]),
  ...([
    ["dropout", "logSumExp"],
    ["dropout", "bias"],
    ["dropout", "softcap"],
    ["softcap", "bias"],
    ["softcap", "grouped"],
    ["sinks", "logSumExp"],
    ["sinks", "maskOfKeys"],
    ["packed", "causal"],
    ["packed", "biasOfHeads"],
    ["mask", "bias"],
    ["grouped", "biasOfKeys"],
    ["windowLeft", "slopes"],
  ] as const satisfies readonly (readonly OptionName[])[]),
].filter(goTogether);

/** The call as a function of its leaves; dropout draws the same each time. */
function functionOf({ leaves, options }: Call, way: Way, withLogSumExp: boolean) {
  const state = options.generator!.getState();
  const names = [...leaves.keys()];
  return (...values: Tensor[]): Tensor[] => {
    const [q, k, v] = values as [Tensor, Tensor, Tensor];
    const named = Object.fromEntries(names.map((name, at) => [name, values[at]]));
    const generator = new Generator(0).setState(state);
    const { bias, sinks } = named;
    const all = { ...options, bias, sinks, generator, path: way.path, returnLogSumExp: true } as const;
    const { out, logSumExp } = flashAttention(q, k, v, all);
    return withLogSumExp ? [out, logSumExp] : [out];
  };
}

/** A variable with the same elements, row-major, as finite differences require. */
const variable = (x: Tensor): Tensor =>
  tensor(x.dataSync() as Float64Array, { dtype: "float64", shape: x.shape, requiresGrad: true });

/** The backends that compute float64 in float64. */
const inFloat64 = ways.filter(({ backend }) => backend !== "metal");
const rows = combinations.map((names) => [names.join(" and ") || "no option", names] as const);

describe.each(inFloat64)("gradients of attention on $name", (way) => {
  test.each(rows)("gradients equal finite differences with %s", (_, names) => {
    withBackend(way.backend, () => {
      const of = caseOf(names, sizes, 5);
      const call = drawCall(of, "float64", way.backend, new Random(names.length + 3));
      const leaves = [...call.leaves.values()].map(variable);
      expect(gradcheck(functionOf(call, way, of.logSumExp === true), leaves)).toBe(true);
    });
  });

  // A usual run tests each row in one way only, in rotation, because these finite differences are the slowest tests
  // here.
  test.each(usually(rows, (_, at) => at % inFloat64.length === inFloat64.indexOf(way)))(
    "gradients of gradients equal finite differences with %s",
    (_, names) => {
      withBackend(way.backend, () => {
        const of = caseOf(names, sizes, 5);
        const call = drawCall(of, "float64", way.backend, new Random(names.length + 4));
        const compute = functionOf(call, way, of.logSumExp === true);
        const leaves = [...call.leaves.values()].map(variable);
        const cotangents = [call.gradOut, call.gradLogSumExp].filter((each) => each !== undefined).map(variable);
        const first = (...values: Tensor[]): Tensor[] => {
          const [inputs, gradOutputs] = [values.slice(0, leaves.length), values.slice(leaves.length)];
          return enableGrad(() => grad(compute(...inputs), inputs, { gradOutputs, createGraph: true }));
        };
        expect(gradcheck(first, [...leaves, ...cotangents])).toBe(true);
      });
    },
  );
});

function unit(values: readonly number[]): number[] {
  const length = Math.sqrt(dot(values, values));
  return values.map((value) => value / length);
}
const sumOf = (a: readonly number[], b: readonly number[]): number[] => a.map((value, at) => value + b[at]);

/**
 * The error of {@link slopeAlong} that rounding causes, at four standard deviations: independent errors of 2⁻²⁴ of each
 * result add up to 2⁻²⁴ ‖results ∘ weights‖, and (4 / 3) / (2 / 32) times the difference of two such sums is 30 times
 * as large.
 */
const roundingOf = (results: readonly number[][], weights: readonly number[][]): number =>
  4 *
  30 *
  2 ** -24 *
  Math.hypot(...results.flatMap((each, at) => each.map((value, index) => value * weights[at][index])));

/** Along a direction of length 1, by Richardson extrapolation of central differences, with an error of ε⁴. */
function slopeAlong(weighted: (step: number) => number): number {
  const central = (epsilon: number) => (weighted(epsilon) - weighted(-epsilon)) / (2 * epsilon);
  return (4 * central(1 / 32) - central(1 / 16)) / 3;
}

const numbersOf = (x: Tensor): number[] => Array.from(x.dataSync(), Number);

const dot = (a: readonly number[], b: readonly number[]): number =>
  a.reduce((total, value, at) => total + value * b[at], 0);

describe.each(ways)("gradients in float32 on $name are accurate", (way) => {
  const isSlow = way.backend === "metal"; // usually every other combination there
  test.each(isSlow ? usually(rows, (_, at) => at % 2 === 0) : rows)(
    "gradients agree with %s, along a direction halfway between the gradient and a random one",
    (_, names) => {
      on(way, () => {
        const of = caseOf(names, [repeats({ usual: 1, all: 2 }), 20, 37, 16, 8], 6);
        const call = drawCall(of, "float32", way.backend, new Random(names.length + 8));
        const compute = functionOf(call, way, of.logSumExp === true);
        const leaves = [...call.leaves.values()];
        const gradOutputs = [call.gradOut, ...(call.gradLogSumExp ? [call.gradLogSumExp] : [])];
        const results = compute(...leaves);
        const gradients = grad(results, leaves, { gradOutputs }).map(numbersOf);
        const cotangents = gradOutputs.map(numbersOf);
        const rounding = roundingOf(results.map(numbersOf), cotangents);
        for (const [at, leaf] of leaves.entries()) {
          const values = numbersOf(leaf);
          const own = gradients[at];
          const random = new Random(at);
          const direction = unit(sumOf(unit(own), unit(own.map(() => random.next() - 0.5))));
          const numerical = slopeAlong((step) => {
            const moved = Float32Array.from(values, (value, index) => value + step * direction[index]);
            const inputs = leaves.with(at, tensor(moved, { shape: leaf.shape }));
            return compute(...inputs).reduce(
              (total, result, index) => total + dot(numbersOf(result), cotangents[index]),
              0,
            );
          });
          expect(Math.abs(dot(own, direction) - numerical)).toBeLessThan(2e-3 * Math.sqrt(dot(own, own)) + rounding);
        }
      });
    },
  );
});
