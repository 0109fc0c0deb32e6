/** Quantized tensors in safetensors files, also MLX's, and `quantizedFromParts`. */
import { describe, expect, test } from "bun:test";
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ArgumentError, DTypeError, FileFormatError, OrchardError, ShapeError } from "../../src/core/errors.ts";
import { packageRoot } from "../../src/core/paths.ts";
import {
  dequantize,
  io,
  ones,
  QuantizedTensor,
  quantize,
  quantizedFromParts,
  quantizedMatmul,
  quantizeGgml,
  Tensor,
  tensor,
  zeros,
} from "../../src/index.ts";
import { affineBits, ggmlFormats, groupSizes } from "../../src/quant/formats.ts";
import { groups } from "../quant/fixtures.ts";
import { testFolder } from "../support/folder.ts";
import { bytesIn } from "./bytes.ts";

const folder = testFolder("weights");
const weights = tensor(Array.from({ length: 4 * 256 }, (_, at) => Math.sin(at * 1.3))).reshape([4, 256]);

const partsOf = ({ parts: { packed, scales, biases } }: QuantizedTensor) =>
  [packed, scales, biases].map((part) => part && [part.dtype, part.shape, bytesIn(part).toHex()]);

async function saved(tensors: Record<string, Tensor | QuantizedTensor>, name = "saved"): Promise<string> {
  const path = folder.file(`${name}.safetensors`);
  await io.saveSafetensors(path, tensors, { metadata: { note: "kept" } });
  return path;
}

const loaded = (path: string, name: string, options?: io.LoadWeightsOptions): QuantizedTensor => {
  const own = io.loadWeights(path, options)[name];
  if (own instanceof QuantizedTensor) return own;
  throw new Error(`${name} is ${String(own)}`);
};

describe("a quantized tensor is loaded as it was saved", () => {
  const same = async (w: QuantizedTensor) => {
    const own = loaded(await saved({ "a.weight": w, plain: ones([3]) }), "a.weight");
    expect([own.format, own.shape, own.dtype]).toEqual([w.format, w.shape, w.dtype]);
    expect(partsOf(own)).toEqual(partsOf(w));
  };

  test.each(ggmlFormats)("weights in %s are loaded as they were saved", (format) =>
    same(quantizeGgml(weights, format)),
  );

  test.each(affineBits.flatMap((bits) => groupSizes.map((groupSize) => [bits, groupSize] as const)))(
    "affine weights of %d bits in groups of %d are loaded as saved, with and without biases, in every dtype of scales",
    async (bits, groupSize) => {
      for (const symmetric of [true, false])
        for (const scaleDType of ["float32", "float16", "bfloat16"] as const)
          await same(quantize(weights.to("float16"), { bits, groupSize, symmetric, scaleDType }));
    },
  );

  test("tensors with several axes, without rows, and large mapped ones are loaded as saved", async () => {
    await same(quantizeGgml(weights.reshape([2, 2, 256]), "q4_K"));
    await same(quantize(zeros([0, 64])));
    await same(quantize(ones([512, 512]), { bits: 4 }));
  });
});

test("parts have MLX's names, and formats are in the metadata", async () => {
  const w = quantize(weights, { bits: 4, groupSize: 64 });
  const path = await saved({ "a.weight": w, weight: w, b: w, c: quantizeGgml(weights, "q8_0"), d: ones([2]) });
  using file = io.openSafetensors(path);
  const parts = [
    "a.weight",
    "a.scales",
    "a.biases",
    "weight",
    "scales",
    "biases",
    "b",
    "b.scales",
    "b.biases",
    "c",
    "d",
  ];
  expect([...file.names].sort()).toEqual(parts.sort());
  expect(file.metadata["note"]).toBe("kept");
  const affine = { group_size: 64, bits: 4, mode: "affine", dtype: "float32" };
  expect(JSON.parse(file.metadata["quantization"])).toEqual({
    "a.weight": affine,
    weight: affine,
    b: affine,
    c: { format: "q8_0", dtype: "float32" },
  });
  const all = io.loadWeights(path);
  expect(Object.keys(all).sort()).toEqual(["a.weight", "b", "c", "d", "weight"]);
  expect((all["d"] as Tensor).toArray()).toEqual([1, 1]);
});

