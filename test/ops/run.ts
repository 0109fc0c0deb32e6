/** Turns rows of the table into tests: every row on every backend with every dtype. */
import { afterAll, describe, test } from "bun:test";
import { appendFileSync, mkdirSync } from "node:fs";
import { gapsFile, reportFolder } from "../../scripts/suite/report.ts";
import { metalContext } from "../../src/backend/metal/context.ts";
import { type BackendName, backendNames } from "../../src/backend/names.ts";
import { withBackend, withStrict } from "../../src/backend/policy.ts";
import { whyUnavailable } from "../../src/backend/registry.ts";
import { environmentFlag } from "../../src/core/environment.ts";
import { grad } from "../../src/ops/gradient/backward.ts";
import { gradcheck } from "../../src/ops/gradient/gradcheck.ts";
import { type DType, isFloat } from "../../src/tensor/dtype.ts";
import { broadcastShapes } from "../../src/tensor/shape.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { repeated, sumMagnitudes } from "./broadcast.ts";
import { type Block, expandedBlock, hash, makeBlock, type OperandSpec, place, Random, rounder } from "./samples.ts";
import { type Expected, exactly, type OperationRow, type Sample } from "./table.ts";
import { compare } from "./tolerance.ts";

/** The backends that are tested: all of them, without Metal where that is left out on purpose. */
export const tested = backendNames.filter((name) => name !== "metal" || !environmentFlag("ORCHARD_SKIP_METAL"));

// biome-ignore lint/suspicious/noExplicitAny: rows of one table differ in their options
export function testTable(family: string, rows: readonly OperationRow<any>[]): void {
  describe(family, () => {
    for (const row of rows) {
      for (const backend of tested) for (const dtype of row.dtypes) testRow(row, backend, dtype);
      if (row.gradient && row.dtypes.includes("float64"))
        for (const backend of ["cpu", "reference"] as const) testFiniteDifferences(row, backend);
    }
  });
  afterAll(writeGaps);
}

/** What a backend lacks, one line each, until {@link writeGaps} writes them. */
export const gaps: string[] = [];

/** What a backend lacks is shown at the end of the run: see `scripts/suite`. */
export function writeGaps(): void {
  if (gaps.length === 0) return;
  mkdirSync(reportFolder(), { recursive: true });
  appendFileSync(gapsFile(), `${gaps.splice(0).join("\n")}\n`);
}

function testRow(row: OperationRow<unknown>, backend: BackendName, dtype: DType): void {
  const lack = backend === "metal" && dtype === "float64" ? { reason: "Metal has no float64" } : row.lacks?.[backend];
  if (lack && (!("dtypes" in lack) || lack.dtypes === undefined || lack.dtypes.includes(dtype))) {
    gaps.push(`${row.name} ${dtype} on ${backend}: ${lack.reason}`);
    return;
  }
  test(`${row.name} ${dtype} on ${backend}`, () => {
    const why = whyUnavailable(backend);
    if (why) throw new Error(`${backend} can't be tested: ${why}`);
    if (backend === "metal") metalContext().configure("check", true);
    for (const sample of row.samples) {
      if (sample.dtypes && !sample.dtypes.includes(dtype)) continue;
      checkSample(row, sample, backend, dtype);
    }
    if (backend === "metal") checkFindings(row);
  });
}

function checkSample(row: OperationRow<unknown>, sample: Sample<unknown>, backend: BackendName, dtype: DType): void {
  const label = `${row.name} ${nameOf(sample)} ${dtype} on ${backend}`;
  const random = new Random(hash(label));
  const blocks = sample.inputs.map((spec) => blockOf(spec, dtype, random));
  const inputs = () =>
    blocks.map((block, at) => place(block, sample.inputs[at]!.layout ?? "contiguous", backend, random));
  const oracle = (round: (value: number) => number) => asList(row.oracle(blocks, sample.options, round));
  const on = <Result>(body: () => Result): Result => withStrict(true, () => withBackend(backend, body));
  const outputs = on(() => asList(row.compute(inputs(), sample.options)));
  checkOutputs(label, outputs, withRoundings(row, sample, blocks, oracle(exactly)), oracle(rounder(dtype)), row, dtype);
  if (row.gradient && isFloat(dtype) && sample.gradient !== false)
    checkGradients(row, sample, blocks, inputs, on, label, dtype, random);
}

