/**
 * Computes the expected results and gradients of a sample: the oracle and the reference backend's gradients. Neither
 * depends on the backend under test, so all backends share them.
 */
import { withBackend } from "../../src/backend/policy.ts";
import { grad } from "../../src/ops/gradient/backward.ts";
import { type DType, isFloat } from "../../src/tensor/dtype.ts";
import { broadcastShapes } from "../../src/tensor/shape.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { repeated, sumMagnitudes } from "./broadcast.ts";
import { type Block, expandedBlock, hash, makeBlock, type OperandSpec, place, Random, rounder } from "./samples.ts";
import { type Expected, exactly, type OperationRow, type Sample } from "./table.ts";

type Row = OperationRow<unknown>;
type Numbers = readonly number[];

/** Expected values of one sample, the same for every backend. */
export interface Wanted {
  readonly blocks: readonly Block[];
  /** The seed of the random cotangents: see {@link passesOf}. */
  readonly seed: number;
  readonly exact: readonly Expected[];
  /** The oracle with each step rounded; only FlashAttention's rule reads it, so it is computed on demand. */
  readonly plain: () => readonly Expected[];
  readonly gradients: () => WantedGradients;
}

/** One list of numbers for each operand that has a gradient. */
export interface WantedGradients {
  readonly exact: readonly Numbers[];
  /** The results of the plain computation in the dtype of the test. */
  readonly plain: readonly Numbers[];
  /** The permitted error of each element: see {@link Expected}'s `roundings`. */
  readonly roundings: readonly Numbers[];
}

let latest: { readonly row: Row; readonly dtype: DType; readonly samples: Map<Sample<unknown>, Wanted> } | undefined;

/**
 * Returns the expected values of a sample. They are kept until another row or dtype follows, so that the backends share
 * them.
 */
export function wantedOf(row: Row, sample: Sample<unknown>, dtype: DType): Wanted {
  if (latest?.row !== row || latest.dtype !== dtype) latest = { row, dtype, samples: new Map() };
  const known = latest.samples.get(sample);
  if (known) return known;
  const wanted = computeWanted(row, sample, dtype);
  latest.samples.set(sample, wanted);
  return wanted;
}

/** Frees the expected values of the last row. */
export function forgetWanted(): void {
  latest = undefined;
}

function computeWanted(row: Row, sample: Sample<unknown>, dtype: DType): Wanted {
  const random = new Random(hash(`${row.name} ${nameOf(sample)} ${dtype}`));
  const blocks = sample.inputs.map((spec) => blockOf(spec, dtype, random));
  const seed = Math.floor(random.next() * 2 ** 31);
  return {
    blocks,
    seed,
    exact: withRoundings(row, sample, blocks, asList(row.oracle(blocks, sample.options, exactly))),
    plain: once(() => asList(row.oracle(blocks, sample.options, rounder(dtype)))),
    gradients: once(() => wantedGradients(row, sample, blocks, seed, dtype)),
  };
}

function once<Value>(compute: () => Value): () => Value {
  let known: { readonly value: Value } | undefined;
  return () => {
    known ??= { value: compute() };
    return known.value;
  };
}

function blockOf(spec: OperandSpec, dtype: DType, random: Random): Block {
  const block = makeBlock(spec, dtype, random);
  return spec.layout === "expanded" ? expandedBlock(block) : block;
}

/** The permitted errors of results where operands are multiplied and summed: see `sumLength`. */
function withRoundings(
  row: Row,
  { options }: Sample<unknown>,
  blocks: readonly Block[],
  expected: readonly Expected[],
): readonly Expected[] {
  if (!row.sumLength) return expected;
  const roundings = roundingsOf(row.sumLength(blocks, options), blocks[0].dtype);
  const magnitudes = asList(row.oracle(blocks.map(absolute), options, exactly));
  return expected.map((want, at) => ({ ...want, roundings: magnitudes[at].values.map((sum) => roundings * sum) }));
}

const absolute = (block: Block): Block => ({ ...block, values: block.values.map(Math.abs) });

/**
 * Returns the rounding errors of a sum of n terms, in units of the sum of their magnitudes: see `sumLength`. For
 * float64, the oracle has the same errors too, which doubles them.
 */
export const roundingsOf = (terms: number, dtype: DType): number =>
  2 * Math.sqrt(terms) * (dtype === "float64" ? 2 : 1);

