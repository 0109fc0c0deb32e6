/**
 * Folders of quantized weights. The files of each method give the weights of its formula, and the same logits as a
 * model with these weights unquantized. See scripts/fixtures/models/packed.py, and scripts/fixtures/quant.py for MLX's.
 */
import { describe, expect, test } from "bun:test";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as fc from "fast-check";
import { OrchardError } from "../../../../src/core/errors.ts";
import { packageRoot } from "../../../../src/core/paths.ts";
import {
  ArgumentError,
  cat,
  dequantize,
  Generator,
  io,
  nn,
  noGrad,
  ones,
  quantize,
  randn,
  stack,
  type Tensor,
  tensor,
} from "../../../../src/index.ts";
import { formatName } from "../../../../src/quant/formats.ts";
import { QuantizedTensor } from "../../../../src/quant/quantized_tensor.ts";
import { testFolder } from "../../../support/folder.ts";
import { repeats } from "../../../support/repeats.ts";
import { seed } from "../../../support/some.ts";
import { randomFrom } from "../../../text/constraint/held_to.ts";
import { errorOf, folderOf, numbers } from "./oracle.ts";

const folder = testFolder("packed");
const fixture = (name: string) => join(packageRoot, "test", "fixtures", "quant", name);
const TOKENS = tensor([[1, 5, 9, 2, 30, 7]], { dtype: "int32" });
let count = 0;

/** Layers of [outputs, inputs] in the tiny model. */
const packedLayers = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.gate_proj", "mlp.up_proj"];

interface Written {
  readonly path: string;
  /** The same model with plain weights. */
  readonly plain: string;
}

/** A Llama of one layer, in which the layers of shape [outputs, inputs] consist of the parts. */
async function write(parts: nn.StateDict, values: Tensor, config: object, more: nn.StateDict = {}): Promise<Written> {
  const [outputs, inputs] = values.shape as readonly [number, number];
  const sizes = {
    model_type: "llama",
    vocab_size: 32,
    hidden_size: inputs,
    intermediate_size: outputs,
    num_hidden_layers: 1,
    num_attention_heads: 1,
    head_dim: outputs,
    max_position_embeddings: 32,
  };
  const layer = "model.layers.0.";
  // small, since sharp attention would amplify rounding errors of sums in another order
  const generator = new Generator(seed);
  const drawn = (...shape: number[]) => randn(shape, { generator }).mul(0.2);
  const others = {
    "model.embed_tokens.weight": drawn(32, inputs),
    "lm_head.weight": drawn(32, inputs),
    "model.norm.weight": drawn(inputs),
    [`${layer}input_layernorm.weight`]: drawn(inputs),
    [`${layer}post_attention_layernorm.weight`]: drawn(inputs),
    [`${layer}self_attn.o_proj.weight`]: drawn(inputs, outputs),
    [`${layer}mlp.down_proj.weight`]: drawn(inputs, outputs),
  };
  const save = async (own: nn.StateDict, configOf: object): Promise<string> => {
    const path = folder.file(`model-${count++}`);
    mkdirSync(path);
    const all = packedLayers.flatMap((name) => Object.entries(own).map(([end, x]) => [`${layer}${name}.${end}`, x]));
    await io.saveSafetensors(join(path, "model.safetensors"), { ...others, ...Object.fromEntries(all) });
    writeFileSync(join(path, "config.json"), JSON.stringify({ ...sizes, ...configOf }));
    return path;
  };
  return { path: await save({ ...parts, ...more }, config), plain: await save({ weight: values }, {}) };
}

const load = async (path: string) => (await nn.loadModel(path, { dtype: "float32" })).model;
const logitsOf = (model: nn.LanguageModel) => noGrad(() => model.forward(TOKENS));
const weightOf = (model: Awaited<ReturnType<typeof load>>, name: "query" | "key") =>
  (model.blocks[0].attention![name] as nn.Linear | nn.QuantizedLinear).weight;
const valuesOf = (weight: Tensor | QuantizedTensor) =>
  numbers(QuantizedTensor.isQuantized(weight) ? dequantize(weight) : weight);

/** Checks that weights and logits match the formula; returns the weight's format. */
async function check({ path, plain }: Written, values: Tensor): Promise<string> {
  const [model, wanted] = [await load(path), await load(plain)];
  const weight = weightOf(model, "query");
  expect(valuesOf(weight)).toEqual(numbers(values));
  expect(errorOf(logitsOf(model), logitsOf(wanted))).toBeLessThan(1e-5);
  return QuantizedTensor.isQuantized(weight) ? formatName(weight.format) : weight.dtype;
}