/** What results may be off by where operands are multiplied and summed: see `sumLength`. */
function withRoundings(
  row: OperationRow<unknown>,
  { options }: Sample<unknown>,
  blocks: readonly Block[],
  expected: readonly Expected[],
): readonly Expected[] {
  if (!row.sumLength) return expected;
  const roundings = roundingsOf(row.sumLength(blocks, options), blocks[0]!.dtype);
  const magnitudes = asList(row.oracle(blocks.map(absolute), options, exactly));
  return expected.map((want, at) => ({ ...want, roundings: magnitudes[at]!.values.map((sum) => roundings * sum) }));
}

const absolute = (block: Block): Block => ({ ...block, values: block.values.map(Math.abs) });

/**
 * Of a sum of n terms, in units of the sum of their magnitudes; the oracle of a float64 has the same errors once more.
 */
const roundingsOf = (terms: number, dtype: DType): number => 2 * Math.sqrt(terms) * (dtype === "float64" ? 2 : 1);

function blockOf(spec: OperandSpec, dtype: DType, random: Random): Block {
  const block = makeBlock(spec, dtype, random);
  return spec.layout === "expanded" ? expandedBlock(block) : block;
}

function checkOutputs(
  label: string,
  outputs: readonly Tensor[],
  expected: readonly Expected[],
  plain: readonly Expected[],
  row: OperationRow<unknown>,
  dtype: DType,
): void {
  if (outputs.length !== expected.length)
    throw new Error(`${label}: ${outputs.length} results, ${expected.length} are wanted`);
  for (const [at, output] of outputs.entries()) {
    const want = expected[at]!;
    const wanted = `${want.dtype ?? dtype}[${want.shape.join(", ")}]`;
    if (output.describe() !== wanted)
      throw new Error(`${label}: result ${at} is ${output.describe()}, ${wanted} is wanted`);
    const got = Array.from(output.dataSync() as ArrayLike<number | bigint>, Number);
    fail(
      label,
      `result ${at}`,
      compare(output.dtype, got, want.values, plain[at]!.values, row.accuracy, 2, want.roundings),
    );
  }
}

function fail(label: string, what: string, mismatch: ReturnType<typeof compare>): void {
  if (!mismatch) return;
  const { index, got, expected, allowed, largestAbsolute, largestUlps } = mismatch;
  throw new Error(
    `${label}: ${what}, element ${index}: expected ${expected}, got ${got} (allowed difference ${allowed}; ` +
      `largest absolute error ${largestAbsolute}, ${largestUlps.toFixed(1)} ulp)\n` +
      `again: bun test test/ops -t "${label.split(" ")[0]} "`,
  );
}

/**
 * Gradients on a backend, with random cotangents, against those of the reference backend in float64 from the same
 * values.
 */
function checkGradients(
  row: OperationRow<unknown>,
  sample: Sample<unknown>,
  blocks: readonly Block[],
  inputs: () => Tensor[],
  on: <Result>(body: () => Result) => Result,
  label: string,
  dtype: DType,
  random: Random,
): void {
  const seed = Math.floor(random.next() * 2 ** 31);
  const own = on(() => gradientsOf(row, sample, inputs(), seed, dtype));
  const exactly = (from = blocks) =>
    from.map((block) => place({ ...block, dtype: widened(block.dtype) }, "contiguous", "reference", random));
  const exact = withBackend("reference", () => gradientsOf(row, sample, exactly(), seed, dtype));
  const sums = row.sumLength && {
    magnitudes: withBackend("reference", () =>
      gradientsOf(row, sample, exactly(blocks.map(absolute)), seed, dtype, Math.abs),
    ),
    roundings: roundingsOf(row.sumLength(blocks, sample.options), dtype),
  };
  const repetitions = row.elementwise
    ? broadcastRoundings(blocks, broadcastShapes(row.name, ...blocks.map(({ shape }) => shape)), dtype, (from) =>
        withBackend("reference", () => gradientsOf(row, sample, exactly(from), seed, dtype)),
      )
    : undefined;
  const plainly = () => blocks.map((block) => place(block, "contiguous", "reference", random));
  const plain = withBackend("reference", () => gradientsOf(row, sample, plainly(), seed, dtype));
  for (const [at, gradient] of own.entries()) {
    const got = Array.from(gradient.dataSync() as ArrayLike<number>);
    const want = Array.from(exact[at]!.dataSync() as ArrayLike<number>);
    const low = Array.from(plain[at]!.dataSync() as ArrayLike<number>);
    const magnitudes = sums && Array.from(sums.magnitudes[at]!.dataSync() as ArrayLike<number>);
    const roundings =
      magnitudes?.map((sum) => sums!.roundings * sum) ?? repetitions?.[at] ?? roundingsByRow(row, sample, blocks, want);
    const accuracy = { ...row.accuracy, flash: true } as const;
    fail(label, `gradient of input ${at}`, compare(gradient.dtype, got, want, low, accuracy, 3, roundings));
  }
}

