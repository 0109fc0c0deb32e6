/** Draws a case's numbers, in the forms of the oracle and the library. */
import type { BackendName } from "../../../src/backend/names.ts";
import { withBackend } from "../../../src/backend/policy.ts";
import { dropoutMask } from "../../../src/ops/attention/dropout_mask.ts";
import type { FlashAttentionOptions } from "../../../src/ops/attention/options.ts";
import { dropoutOf, type Sequence } from "../../../src/ops/attention/problem.ts";
import { Generator } from "../../../src/random/generator.ts";
import type { DType } from "../../../src/tensor/dtype.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { expandedBlock, type Layout, makeBlock, place, type Random, type Values } from "../samples.ts";
import type { AttentionCase } from "./cases.ts";
import type { Cotangents, Pairs, Setup } from "./oracle.ts";

export type GradientName = "q" | "k" | "v" | "bias" | "sinks";

export interface Call {
  readonly setup: Setup;
  readonly cotangents: Cotangents;
  /** The operands with a gradient: q, k, v, and bias and sinks if there are any. */
  readonly leaves: ReadonlyMap<GradientName, Tensor>;
  readonly options: FlashAttentionOptions;
  readonly gradOut: Tensor;
  readonly gradLogSumExp: Tensor | undefined;
}

/** Numbers, and a tensor of these numbers. */
interface Drawn {
  readonly values: readonly number[];
  readonly tensor: Tensor;
}

type Draw = (shape: readonly number[], layout?: Layout, values?: Values, dtype?: DType) => Drawn;

const drawer = (dtype: DType, backend: BackendName, random: Random): Draw => {
  return (shape, layout = "contiguous", values, own = dtype) => {
    const block = makeBlock({ shape, ...(values && { values }) }, own, random);
    const kept = layout === "expanded" ? expandedBlock(block) : block;
    return { values: kept.values, tensor: place(kept, layout, backend, random) };
  };
};

/** The dtype of log-sum-exps. */
export const statistics = (dtype: DType): DType => (dtype === "float64" ? dtype : "float32");

/** The same numbers for the same seed, on every backend. */
export function drawCall(of: AttentionCase, dtype: DType, backend: BackendName, random: Random): Call {
  const draw = drawer(dtype, backend, random);
  const { batch, queries, keys, dim, valueDim, heads = 2, kvHeads = heads } = of;
  const rows = (count: number, length: number, columns: readonly number[], layout: Layout) =>
    draw(of.withoutHeads ? [batch, length, ...columns] : [batch, count, length, ...columns], layout);
  const q = rows(heads, queries, [dim], of.layouts[0]);
  const k = rows(kvHeads, keys, [dim], of.layouts[1]);
  const v = rows(kvHeads, keys, [valueDim], of.layouts[2]);
  const gradOut = rows(heads, queries, [valueDim], of.layouts[3]);
  const ofRows = of.withoutHeads ? [batch, queries] : [batch, heads, queries];
  const gradLogSumExp = of.logSumExp ? draw(ofRows, "strided", undefined, statistics(dtype)) : undefined;
  const extras = drawExtras(of, dtype, draw, random);
  const sizes = { batch, heads, kvHeads, queries, keys, dim, valueDim };
  const { causal, window, softcap, scale = 1 / Math.sqrt(dim) } = of;
  return {
    setup: { ...sizes, causal, window, softcap, scale, q: q.values, k: k.values, v: v.values, ...extras.setup },
    cotangents: { out: gradOut.values, logSumExp: gradLogSumExp?.values },
    leaves: parameters({ q, k, v, ...extras.leaves }),
    options: { causal, window, softcap, scale: of.scale, dropout: of.dropout, ...extras.options },
    gradOut: gradOut.tensor,
    gradLogSumExp: gradLogSumExp?.tensor,
  };
}