const partsOf = (all: nn.StateDict, name: string): { parts: nn.StateDict; values: Tensor } => {
  const own = Object.entries(all).filter(([key]) => key.startsWith(`${name}.`));
  const { values, ...parts } = Object.fromEntries(own.map(([key, x]) => [key.slice(name.length + 1), x]));
  return { parts, values: values };
};

describe("weights in GPTQ, AWQ and float8 are read", () => {
  using file = io.openSafetensors(fixture("packed.safetensors"));
  const configs: Record<string, { quant_method: string; bits: number; group_size: number }> = JSON.parse(
    file.metadata["configs"],
  );
  const tensors: nn.StateDict = {};
  for (const name of file.names) if (file.info(name).dtype !== "F8_E4M3") tensors[name] = file.tensor(name);
  const float8 = new Map(file.names.filter((name) => !(name in tensors)).map((name) => [name, file.bytes(name)]));

  /** The format of a weight: blocks of 32, 64 or 128 inputs, if all inputs in a block belong to the same group. */
  const keptAs = (name: string, inputs: number): string => {
    const { bits, group_size: size } = configs[name];
    const shared = [128, 64, 32].find((own) => (size === -1 ? inputs : size) % own === 0);
    if (shared === undefined || name.endsWith("ordered")) return "float32";
    return `${name.endsWith("-symmetric") ? "symmetric" : "affine"} ${bits} bits, groups of ${shared}`;
  };

  test.each(Object.keys(configs).filter((name) => !name.startsWith("fp8")))(
    "%s weights are read exactly",
    async (name) => {
      const { parts, values } = partsOf(tensors, name);
      const written = await write(parts, values, { quantization_config: configs[name] });
      expect(await check(written, values)).toBe(keptAs(name, values.shape[1]));
    },
  );

  const damages: Readonly<Record<string, (x: Tensor) => Tensor | undefined>> = {
    missing: () => undefined,
    "of another dtype": (x) => x.to(x.dtype === "int32" ? "float32" : "int32"),
    "with a row more": (x) => cat([x, x.narrow(0, 0, 1)], 0),
    "of another rank": (x) => x.reshape([1, ...x.shape]),
    "with groups that are not there": (x) => x.mul(0).sub(1).to(x.dtype),
  };

  test.each(["gptq-4-32-asymmetric", "awq-32"])("the error for damaged parts of %s names them", async (name) => {
    const { parts, values } = partsOf(tensors, name);
    for (const [damage, change] of Object.entries(damages))
      for (const part of Object.keys(parts)) {
        if (damage === "with groups that are not there" ? part !== "g_idx" : part === "g_idx" && damage === "missing")
          continue;
        const { [part]: old, ...others } = parts;
        const changed = change(old);
        const own = changed ? { ...others, [part]: changed } : others;
        const { path } = await write(own, values, { quantization_config: configs[name] });
        const error: Error = await load(path).then(
          () => new Error("it loaded"),
          (cause) => cause,
        );
        expect([damage, part, error instanceof OrchardError]).toEqual([damage, part, true]);
        expect(error.message).toContain(damage.includes("groups") ? "groups of inputs" : "model.layers.0.");
      }
  });

  test("biases that the model does not have are ignored if they are zeros, and otherwise rejected", async () => {
    const name = "gptq-4-32-asymmetric";
    const { parts, values } = partsOf(tensors, name);
    const config = { quantization_config: configs[name] };
    const written = await write(parts, values, config, { bias: tensor(new Float32Array(64)) });
    expect(await check(written, values)).toBe("affine 4 bits, groups of 32");
    const { path } = await write(parts, values, config, { bias: randn([64]) });
    expect(load(path)).rejects.toThrow("self_attn.q_proj.bias");
  });

  test.each(Object.keys(configs).filter((name) => name.startsWith("fp8")))("%s is rejected", async (name) => {
    const { parts, values } = partsOf(tensors, name);
    const bytes = float8.get(`${name}.weight`)!.reshape([...values.shape]);
    const written = await write({ ...parts, weight: bytes }, values, { quantization_config: configs[name] });
    await retype(join(written.path, "model.safetensors"), "U8", "F8_E4M3");
    expect(await check(written, values)).toBe("float32");
  });

  test.each([
    [{ quant_method: "fp8" }, [1]],
    [{ quant_method: "compressed-tensors", format: "float-quantized", config_groups: {} }, [8, 1]],
  ])("every float of 8 bits is read exactly: %p", async (quantization_config, scales) => {
    const values = tensors["float8.values"].reshape([8, 32]);
    const weight = tensor(
      Uint8Array.from({ length: 256 }, (_, byte) => byte),
      { shape: [8, 32] },
    );
    const { path } = await write({ weight, weight_scale: ones(scales) }, values, { quantization_config });
    await retype(join(path, "model.safetensors"), "U8", "F8_E4M3");
    expect(valuesOf(weightOf(await load(path), "query"))).toEqual(numbers(values));
  });
});

