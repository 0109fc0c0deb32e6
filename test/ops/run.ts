/** Turns rows of the table into tests: every row on every backend with every dtype. */
import { afterAll, describe, test } from "bun:test";
import { appendFileSync, mkdirSync } from "node:fs";
import { gapsFile, reportFolder } from "../../scripts/suite/report.ts";
import { metalContext } from "../../src/backend/metal/context.ts";
import { type BackendName, backendNames } from "../../src/backend/names.ts";
import { withBackend, withStrict } from "../../src/backend/policy.ts";
import { whyUnavailable } from "../../src/backend/registry.ts";
import { environmentFlag } from "../../src/core/environment.ts";
import { gradcheck } from "../../src/ops/gradient/gradcheck.ts";
import { type DType, isFloat } from "../../src/tensor/dtype.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { isExhaustive } from "../support/repeats.ts";
import { hash, makeBlock, place, Random } from "./samples.ts";
import type { OperationRow, Sample } from "./table.ts";
import { compare, readsPlain } from "./tolerance.ts";
import { gradientsIn, samplesOn, withoutLayouts } from "./turns.ts";
import { asList, forgetWanted, nameOf, passesOf, type Wanted, type WantedGradients, wantedOf } from "./wanted.ts";

/** The tested backends: all, or all except Metal if it is skipped on purpose. */
export const tested = backendNames.filter((name) => name !== "metal" || !environmentFlag("ORCHARD_SKIP_METAL"));

// biome-ignore lint/suspicious/noExplicitAny: rows of one table differ in their options
export function testTable(family: string, rows: readonly OperationRow<any>[]): void {
  describe(family, () => {
    for (const row of rows) {
      for (const dtype of row.dtypes) for (const backend of tested) testRow(row, backend, dtype);
      if (row.gradient && row.dtypes.includes("float64"))
        for (const backend of ["cpu", "reference"] as const) testFiniteDifferences(row, backend);
    }
  });
  afterAll(() => {
    forgetWanted();
    writeGaps();
  });
}

/** Missing features of a backend, one line each, until {@link writeGaps} writes them. */
export const gaps: string[] = [];

/** Missing features of a backend are shown at the end of the run: see `scripts/suite`. */
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
    const withGradients = row.gradient && isFloat(dtype) ? gradientsIn(row, dtype) : new Set();
    for (const sample of samplesOn(row, backend, dtype))
      checkSample(row, sample, backend, dtype, sample.gradient !== false && withGradients.has(sample));
    if (backend === "metal") checkFindings(row);
  });
}

function checkSample(
  row: OperationRow<unknown>,
  sample: Sample<unknown>,
  backend: BackendName,
  dtype: DType,
  hasGradients: boolean,
): void {
  const label = `${row.name} ${nameOf(sample)} ${dtype} on ${backend}`;
  const wanted = wantedOf(row, sample, dtype);
  const padding = new Random(hash(label)); // each backend has a different layout; the values are the same
  const inputs = () =>
    wanted.blocks.map((block, at) => place(block, sample.inputs[at].layout ?? "contiguous", backend, padding));
  const on = <Result>(body: () => Result): Result => withStrict(true, () => withBackend(backend, body));
  const isRecorded = hasGradients && comparesRecorded(label, backend);
  const plainly = () => asList(row.compute(inputs(), sample.options));
  if (!isRecorded) checkOutputs(label, on(plainly), wanted, row, dtype);
  if (!hasGradients) return;
  const { results, gradients } = on(() => passesOf(row, sample, inputs(), wanted.seed, dtype));
  if (isRecorded) checkOutputs(label, results, wanted, row, dtype);
  checkGradients(label, gradients, wanted.gradients(), row);
}

/**
 * Whether the results that are compared are those of the pass whose gradients are compared, for which the operation is
 * recorded, and not of a call without gradients. On metal, a usual run computes half of the samples only once.
 */
const comparesRecorded = (label: string, backend: BackendName): boolean =>
  !isExhaustive && backend === "metal" && hash(label) % 2 === 0;

function checkOutputs(
  label: string,
  outputs: readonly Tensor[],
  { exact, plain }: Wanted,
  row: OperationRow<unknown>,
  dtype: DType,
): void {
  if (outputs.length !== exact.length)
    throw new Error(`${label}: expected ${exact.length} results, got ${outputs.length}`);
  for (const [at, output] of outputs.entries()) {
    const want = exact[at];
    const wanted = `${want.dtype ?? dtype}[${want.shape.join(", ")}]`;
    if (output.describe() !== wanted)
      throw new Error(`${label}: expected result ${at} to be ${wanted}, got ${output.describe()}`);
    const got = Array.from(output.dataSync() as ArrayLike<number | bigint>, Number);
    const low = readsPlain(row.accuracy) && isFloat(output.dtype) ? plain()[at].values : undefined;
    fail(label, `result ${at}`, compare(output.dtype, got, want.values, low, row.accuracy, 2, want.roundings));
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

/** Compares gradients on a backend with those of the reference backend in float64 from the same values. */
function checkGradients(
  label: string,
  own: readonly Tensor[],
  { exact, plain, roundings }: WantedGradients,
  row: OperationRow<unknown>,
): void {
  const accuracy = { ...row.accuracy, flash: true } as const;
  for (const [at, gradient] of own.entries()) {
    const got = Array.from(gradient.dataSync() as ArrayLike<number>);
    const mismatch = compare(gradient.dtype, got, exact[at], plain[at], accuracy, 3, roundings[at]);
    fail(label, `gradient of input ${at}`, mismatch);
  }
}

function testFiniteDifferences(row: OperationRow<unknown>, backend: "cpu" | "reference"): void {
  test(`${row.name} gradient by finite differences on ${backend}`, () => {
    const why = whyUnavailable(backend);
    if (why) throw new Error(`${backend} can't be tested: ${why}`);
    for (const sample of withoutLayouts(row.samples)) {
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

/** Fails unless the checker, which watched every dispatch, found nothing. */
export function checkFindings({ name }: { readonly name: string }): void {
  const context = metalContext();
  context.wait();
  const { findings } = context.report({ clear: true });
  if (findings.length > 0)
    throw new Error(
      `${name}: the checker found ${findings.length} mistakes; the first: ${JSON.stringify(findings[0])}`,
    );
}