function parameters(drawn: Partial<Record<GradientName, Drawn | undefined>>): Map<GradientName, Tensor> {
  const leaves = new Map<GradientName, Tensor>();
  for (const [name, given] of Object.entries(drawn)) {
    if (!given) continue;
    given.tensor.requiresGrad = true;
    leaves.set(name as GradientName, given.tensor);
  }
  return leaves;
}

/** The operands other than q, k and v. */
function drawExtras(of: AttentionCase, dtype: DType, draw: Draw, random: Random) {
  const { batch, queries, keys, heads = 2 } = of;
  const sizes = [batch, heads, queries, keys] as const;
  const mask =
    of.mask === undefined
      ? undefined
      : drawPairs(of, sizes, of.mask, (shape) => draw(shape, "strided", { integers: [0, 3] }, "bool"));
  const bias = of.bias === undefined ? undefined : drawPairs(of, sizes, of.bias, (shape) => draw(shape, "transposed"));
  const sinks = of.sinks ? draw([heads], "strided") : undefined;
  const packed = of.packed ? { queries: cut(queries, random), keys: cut(keys, random) } : undefined;
  const count = of.slopes === "sequences" ? (packed ? SEQUENCES : batch) : 1;
  const shape = of.slopes === "heads" ? [heads] : [count, heads];
  const slopes = of.slopes && draw(shape, "transposed", { low: 0.05, high: 0.5 }, statistics(dtype));
  const generator = new Generator(random.integer(0, 2 ** 30));
  const keep = of.dropout === undefined ? undefined : keepOf(of.dropout, generator, packed, sizes);
  const perSequence =
    slopes && Array.from({ length: count }, (_, at) => slopes.values.slice(at * heads, (at + 1) * heads));
  return {
    setup: { mask: mask?.pairs, bias: bias?.pairs, sinks: sinks?.values, packed, slopes: perSequence, keep },
    leaves: { bias: bias?.drawn, sinks },
    options: {
      mask: mask?.drawn.tensor as Tensor<"bool"> | undefined,
      bias: bias?.drawn.tensor,
      sinks: sinks?.tensor,
      alibi: slopes?.tensor,
      cuSeqlens: packed,
      generator,
    },
  };
}

/** Draws an operand with some of the four axes of pairs. */
function drawPairs(of: AttentionCase, sizes: readonly number[], axes: string, draw: (shape: number[]) => Drawn) {
  const shape = sizes.map((size, axis) => (axes.includes("bhij"[axis]) ? size : 1));
  const whole = of.withoutHeads && axes.includes("b") ? shape.toSpliced(1, 1) : shape.slice("bhij".indexOf(axes[0]));
  const drawn = draw(whole);
  return { drawn, pairs: { shape, values: drawn.values } satisfies Pairs };
}

const SEQUENCES = 3;

/** Bounds of three sequences, which are sometimes empty. */
const cut = (length: number, random: Random): number[] => [
  0,
  ...[random.integer(0, length), random.integer(0, length)].sort((a, b) => a - b),
  length,
];

/**
 * The factors by which dropout multiplies probabilities, from the mask of the reference backend; `dropout.test.ts`
 * checks that mask against its definition.
 */
function keepOf(
  p: number,
  generator: Generator,
  packed: { readonly queries: readonly number[]; readonly keys: readonly number[] } | undefined,
  shape: readonly number[],
): Pairs {
  const state = generator.getState();
  const dropout = dropoutOf(p, generator.nextKey());
  generator.setState(state); // so that the call uses the same key
  const sequences = packed && sequencesOf(packed);
  const kept = withBackend("reference", () => dropoutMask({ dropout, packed: sequences }, shape).dataSync());
  return { shape, values: Array.from(kept, (value) => value / (1 - p)) };
}

const sequencesOf = (bounds: { readonly queries: readonly number[]; readonly keys: readonly number[] }): Sequence[] =>
  bounds.queries.slice(1).map((end, at) => ({
    queryStart: bounds.queries[at],
    queries: end - bounds.queries[at],
    keyStart: bounds.keys[at],
    keys: bounds.keys[at + 1] - bounds.keys[at],
  }));