/**
 * Packs 32 levels of 3 bits in three words, as `auto-gptq` does. The first word has ten levels and two bits of the next
 * level; the second has the remaining bit, ten levels and a bit of the next level; the third has the remaining two bits
 * and ten levels.
 */
function threeWords(levels: readonly number[]): number[] {
  const ten = (from: number, shift: number) =>
    levels.slice(from, from + 10).reduce((word, level, at) => word | (level << (3 * at + shift)), 0);
  const [first, second] = [levels[10], levels[21]];
  return [ten(0, 0) | (first << 30), (first >> 2) | ten(11, 1) | (second << 31), (second >> 1) | ten(22, 2)];
}

/** A layer of 3 bits in the layout of `auto-gptq`, with the weights of its formula in float64. */
function threeBits(random: () => number, size: { outputs: number; inputs: number; groupSize: number }, order: boolean) {
  const { outputs, inputs, groupSize } = size;
  const whole = (below: number) => Math.floor(random() * below);
  const group = groupSize === -1 ? inputs : groupSize;
  const groupOf = Array.from({ length: inputs }, (_, at) => Math.floor(at / group));
  const groups = groupOf.at(-1)! + 1;
  if (order) groupOf.sort(() => random() - 0.5);
  const levels = Array.from({ length: inputs }, () => Array.from({ length: outputs }, () => whole(8)));
  const zeros = Array.from({ length: groups }, () => Array.from({ length: outputs }, () => 1 + whole(7)));
  const scales = zeros.map((row) => row.map(() => (1 + whole(1024)) / 4096)); // exact in float16
  const packed = (row: readonly number[]) =>
    Array.from({ length: row.length / 32 }, (_, at) => threeWords(row.slice(32 * at, 32 * at + 32))).flat();
  const columns = Array.from({ length: outputs }, (_, output) => packed(levels.map((row) => row[output])));
  const rows = columns[0].map((_, word) => columns.map((column) => column[word]));
  const values = columns.map((_, output) =>
    levels.map((row, input) => (row[output] - zeros[groupOf[input]][output]) * scales[groupOf[input]][output]),
  );
  return {
    groupOf,
    values: tensor(values),
    parts: (offset: number) => ({
      qweight: tensor(rows, { dtype: "int32" }),
      qzeros: tensor(
        zeros.map((row) => packed(row.map((zero) => zero - offset))),
        { dtype: "int32" },
      ),
      scales: tensor(scales, { dtype: "float16" }),
      g_idx: tensor(groupOf, { dtype: "int32" }),
    }),
  };
}

test("GPTQ's 3 bits, which cross from a word to the next, are read exactly for drawn sizes and groups", async () => {
  const size = fc.record({
    outputs: fc.constantFrom(32, 64, 96),
    inputs: fc.constantFrom(32, 64, 96, 128, 160),
    groupSize: fc.constantFrom(-1, 16, 32, 64, 128),
  });
  const kept = new Set<string>();
  await fc.assert(
    fc.asyncProperty(
      size,
      fc.boolean(),
      fc.constantFrom("gptq", "gptq_v2"),
      fc.nat(),
      async (own, order, version, s) => {
        const { parts, values, groupOf } = threeBits(randomFrom(s), own, order);
        const config = { quant_method: "gptq", bits: 3, group_size: own.groupSize, checkpoint_format: version };
        const written = await write(parts(version === "gptq" ? 1 : 0), values, { quantization_config: config });
        const shared = [128, 64, 32].find(
          (block) => own.inputs % block === 0 && groupOf.every((group, at) => group === groupOf[at - (at % block)]),
        );
        const wanted = shared === undefined ? "float32" : `affine 3 bits, groups of ${shared}`;
        kept.add(wanted);
        expect(await check(written, values)).toBe(wanted);
      },
    ),
    { numRuns: repeats({ usual: 16, all: 200 }), seed: 3 },
  );
  expect([...kept]).toContain("float32");
  expect(kept.size).toBeGreaterThan(2);
});

