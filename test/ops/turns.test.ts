/** A run tests a part of the samples in turn: every shape, option and layout still occurs. */
import { describe, expect, test } from "bun:test";
import type { DType } from "../../src/tensor/dtype.ts";
import { layouts } from "./samples.ts";
import type { Sample } from "./table.ts";
import { gradientsIn, samplesOn, withoutLayouts } from "./turns.ts";

const floats: readonly DType[] = ["float32", "float16", "bfloat16"];
const add = (x: number) => (y: number) => x + y;

/** Two shapes and two options, in all layouts; options are distinguished by their values, and functions by identity. */
function samplesOf(first: unknown, second: unknown): Sample<unknown>[] {
  const shapes = [[2, 3], [7]];
  return [first, second].flatMap((options) =>
    shapes.flatMap((shape) => layouts.map((layout) => ({ inputs: [{ shape, layout }], options }))),
  );
}
const what = ({ inputs, options }: Sample<unknown>) => `${inputs[0].shape} ${typeof options} ${String(options)}`;

describe.each([
  ["equal objects", samplesOf({ dim: 0 }, { dim: 1 }), 4],
  ["numbers that JSON lacks", samplesOf(Number.NaN, -0), 4],
  ["functions of the same text", samplesOf(add(1), add(2)), 4],
])("property tests draw samples with %s", (_, samples, groups) => {
  const row = { samples, dtypes: ["float64", ...floats] as const };

  test("on metal, a third of the samples run in the first dtype, a sixth in each other, in every layout", () => {
    const [first, ...others] = floats.map((dtype) => samplesOn(row, "metal", dtype, false));
    expect(first.length).toBe(samples.length / 3);
    expect(new Set(first.map(what))).toEqual(new Set(samples.map(what)));
    for (const own of others) expect(own.length).toBe(samples.length / 6);
    expect(new Set(others.flat().map(what))).toEqual(new Set(samples.map(what)));
    for (const own of [first, others.flat()])
      expect(new Set(own.map(({ inputs }) => inputs[0].layout))).toEqual(new Set(layouts));
  });

  test("on reference every sample runs in the first dtype, a third in float32, a sixth in each other", () => {
    const run = (dtype: DType) => samplesOn(row, "reference", dtype, false);
    expect(run("float64")).toEqual(samples);
    expect(new Set(run("float32").map(what))).toEqual(new Set(samples.map(what)));
    expect(floats.map((dtype) => run(dtype).length)).toEqual([3, 6, 6].map((part) => samples.length / part));
    const halves = [...run("float16"), ...run("bfloat16")];
    expect(new Set(halves.map(what))).toEqual(new Set(samples.map(what)));
    expect(new Set(halves.map(({ inputs }) => inputs[0].layout))).toEqual(new Set(layouts));
  });

  test("gradients are compared in every dtype, in half precision for every second group, on each backend", () => {
    for (const dtype of ["float64", "float32"] as const)
      expect([...gradientsIn(row, dtype, false)]).toEqual([...samples]);
    const halves = (["float16", "bfloat16"] as const).map((dtype) => [...gradientsIn(row, dtype, false)]);
    expect(halves.map(({ length }) => length)).toEqual([samples.length / 2, samples.length / 2]);
    expect(new Set(halves.flat())).toEqual(new Set(samples));
    for (const backend of ["metal", "reference"] as const)
      for (const [at, dtype] of (["float16", "bfloat16"] as const).entries())
        expect(samplesOn(row, backend, dtype, false).filter((sample) => !halves[at].includes(sample))).toEqual([]);
    expect([...gradientsIn(row, "float16", true)]).toEqual([...samples]);
  });

  test("cpu, and exhaustive runs, use every layout", () => {
    expect(samplesOn(row, "cpu", "float16", false)).toEqual(samples);
    expect(samplesOn(row, "reference", "float16", true)).toEqual(samples);
    expect(samplesOn(row, "metal", "float16", true)).toEqual(samples);
  });

  test("finite differences use one layout per sample", () => expect(withoutLayouts(samples).length).toBe(groups));
});

test("on reference, samples of many elements run only in the first of their dtypes", () => {
  const [few, many] = [[1999], [40, 50]].map((shape) => ({ inputs: [{ shape }], options: undefined }));
  const onlyHalf = { ...many, dtypes: ["float16"] as const };
  const row = { samples: [few, many, onlyHalf], dtypes: floats };
  expect(samplesOn(row, "reference", "float32", false)).toEqual([few, many]);
  expect(samplesOn(row, "reference", "float16", false)).toEqual([onlyHalf]); // bfloat16 runs the first
  expect(samplesOn(row, "reference", "bfloat16", false)).toEqual([few]);
  expect(samplesOn(row, "reference", "float16", true)).toEqual(row.samples.slice(0, 3));
  expect(samplesOn(row, "cpu", "float16", false)).toEqual(row.samples);
});

test("groups of two, and samples of one dtype, run whole on metal", () => {
  const two = layouts.slice(0, 2).map((layout) => ({ inputs: [{ shape: [3], layout }], options: undefined }));
  expect(samplesOn({ samples: two, dtypes: floats }, "metal", "float32", false)).toEqual(two);
  const one = samplesOf(1, 2).map((sample) => ({ ...sample, dtypes: ["float16"] as const }));
  expect(samplesOn({ samples: one, dtypes: floats }, "metal", "float16", false)).toEqual(one);
  expect(samplesOn({ samples: one, dtypes: floats }, "metal", "float32", false)).toEqual([]);
});