test("loadWeights reads GGUF files, and safetensors without quantized tensors", async () => {
  const path = folder.file("model.gguf");
  await io.saveGguf(path, { w: quantizeGgml(weights, "q5_1"), x: ones([2]) });
  expect(String(loaded(path, "w"))).toContain("q5_1[4, 256]");
  expect(io.loadWeights(await saved({ x: ones([2]) }))["x"]).toBeInstanceOf(Tensor);
});

describe("files of MLX load with their formats", () => {
  const keys = Object.keys(groups)
    .filter((name) => name.endsWith(".scales"))
    .map((name) => name.slice(0, -".scales".length));
  const mlx = folder.file("mlx");
  mkdirSync(mlx);
  copyFileSync(join(packageRoot, "test", "fixtures", "quant", "groups.safetensors"), join(mlx, "model.safetensors"));
  const config = (quantization: unknown) => writeFileSync(join(mlx, "config.json"), JSON.stringify({ quantization }));
  const entries = Object.fromEntries(
    keys.map((key) => {
      const [bits, size] = key.split(".").map(Number);
      return [key, { bits, group_size: size }];
    }),
  );

  test("MLX's files load with the formats of a config.json, by layer", () => {
    config({ ...entries, group_size: 64, bits: 4, mode: "affine" });
    const all = io.loadWeights(mlx);
    const [values, triples] = [Object.keys(groups).filter((name) => name.endsWith(".values")), keys.length];
    expect(Object.keys(all).length).toBe(1 + values.length + triples);
    for (const name of values) {
      const own = all[name.replace(".values", ".weight")] as QuantizedTensor;
      const [got, expected] = [dequantize(own).dataSync(), groups[name].dataSync()] as Float32Array[];
      const worst = Math.max(...got.map((value, at) => Math.abs(value - expected[at]) / (Math.abs(value) + 1)));
      expect([name, worst < 2 ** -22]).toEqual([name, true]); // MLX may fuse the product and the sum
    }
  });

  test("MLX's files load with one format for all weights, from the config or the caller", async () => {
    const some = Object.fromEntries(
      ["weight", "scales", "biases"].map((part) => [`m.${part}`, groups[`4.64.float32.${part}`]]),
    );
    const path = await saved(some, "triple");
    const own = loaded(path, "m.weight", { quantization: { bits: 4, groupSize: 64 } });
    expect(own.format).toEqual({ bits: 4, groupSize: 64, symmetric: false });
    expect(Object.keys(io.loadWeights(path)).sort()).toEqual(["m.biases", "m.scales", "m.weight"]);
    copyFileSync(path, join(mlx, "model.safetensors"));
    config({ group_size: 64, bits: 4, mode: "affine" });
    expect(partsOf(loaded(mlx, "m.weight"))).toEqual(partsOf(own));
    config({ group_size: 64, bits: 4, m: false });
    expect(io.loadWeights(mlx)["m.weight"]).toBeInstanceOf(Tensor);
    // 8 bits in groups of 32 have the same numbers of words and groups, so the file alone is ambiguous
    expect(loaded(path, "m.weight", { quantization: { bits: 8, groupSize: 32 } }).shape).toEqual([12, 128]);
  });

  test("MLX's files are rejected if they do not match, with an error that names them", () => {
    const code = (quantization: unknown) => {
      config(quantization);
      try {
        io.loadWeights(mlx);
      } catch (error) {
        expect(error).toBeInstanceOf(FileFormatError);
        return (error as OrchardError).code;
      }
      return "read";
    };
    expect(code({ group_size: 64, bits: 4 })).toBe("read");
    for (const wrong of [
      { bits: 7, group_size: 64 },
      { bits: 4, group_size: 63 },
      { bits: 4, group_size: 64, mode: "x" },
    ])
      expect(code(wrong)).toBe("invalidQuantization");
    for (const wrong of [{ bits: 3, group_size: 64 }, { bits: 4, group_size: 128 }, { m: { format: "q4_0" } }, 3])
      expect(code(wrong)).toBe("invalidQuantization");
  });
});