test("a weight of 3 bits that ends within a word group is rejected", async () => {
  const { parts, values } = threeBits(randomFrom(1), { outputs: 32, inputs: 64, groupSize: 32 }, false);
  const whole = parts(1);
  const config = { quant_method: "gptq", bits: 3, group_size: 32 };
  const cut = { ...whole, qweight: whole.qweight.narrow(0, 0, 5) };
  const { path } = await write(cut, values, { quantization_config: config });
  await expect(load(path)).rejects.toThrow(/qweight of a multiple of 3 rows, got 5/);
});

/** Changes the dtype of a file's tensors to another one of the same size. */
async function retype(path: string, from: string, to: string): Promise<void> {
  const bytes = Buffer.from(await Bun.file(path).arrayBuffer());
  const length = Number(bytes.readBigUInt64LE());
  const header = bytes
    .subarray(8, 8 + length)
    .toString()
    .replaceAll(`"dtype":"${from}"`, `"dtype":"${to}"`);
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(header.length));
  await Bun.write(path, Buffer.concat([size, Buffer.from(header), bytes.subarray(8 + length)]));
}

describe("weights that MLX packed are read", () => {
  const groups = io.loadSafetensors(fixture("groups.safetensors"));
  const words = io.loadSafetensors(fixture("words.safetensors"));
  const named = Object.keys(groups).filter((key) => key.endsWith(".float32.values"));

  test.each(named.map((key) => key.slice(0, -".values".length)))("MLX's %s weights are read exactly", async (name) => {
    const { parts, values } = partsOf(groups, name);
    const [bits, size] = name.split(".").map(Number);
    const quantization = { group_size: size, bits, mode: "affine" };
    const written = await write(parts, values, { quantization, quantization_config: quantization });
    expect(await check(written, values)).toBe(`affine ${bits} bits, groups of ${size}`);
  });

  test("mxfp4 weights are read by loadModel and by loadWeights", async () => {
    const { parts, values } = partsOf(words, "mxfp4");
    const quantization = { group_size: 32, bits: 4, mode: "mxfp4" };
    const written = await write(parts, values, { quantization });
    expect(await check(written, values)).toBe("mxfp4");
    const weight = io.loadWeights(written.path)["model.layers.0.mlp.up_proj.weight"] as QuantizedTensor;
    expect(valuesOf(weight)).toEqual(numbers(values));
  });

  test("formats of single layers are read, and layers that are not quantized", async () => {
    const name = "4.64.float32";
    const { parts, values } = partsOf(groups, name);
    const layer = (own: string) => `model.layers.0.${own}`;
    const eight = { group_size: 32, bits: 8 };
    const quantization = {
      group_size: 64,
      bits: 4,
      [layer("self_attn.q_proj")]: eight,
      [layer("self_attn.o_proj")]: false,
    };
    const { path } = await write(parts, values, { quantization });
    const all = io.loadSafetensors(join(path, "model.safetensors"));
    const other = partsOf(groups, "8.32.float32");
    for (const [end, x] of Object.entries(other.parts)) all[`${layer("self_attn.q_proj")}.${end}`] = x;
    await io.saveSafetensors(join(path, "model.safetensors"), all);
    const model = await load(path);
    expect(valuesOf(weightOf(model, "query"))).toEqual(numbers(other.values));
    expect(valuesOf(weightOf(model, "key"))).toEqual(numbers(values));
  });
});

/** The names of Mixtral's projections in stacks. */
const stackedNames: Readonly<Record<string, string>> = { w1: "gate_proj", w2: "down_proj", w3: "up_proj" };

