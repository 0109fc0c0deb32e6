/** Complex numbers: values, gradients and second-order gradients as PyTorch's, on every backend, in drawn layouts. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { withBackend } from "../../../src/backend/policy.ts";
import * as orchard from "../../../src/index.ts";
import type { DType } from "../../../src/tensor/dtype.ts";
import { isComplex, realDType } from "../../../src/tensor/dtype.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { operandIn } from "./layouts.ts";

interface Given {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly data: readonly (number | string | boolean)[];
}
interface Case {
  readonly op: string;
  readonly inputs: readonly Given[];
  readonly options?: { readonly dim?: number | readonly number[]; readonly p?: string };
  readonly output: Given;
  readonly seed?: Given;
  readonly gradients?: readonly Given[];
  readonly seeds?: readonly (Given | null)[];
  readonly second?: readonly (Given | null)[];
}
interface Fixtures {
  readonly cases: readonly Case[];
  readonly special: { readonly points: Given["data"]; readonly results: Readonly<Record<string, Given["data"]>> };
}

const file = join(import.meta.dir, "..", "..", "fixtures", "complex", "pytorch.json");
const { cases, special } = JSON.parse(readFileSync(file, "utf8")) as Fixtures;

/** Operations whose arguments differ from PyTorch's. */
const forms: Readonly<Record<string, (inputs: readonly Tensor[], options: Case["options"]) => Tensor>> = {
  cat: ([a, b]) => orchard.cat([a, b], 1),
  flip: ([x]) => orchard.flip(x, 0),
  gather: ([x, index]) => orchard.gather(x, 1, index as Tensor<"int64">),
  norm: ([x], options) =>
    orchard.norm(x, {
      p: options?.p === "inf" ? Number.POSITIVE_INFINITY : Number(options?.p ?? 2),
      dim: options?.dim as number[],
    }),
  roll: ([x]) => orchard.roll(x, 1, 0),
  scatterAdd: ([x, index, source]) => orchard.scatterAdd(x, 1, index as Tensor<"int64">, source),
};
const compute = ({ op, options }: Case, inputs: readonly Tensor[]): Tensor => {
  const call = (orchard as unknown as Record<string, (...values: unknown[]) => Tensor>)[op];
  return forms[op]?.(inputs, options) ?? call(...inputs, ...(options ? [options] : []));
};

const narrowed: Readonly<Partial<Record<DType, DType>>> = { complex128: "complex64", float64: "float32" };

const values = (data: Given["data"]): number[] => data.map(Number);
const make = ({ dtype, shape, data }: Given, isNarrow: boolean, seed: number): Tensor =>
  operandIn(seed, values(data), shape, (isNarrow ? narrowed[dtype] : undefined) ?? dtype);

/** The largest difference, relative to the largest element. */
function distance(got: Tensor, wanted: Given): number {
  expect(got.shape).toEqual([...wanted.shape]);
  expect(isComplex(got.dtype)).toBe(isComplex(wanted.dtype));
  const [a, b] = [[...(got.dataSync() as Float64Array)].map(Number), values(wanted.data)];
  const scale = Math.max(1e-3, ...b.map(Math.abs));
  return Math.max(0, ...a.map((value, at) => Math.abs(value - b[at]) / scale));
}

const tolerances = { complex64: 2e-5, complex128: 1e-11 } as const;

describe.each(["cpu", "reference", "metal"] as const)("complex numbers equal PyTorch's on %s", (backend) => {
  for (const dtype of ["complex64", "complex128"] as const) {
    if (backend === "metal" && dtype === "complex128") continue; // Metal has no float64
    test(`values and gradients equal PyTorch's in ${dtype}`, () => {
      withBackend(backend, () => {
        for (const [at, given] of cases.entries()) {
          const { op, inputs, output, seed, gradients, seeds, second } = given;
          const isNarrow = dtype === "complex64";
          const operands = inputs.map((input, position) => make(input, isNarrow, 7 * at + position));
          const leaves = operands.filter((operand) => isComplex(operand.dtype) || /float/.test(operand.dtype));
          for (const leaf of leaves) leaf.requiresGrad = true;
          const label = `${op} ${at} ${inputs.map(({ shape }) => shape.join("x")).join(" ")}`;
          const near = (got: Tensor, wanted: Given, what: string) => {
            const error = distance(got, wanted);
            if (!(error <= tolerances[dtype] * 4)) throw new Error(`${label}: ${what} is off by ${error}`);
          };
          const result = compute(given, operands);
          near(result, output, "the result");
          if (!seed) continue;
          const found = orchard.grad(result, leaves, {
            gradOutputs: [make(seed, isNarrow, at)],
            createGraph: seeds !== undefined,
          });
          for (const [place, gradient] of found.entries()) near(gradient, gradients![place], `gradient ${place}`);
          if (!seeds) continue;
          const roots = found.filter((_, place) => seeds[place]);
          const again = orchard.grad(roots, leaves, {
            gradOutputs: seeds.flatMap((one, place) => (one ? [make(one, isNarrow, at + place)] : [])),
            allowUnused: true,
          });
          for (const [place, gradient] of again.entries())
            if (second![place] && gradient) near(gradient, second![place], `second gradient ${place}`);
        }
      });
    });
  }
});

describe("complex signed zeros, infinities and NaN are as in PyTorch", () => {
  const points = operandIn(0, values(special.points), [special.points.length / 2], "complex128");
  for (const [name, wanted] of Object.entries(special.results))
    test(name, () => {
      const got = compute({ op: name } as Case, [points]);
      expect(got.dtype).toBe(wanted.length === special.points.length ? "complex128" : realDType("complex128"));
      const found = [...(got.dataSync() as Float64Array)];
      const parts = wanted.length === special.points.length ? 2 : 1;
      const different: string[] = [];
      for (let at = 0; at < wanted.length; at += parts) {
        const [a, b] = [found.slice(at, at + parts), values(wanted.slice(at, at + parts))];
        const z = values(special.points.slice((2 * at) / parts, (2 * at) / parts + 2));
        const isEqual = a.every((value, part) => value === b[part] || Math.abs(value - b[part]) < 1e-12);
        // For some NaNs, C99 returns NaN in one part, in both or in none; the library may return it in other parts.
        const isSame = isEqual || ([...z, ...b].some(Number.isNaN) && a.some(Number.isNaN));
        if (!isSame) different.push(`${name}(${z}) = ${a}, PyTorch ${b}`);
      }
      expect(different).toEqual([]);
    });
});