/** The reference backend's gradients, in float64 and in the dtype of the test, from the same values. */
function wantedGradients(
  row: Row,
  sample: Sample<unknown>,
  blocks: readonly Block[],
  seed: number,
  dtype: DType,
): WantedGradients {
  const from = (operands: readonly Block[], ofCotangents?: (value: number) => number): readonly Numbers[] => {
    const padding = new Random(seed);
    const inputs = operands.map((block) => place(block, "contiguous", "reference", padding));
    const passes = withBackend("reference", () => passesOf(row, sample, inputs, seed, dtype, ofCotangents));
    return passes.gradients.map((gradient) => Array.from(gradient.dataSync() as ArrayLike<number>));
  };
  const exact = from(blocks.map(widened));
  const isWide = blocks.every((block) => widened(block).dtype === block.dtype);
  return {
    exact,
    plain: isWide ? exact : from(blocks), // if the test's dtype is float64, this is the same computation
    roundings: gradientRoundings(row, sample, blocks, exact, dtype, from),
  };
}

function gradientRoundings(
  row: Row,
  sample: Sample<unknown>,
  blocks: readonly Block[],
  exact: readonly Numbers[],
  dtype: DType,
  gradientsFrom: (operands: readonly Block[], ofCotangents?: (value: number) => number) => readonly Numbers[],
): readonly Numbers[] {
  if (row.sumLength) {
    const roundings = roundingsOf(row.sumLength(blocks, sample.options), dtype);
    const magnitudes = gradientsFrom(blocks.map(absolute).map(widened), Math.abs);
    return magnitudes.map((sums) => sums.map((sum) => roundings * sum));
  }
  if (row.elementwise) {
    const shape = broadcastShapes(row.name, ...blocks.map((block) => block.shape));
    return broadcastRoundings(blocks, shape, dtype, (operands) => gradientsFrom(operands.map(widened)));
  }
  const count = row.gradientRoundings?.(blocks, sample.options) ?? 0;
  return exact.map((gradient, at) => {
    if (typeof count !== "number") return gradient.map((value, index) => count[at][index] * Math.abs(value));
    const largest = gradient.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    return gradient.map(() => count * largest);
  });
}

/** The permitted errors of gradients of broadcast operands: they are sums of the gradients of the expanded operands. */
function broadcastRoundings(
  blocks: readonly Block[],
  shape: readonly number[],
  dtype: DType,
  gradientsFrom: (operands: readonly Block[]) => readonly Numbers[],
): readonly Numbers[] {
  const leaves = blocks.filter((block) => isFloat(block.dtype));
  const sizeOf = (extents: readonly number[]) => extents.reduce((product, extent) => product * extent, 1);
  const counts = leaves.map((leaf) => sizeOf(shape) / Math.max(sizeOf(leaf.shape), 1));
  if (counts.every((count) => count <= 1)) return leaves.map((leaf) => new Array(sizeOf(leaf.shape)).fill(0));
  const terms = gradientsFrom(blocks.map((block) => repeated(block, shape)));
  return leaves.map((leaf, at) => {
    const roundings = counts[at] > 1 ? roundingsOf(counts[at], dtype) : 0;
    return sumMagnitudes(terms[at], leaf.shape, shape).map((sum) => roundings * sum);
  });
}

const widened = (block: Block): Block => (isFloat(block.dtype) ? { ...block, dtype: "float64" } : block);

/**
 * Computes results of the row's operation, and gradients with random cotangents, which are the same for every backend.
 */
export function passesOf(
  row: Row,
  sample: Sample<unknown>,
  inputs: Tensor[],
  seed: number,
  dtype: DType,
  ofCotangents: (value: number) => number = (value) => value,
): { readonly results: readonly Tensor[]; readonly gradients: readonly Tensor[] } {
  const leaves = inputs.filter((input) => isFloat(input.dtype));
  for (const leaf of leaves) leaf.requiresGrad = true;
  const results = asList(row.compute(inputs, sample.options));
  const outputs = results.filter(({ requiresGrad }) => requiresGrad);
  if (outputs.length === 0) throw new Error(`${row.name}: no result requires a gradient`);
  const random = new Random(seed);
  const cotangents = outputs.map(({ shape, dtype: own }) => {
    // Rounded to the dtype of the test, so that every computation starts from the same numbers.
    const block = makeBlock({ shape, dtype }, dtype, random);
    return place({ ...block, values: block.values.map(ofCotangents), dtype: own }, "contiguous", "reference", random);
  });
  return { results, gradients: grad(outputs, leaves, { gradOutputs: cotangents }) };
}

export const asList = <Item>(value: Item | readonly Item[]): readonly Item[] =>
  Array.isArray(value) ? value : [value as Item];

export const nameOf = ({ name, inputs }: Sample<unknown>): string =>
  name ??
  inputs
    .map(({ shape, layout = "contiguous" }) => `[${shape.join(",")}]${layout === "contiguous" ? "" : ` ${layout}`}`)
    .join(" ");
