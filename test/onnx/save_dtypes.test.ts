/** Writes modules with every dtype as ONNX, and reads them again. */
import { expect, test } from "bun:test";
import { cat, type DType, io, type Tensor, tensor, withBackend } from "../../src/index.ts";
import { of } from "./written.ts";

/** ONNX's names of the types. */
const types: Partial<Record<DType, string>> = {
  ...{ float32: "float", uint8: "uint8", int8: "int8", int32: "int32", int64: "int64", bool: "bool" },
  ...{ float16: "float16", float64: "double", uint32: "uint32", bfloat16: "bfloat16" },
};
const dtypes = Object.keys(types) as DType[];
/** Numbers that each dtype can represent, some with different signs or with bits in each byte. */
const valuesOf = (dtype: DType): (number | boolean)[] => {
  if (dtype === "bool") return [true, false];
  if (/float/.test(dtype)) return [-2.5, 96];
  return dtype.startsWith("u") ? [3, 200] : [-3, 100];
};

test.each(dtypes)("an input and a constant of %s", (dtype) =>
  withBackend("cpu", async () => {
    const constant = tensor(valuesOf(dtype), { dtype });
    const module = of((x) => cat([x!, constant]));
    const given = tensor(valuesOf(dtype).toReversed(), { dtype });
    const model = await io.loadOnnx(await io.saveOnnx(module as never, { x: given }));
    expect([model.inputs[0]!.type, model.outputs[0]!.type]).toEqual([types[dtype]!, types[dtype]!]);
    const { output } = (await model.run({ x: given })) as { output: Tensor };
    expect([output.dtype, output.toArray()]).toEqual([dtype, cat([given, constant]).toArray()]);
  }),
);

test("a cast between any two dtypes", () =>
  withBackend("cpu", async () => {
    for (const from of dtypes)
      for (const to of dtypes) {
        const given = tensor(from === "bool" ? [true, false] : [3, 100], { dtype: from });
        const module = of((x) => x!.to(to));
        const model = await io.loadOnnx(await io.saveOnnx(module as never, { x: given }));
        const { output } = (await model.run({ x: given })) as { output: Tensor };
        expect([from, output.dtype, output.toArray()]).toEqual([from, to, given.to(to).toArray()]);
      }
  }));