describe("hostile files end in typed errors", () => {
  const w = quantize(weights, { bits: 4, groupSize: 64 });
  const { packed, scales, biases } = w.parts as Record<"packed" | "scales" | "biases", Tensor>;
  const affine = { bits: 4, group_size: 64 };

  test.each<[string, Record<string, Tensor>, unknown, string]>([
    ["text that is no JSON", { w: packed }, "{", "invalidQuantization"],
    ["a list", { w: packed }, [], "invalidQuantization"],
    ["nesting", { w: packed }, "[".repeat(500), "invalidQuantization"],
    ["a key twice", { w: packed }, '{"w":{"format":"q4_0"},"w":{"format":"q4_1"}}', "invalidQuantization"],
    ["a format that there is not", { w: packed }, { w: { format: "q9" } }, "invalidQuantization"],
    ["a format by an inherited name", { w: packed }, { w: { format: "toString" } }, "invalidQuantization"],
    ["a dtype that there is not", { w: packed }, { w: { format: "q4_0", dtype: "int8" } }, "invalidQuantization"],
    ["bits that are a text", { w: packed, "w.scales": scales }, { w: { ...affine, bits: "4" } }, "invalidQuantization"],
    ["no scales", { w: packed }, { w: affine }, "invalidQuantization"],
    ["no biases", { w: packed, "w.scales": scales }, { w: affine }, "invalidQuantization"],
    [
      "biases of a symmetric one",
      { w: packed, "w.scales": scales, "w.biases": biases },
      { w: { ...affine, mode: "symmetric" } },
      "invalidQuantization",
    ],
    [
      "another dtype of scales",
      { w: packed, "w.scales": packed, "w.biases": packed },
      { w: affine },
      "invalidQuantization",
    ],
    ["blocks in words", { w: packed }, { w: { format: "q4_0" } }, "invalidQuantization"],
    ["half a block", { w: zeros([2, 19], { dtype: "uint8" }) }, { w: { format: "q4_0" } }, "invalidQuantization"],
    ["a scalar", { w: tensor(1, { dtype: "uint8" }) }, { w: { format: "q4_0" } }, "invalidQuantization"],
    [
      "scales of other rows",
      { w: packed, "w.scales": ones([3, 4]), "w.biases": ones([3, 4]) },
      { w: affine },
      "invalidQuantization",
    ],
    ["a tensor that is not there", { w: packed }, { v: { format: "q4_0" } }, "missingTensor"],
    ["__proto__", { w: packed }, '{"__proto__":{"format":"q4_0"}}', "missingTensor"],
  ])("%s throws a typed error", async (_, tensors, entries, code) => {
    const path = folder.file("hostile.safetensors");
    const quantization = typeof entries === "string" ? entries : JSON.stringify(entries);
    await io.saveSafetensors(path, tensors, { metadata: { quantization } });
    let error: unknown;
    try {
      io.loadWeights(path);
    } catch (cause) {
      error = cause;
    }
    expect(error).toBeInstanceOf(FileFormatError);
    expect(error).toMatchObject({ code });
  });
});

test("a tensor with the name of another tensor's scales is rejected", () => {
  const w = quantize(ones([1, 64]));
  for (const tensors of [
    { "a.weight": w, "a.scales": ones([1]) },
    { "a.scales": ones([1]), "a.weight": w },
    { a: w, "a.weight": w },
  ])
    expect(io.saveSafetensors(folder.file("x.safetensors"), tensors)).rejects.toMatchObject({ code: "duplicateName" });
  const gone = quantize(ones([1, 64]));
  gone.dispose();
  expect(io.saveSafetensors(folder.file("x.safetensors"), { gone })).rejects.toMatchObject({ code: "disposed" });
});