/** What gradients of broadcast operands may be off by: they are sums of the gradients of the operands written out. */
function broadcastRoundings(
  blocks: readonly Block[],
  shape: readonly number[],
  dtype: DType,
  gradientsFrom: (from: readonly Block[]) => readonly Tensor[],
): readonly (readonly number[])[] {
  const terms = gradientsFrom(blocks.map((block) => repeated(block, shape)));
  const leaves = blocks.filter((block) => isFloat(block.dtype));
  return leaves.map((leaf, at) => {
    const magnitudes = sumMagnitudes(terms[at]!.dataSync() as ArrayLike<number>, leaf.shape, shape);
    const count = terms[at]!.size / Math.max(magnitudes.length, 1);
    const roundings = count > 1 ? roundingsOf(count, dtype) : 0;
    return magnitudes.map((sum) => roundings * sum);
  });
}

function roundingsByRow(
  row: OperationRow<unknown>,
  sample: Sample<unknown>,
  blocks: readonly Block[],
  gradient: readonly number[],
): number[] {
  const count = row.gradientRoundings?.(blocks, sample.options) ?? 0;
  const largest = gradient.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  return gradient.map(() => count * largest);
}

const widened = (dtype: DType): DType => (isFloat(dtype) ? "float64" : dtype);

function gradientsOf(
  row: OperationRow<unknown>,
  sample: Sample<unknown>,
  inputs: Tensor[],
  seed: number,
  dtype: DType,
  ofCotangents: (value: number) => number = (value) => value,
): Tensor[] {
  const leaves = inputs.filter((input) => isFloat(input.dtype));
  for (const leaf of leaves) leaf.requiresGrad = true;
  const outputs = asList(row.compute(inputs, sample.options)).filter(({ requiresGrad }) => requiresGrad);
  if (outputs.length === 0) throw new Error(`${row.name}: no result requires a gradient`);
  const random = new Random(seed);
  const cotangents = outputs.map(({ shape, dtype: own }) => {
    // Rounded to the dtype of the test, so that every computation starts from the same numbers.
    const block = makeBlock({ shape, dtype }, dtype, random);
    return place({ ...block, values: block.values.map(ofCotangents), dtype: own }, "contiguous", "reference", random);
  });
  return grad(outputs, leaves, { gradOutputs: cotangents });
}

function testFiniteDifferences(row: OperationRow<unknown>, backend: "cpu" | "reference"): void {
  test(`${row.name} gradient by finite differences on ${backend}`, () => {
    const why = whyUnavailable(backend);
    if (why) throw new Error(`${backend} can't be tested: ${why}`);
    for (const sample of row.samples) {
      const size = sample.inputs.reduce(
        (total, { shape }) => total + shape.reduce((product, extent) => product * extent, 1),
        0,
      );
      const fits = size <= 200 && sample.gradient !== false && (!sample.dtypes || sample.dtypes.includes("float64"));
      if (!fits) continue;
      const random = new Random(hash(`${row.name} ${nameOf(sample)}`));
      withBackend(backend, () => {
        const inputs = sample.inputs.map((spec) =>
          place(makeBlock(spec, "float64", random), "contiguous", backend, random),
        );
        for (const input of inputs) if (input.dtype === "float64") input.requiresGrad = true;
        gradcheck((...operands) => row.compute(operands, sample.options) as Tensor, inputs);
      });
    }
  });
}

/** The checker has watched every dispatch: it must have found nothing. */
export function checkFindings({ name }: { readonly name: string }): void {
  const context = metalContext();
  context.wait();
  const { findings } = context.report({ clear: true });
  if (findings.length > 0)
    throw new Error(
      `${name}: the checker found ${findings.length} mistakes; the first: ${JSON.stringify(findings[0])}`,
    );
}

const asList = <Item>(value: Item | readonly Item[]): readonly Item[] =>
  Array.isArray(value) ? value : [value as Item];

const nameOf = ({ name, inputs }: Sample<unknown>): string =>
  name ??
  inputs
    .map(({ shape, layout = "contiguous" }) => `[${shape.join(",")}]${layout === "contiguous" ? "" : ` ${layout}`}`)
    .join(" ");
