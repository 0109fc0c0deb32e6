/** Writes modules with every dtype as ONNX, and reads them again. */
import { expect, test } from "bun:test";
import { cat, type DType, io, type Tensor, tensor, withBackend } from "../../src/index.ts";
import { elementTypes, encodeModel } from "../../src/onnx/write/encode.ts";
import { of } from "./written.ts";

/** ONNX's names of the types. */
const types: Partial<Record<DType, string>> = {
  float32: "float",
  uint8: "uint8",
  int8: "int8",
  int32: "int32",
  int64: "int64",
  bool: "bool",
  float16: "float16",
  float64: "double",
  uint32: "uint32",
  bfloat16: "bfloat16",
};
const dtypes = Object.keys(types) as DType[];
/** Numbers that each dtype can represent, some with different signs or with bits in each byte. */
const valuesOf = (dtype: DType): (number | boolean)[] => {
  if (dtype === "bool") return [true, false];
  if (/float/.test(dtype)) return [-2.5, 96];
  return dtype.startsWith("u") ? [3, 200] : [-3, 100];
};

test.each(dtypes)("an input and a constant of %s are written", (dtype) =>
  withBackend("cpu", async () => {
    const constant = tensor(valuesOf(dtype), { dtype });
    const module = of((x) => cat([x, constant]));
    const given = tensor(valuesOf(dtype).toReversed(), { dtype });
    const model = await io.loadOnnx(await io.saveOnnx(module as never, { x: given }));
    expect([model.inputs[0].type, model.outputs[0].type]).toEqual([types[dtype]!, types[dtype]!]);
    const { output } = (await model.run({ x: given })) as { output: Tensor };
    expect([output.dtype, output.toArray()]).toEqual([dtype, cat([given, constant]).toArray()]);
  }),
);

test("a cast of floats to integers of few bits wraps around, as in onnxruntime", async () => {
  const values = [-1, -2.5, 255.9, 300, -300, 127.5, 128];
  const expected: Partial<Record<DType, ArrayLike<number>>> = {
    uint8: Uint8Array.from(values, Math.trunc),
    int8: Int8Array.from(values, Math.trunc),
    uint32: Uint32Array.from(values, Math.trunc),
  };
  const targets = Object.entries(expected) as [DType, ArrayLike<number>][];
  for (const [dtype, wrapped] of targets) {
    const cast = { operator: "Cast", inputs: ["x"], outputs: ["y"], attributes: { to: elementTypes[dtype] } };
    const inputs = [{ name: "x", dtype: "float32" as const, shape: [values.length] }];
    const outputs = [{ name: "y", dtype, shape: [values.length] }];
    const model = await io.loadOnnx(await encodeModel({ nodes: [cast], constants: [], inputs, outputs }));
    const { y } = (await withBackend("cpu", () => model.run({ x: tensor(values) }))) as { y: Tensor };
    expect([...(y.dataSync() as ArrayLike<number> & Iterable<number>)]).toEqual(Array.from(wrapped));
  }
});

test("a cast between any two dtypes is written", () =>
  withBackend("cpu", async () => {
    for (const from of dtypes)
      for (const to of dtypes) {
        const given = tensor(from === "bool" ? [true, false] : [3, 100], { dtype: from });
        const module = of((x) => x.to(to));
        const model = await io.loadOnnx(await io.saveOnnx(module as never, { x: given }));
        const { output } = (await model.run({ x: given })) as { output: Tensor };
        expect([from, output.dtype, output.toArray()]).toEqual([from, to, given.to(to).toArray()]);
      }
  }));