test.each(["mixtral", "qwen3_moe"])(
  "experts of %s are read from stacks, as in mlx-lm, quantized and not",
  async (name) => {
    const copy = (label: string): string => {
      const path = folder.file(`${label}-${name}`);
      cpSync(folderOf(name), path, { recursive: true });
      return path;
    };
    const [path, plain] = [copy("stacked"), copy("rounded")];
    const weights = io.loadSafetensors(join(path, "model.safetensors"));
    const stacks = new Map<string, string[]>();
    for (const key of Object.keys(weights)) {
      const [, block, index, projection] = /^(.*)\.experts\.(\d+)\.(\w+)\.weight$/.exec(key) ?? [];
      if (projection === undefined) continue;
      const stacked = `${block}.switch_mlp.${stackedNames[projection] ?? projection}`;
      const keys = stacks.get(stacked) ?? [];
      keys[Number(index)] = key;
      stacks.set(stacked, keys);
    }
    const [packed, rounded] = [{ ...weights }, { ...weights }];
    for (const [stacked, keys] of stacks) {
      for (const key of keys) delete packed[key];
      const whole = stack(keys.map((key) => weights[key]));
      // rows of 48 and 24 are not whole groups
      if (whole.shape.at(-1)! % 32 !== 0) packed[`${stacked}.weight`] = whole;
      else {
        const own = quantize(whole.to("float32"), { bits: 8, groupSize: 32 });
        const { packed: weight, scales, biases } = own.parts;
        for (const [end, part] of Object.entries({ weight, scales, biases })) packed[`${stacked}.${end}`] = part!;
        const dense = dequantize(own);
        for (const [at, key] of keys.entries())
          rounded[key] = dense.narrow(0, at, 1).reshape([...dense.shape.slice(1)]);
      }
    }
    await io.saveSafetensors(join(path, "model.safetensors"), packed);
    await io.saveSafetensors(join(plain, "model.safetensors"), rounded);
    const config = JSON.parse(readFileSync(join(path, "config.json"), "utf8"));
    writeFileSync(join(path, "config.json"), JSON.stringify({ ...config, quantization: { bits: 8, group_size: 32 } }));
    const [model, wanted] = [await load(path), await load(plain)];
    expect(errorOf(logitsOf(model), logitsOf(wanted))).toBeLessThan(1e-5);
    expect(String(model)).toContain("affine 8 bits, groups of 32");
    // a stack is mapped once, not for each expert
    const { experts } = model.blocks[0].feedForward as unknown as { experts: readonly { gate: nn.QuantizedLinear }[] };
    expect(new Set(experts.map(({ gate }) => gate.weight.parts.packed.storage)).size).toBe(1);
  },
);

describe("the error names what is rejected:", () => {
  const { parts, values } = partsOf(io.loadSafetensors(fixture("groups.safetensors")), "4.64.float32");
  const failure = async (config: object): Promise<Error> => {
    const { path } = await write(parts, values, config);
    return load(path).then(
      () => new Error("it did not fail"),
      (error) => error,
    );
  };

  test.each(["bitsandbytes", "compressed-tensors", "aqlm", "hqq", "quanto", "eetq", "fbgemm_fp8", "torchao", "higgs"])(
    "%s is rejected",
    async (method) => {
      const error = await failure({ quantization_config: { quant_method: method, bits: 4, group_size: 64 } });
      expect(error).toBeInstanceOf(ArgumentError);
      expect(error.message).toContain(`got "${method}"; load the original model with`);
    },
  );

  test.each<[string, object, string]>([
    ["compression_config", { compression_config: { format: "pack-quantized" } }, 'got "compressed-tensors"'],
    ["no method", { quantization_config: { format: "pack" } }, 'got "an unnamed method"'],
    ["AWQ's gemv", { quantization_config: { quant_method: "awq", bits: 4, group_size: 64, version: "gemv" } }, "gemv"],
    ["GPTQ's 5 bits", { quantization_config: { quant_method: "gptq", bits: 5, group_size: 64 } }, "bits"],
    [
      "marlin",
      { quantization_config: { quant_method: "gptq", bits: 4, group_size: 64, checkpoint_format: "marlin" } },
      "expected quantization_config.checkpoint_format to be gptq or gptq_v2",
    ],
    ["float8_e5m2", { quantization_config: { quant_method: "fp8", fmt: "e5m2" } }, "fmt"],
    ["another mode of MLX", { quantization: { bits: 8, group_size: 32, mode: "mxfp8" } }, "mxfp8"],
  ])("%s is rejected", async (_, config, text) => {
    expect((await failure(config)).message).toContain(text);
  });

  test("nn.Llama rejects quantized weights", () => {
    const config = { model_type: "llama", quantization_config: { quant_method: "awq" } } as nn.LlamaConfig;
    expect(() => nn.Llama.fromHuggingFace(config, {})).toThrow("load the folder with nn.loadModel");
  });
});
