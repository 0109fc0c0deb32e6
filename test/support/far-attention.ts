/**
 * A program for `test/ops/attention/offsets.test.ts`. It computes attention on operands and results whose elements are
 * far apart along one axis. On Metal an operand spans more than 2³³ elements. JavaScript has no arrays of more than 4
 * GB, so on the other backends only the mask is that large: its elements are bytes, and it spans more than 2³¹. No
 * buffer of that size occupies memory: pages are allocated when they are touched. Its argument is the name of a
 * backend, and it prints a line of JSON for each axis.
 */

import { executeInto } from "../../src/backend/dispatch.ts";
import { metalContext } from "../../src/backend/metal/context.ts";
import type { BackendName } from "../../src/backend/names.ts";
import { withBackend, withStrict } from "../../src/backend/policy.ts";
import { attentionBackward, attentionForward } from "../../src/ops/attention/passes.ts";
import {
  type AttentionAttributes,
  dropoutOf,
  type InputName,
  type OutputName,
} from "../../src/ops/attention/problem.ts";
import { copy_, empty, gt, randn } from "../../src/ops/index.ts";
import { Generator } from "../../src/random/generator.ts";
import type { DType } from "../../src/tensor/dtype.ts";
import { Tensor } from "../../src/tensor/tensor.ts";

/** Results with dense operands, and with operands that are far apart. */
export interface FarResults {
  readonly axis: number;
  /** Few queries use Metal's vector kernel. */
  readonly queries: number;
  /** The largest offset of an element. */
  readonly offset: number;
  /** The elements of each result. */
  readonly near: readonly (readonly number[])[];
  readonly far: readonly (readonly number[])[];
}

const [batch, heads, keys, dim] = [2, 2, 40, 8] as const;

/** Strides that put the last index of `axis` beyond `distance` elements, and keep the others adjacent. */
function farStrides(shape: readonly number[], axis: number, distance: number): number[] {
  const far = Math.ceil(distance / (shape[axis] - 1) / 8 + 1) * 8;
  const others = shape.with(axis, 1);
  return others.map((_, at) => others.slice(at + 1).reduce((product, size) => product * size, 1)).with(axis, far);
}

const lastOffset = ({ shape, strides }: Tensor): number =>
  shape.reduce((sum, size, at) => sum + (size - 1) * strides[at], 0);

type Make = (shape: readonly number[], dtype: DType) => Tensor;

const makeNear: Make = (shape, dtype) => empty(shape, { dtype });

/** Allocates private memory if the backend has any, since JavaScript's arrays are limited. */
const makeFar =
  (axis: number, distance: number, canBeFar: (dtype: DType) => boolean): Make =>
  (shape, dtype) => {
    if (!canBeFar(dtype) || shape.length <= axis) return makeNear(shape, dtype);
    const strides = farStrides(shape, axis, distance);
    const length = 1 + shape.reduce((sum, size, at) => sum + (size - 1) * strides[at], 0);
    return new Tensor(empty([length], { dtype, storage: "private" }).storage, dtype, shape, strides);
  };

const attributes: AttentionAttributes = {
  inputs: ["q", "k", "v", "mask", "bias"],
  outputs: ["out", "logSumExp", "logSumExpLow"],
  scale: 0.5,
  softcap: undefined,

  band: { left: Infinity, right: 0 },
  alignment: "bottom-right",
  packed: undefined,
  dropout: dropoutOf(0.2, [1, 2]),
};
const backwardAttributes: AttentionAttributes = {
  ...attributes,
  inputs: [...attributes.inputs, ...(["out", "logSumExp", "logSumExpLow", "gradOut"] as const)],
  outputs: ["gradQ", "gradK", "gradV", "gradBias"],
};

/** Computes both passes. `make` gives operands and results their layouts. */
function results(make: Make, queries: number): Pick<FarResults, "far" | "offset"> {
  const generator = new Generator(3);
  const drawn = (rows: number, columns: number, dtype: DType = "float16"): Tensor => {
    const values = randn([batch, heads, rows, columns], { generator });
    return copy_(make(values.shape, dtype), dtype === "bool" ? gt(values, -1) : values);
  };
  const operands: Partial<Record<InputName | OutputName, Tensor>> = {
    q: drawn(queries, dim),
    k: drawn(keys, dim),
    v: drawn(keys, dim),
    gradOut: drawn(queries, dim),
    mask: drawn(queries, keys, "bool"),
    bias: drawn(queries, keys),
    out: make([batch, heads, queries, dim], "float16"),
    logSumExp: make([batch, heads, queries], "float32"),
    logSumExpLow: make([batch, heads, queries], "float32"),
    gradQ: make([batch, heads, queries, dim], "float16"),
    gradK: make([batch, heads, keys, dim], "float16"),
    gradV: make([batch, heads, keys, dim], "float16"),
    gradBias: make([batch, heads, queries, keys], "float16"),
  };
  const named = (names: readonly (InputName | OutputName)[]): Tensor[] => names.map((name) => operands[name]!);
  for (const [primitive, pass] of [
    [attentionForward, attributes],
    [attentionBackward, backwardAttributes],
  ] as const)
    executeInto(primitive, named(pass.inputs), named(pass.outputs), pass);
  const written = named([...attributes.outputs, ...backwardAttributes.outputs]);
  return {
    far: written.map((x) => Array.from(copy_(makeNear(x.shape, x.dtype), x).dataSync(), Number)),
    offset: Math.max(...Object.values(operands).map(lastOffset)),
  };
}

const backend = process.argv[2] as BackendName;
if (backend === "metal") metalContext().configure("poison", false); // poisoning would touch every page
withStrict(true, () =>
  withBackend(backend, () => {
    for (const queries of [keys, 3]) {
      const { far: near } = results(makeNear, queries);
      for (const axis of [0, 1, 2, 3]) {
        const make =
          backend === "metal"
            ? makeFar(axis, 2 ** 33, () => true)
            : makeFar(axis, 2 ** 31, (dtype) => dtype === "bool");
        console.log(JSON.stringify({ axis, queries, near, ...results(make, queries) } satisfies FarResults));
      }
    }
  }),
);