describe("quantizedFromParts", () => {
  const w = quantize(weights, { bits: 4, groupSize: 64, scaleDType: "float16" });
  const { packed, scales, biases } = w.parts as Record<"packed" | "scales" | "biases", Tensor>;
  const format = { bits: 4, groupSize: 64 } as const;

  test("the weights share memory, outlive their parts, and work like other weights", () => {
    const own = [packed, scales, biases].map((part) => part.clone());
    const made = quantizedFromParts(format, { packed: own[0], scales: own[1], biases: own[2] });
    for (const part of own) part.dispose();
    expect([made.dtype, made.shape, made.byteLength]).toEqual(["float16", [4, 256], w.byteLength]);
    const x = ones([2, 256]);
    expect(quantizedMatmul(x, made).toArray()).toEqual(quantizedMatmul(x, w).toArray());
    made.dispose();
    expect(quantizedMatmul(x, w).shape).toEqual([2, 4]);
  });

  test("strided parts, blocks, symmetric ones, and a dtype are accepted", () => {
    const strided = packed.transpose(0, 1).contiguous().transpose(0, 1);
    expect(partsOf(quantizedFromParts(format, { packed: strided, scales, biases }))).toEqual(partsOf(w));
    const blocks = quantizeGgml(weights, "q4_K");
    const made = quantizedFromParts("q4_K", blocks.parts, { dtype: "bfloat16" });
    expect(String(made)).toContain("q4_K[4, 256], 576 bytes, 4.5 bits a value, dequantizes to bfloat16");
    const symmetric = quantize(weights, { symmetric: true });
    expect(partsOf(quantizedFromParts({ ...format, symmetric: true }, symmetric.parts))).toEqual(partsOf(symmetric));
  });

  const gone = ones([1]);
  gone.dispose();
  const wrong: [string, unknown[], typeof OrchardError, string][] = [
    ["a format that there is not", ["q9", { packed }], ArgumentError, "unknownChoice"],
    ["bits that there are not", [{ bits: 7, groupSize: 64 }, { packed }], ArgumentError, "invalidOption"],
    ["a format without groups", [{ bits: 4 }, { packed }], ArgumentError, "missingArgument"],
    ["nothing packed", [format, { scales }], ArgumentError, "missingArgument"],
    ["no scales", [format, { packed, biases }], ArgumentError, "missingPart"],
    ["no biases", [format, { packed, scales }], ArgumentError, "missingPart"],
    ["biases of a symmetric one", [{ ...format, symmetric: true }, w.parts], ArgumentError, "unexpectedPart"],
    ["scales of blocks", ["q4_0", { packed, scales }], ArgumentError, "unexpectedPart"],
    ["words of blocks", ["q4_0", { packed }], DTypeError, "wrongDType"],
    ["bytes of groups", [format, { packed: packed.to("uint8"), scales, biases }], DTypeError, "wrongDType"],
    ["scales of integers", [format, { packed, scales: packed, biases }], DTypeError, "wrongDType"],
    [
      "scales and biases of two dtypes",
      [format, { packed, scales, biases: biases.to("float32") }],
      DTypeError,
      "wrongDType",
    ],
    ["rows of no whole groups", [format, { ...w.parts, packed: packed.narrow(1, 0, 7) }], ShapeError, "wrongColumns"],
    ["other rows", [format, { packed, scales: scales.narrow(0, 0, 2), biases }], ShapeError, "shapesDiffer"],
    ["other biases", [format, { packed, scales, biases: biases.narrow(0, 0, 2) }], ShapeError, "shapesDiffer"],
    ["half a block", ["q8_0", { packed: zeros([1, 35], { dtype: "uint8" }) }], ShapeError, "wrongColumns"],
    ["a part that is gone", [format, { packed: gone, scales, biases }], OrchardError, "disposed"],
  ];
  test.each(wrong)("quantizedFromParts rejects %s", (_, values, Class, code) => {
    const call = quantizedFromParts as (...values: unknown[]) => unknown;
    let error: unknown;
    try {
      call(...values);
    } catch (cause) {
      error = cause;
    }
    expect(error).toBeInstanceOf(Class);
    expect(error).toMatchObject({ code });
  });
});
