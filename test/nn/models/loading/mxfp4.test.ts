/**
 * GPT-OSS's experts in MXFP4: the values match the format's formula. The logits match those of plain weights with these
 * values, in the layout that `transformers` unpacks them to (`convert_moe_packed_tensors`).
 */
import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as fc from "fast-check";
import { dequantize, Generator, io, nn, noGrad, randn, type Tensor, tensor } from "../../../../src/index.ts";
import type { Experts } from "../../../../src/nn/models/decoder/experts.ts";
import { QuantizedTensor } from "../../../../src/quant/quantized_tensor.ts";
import { Random } from "../../../ops/samples.ts";
import { testFolder } from "../../../support/folder.ts";
import { repeats } from "../../../support/repeats.ts";
import { errorOf, numbers } from "./oracle.ts";

const folder = testFolder("mxfp4");
const TOKENS = tensor([[1, 5, 9, 2, 30, 7]], { dtype: "int32" });
/** The levels of E2M1. */
const LEVELS = [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0, -0.5, -1, -1.5, -2, -3, -4, -6];

interface Packed {
  readonly parts: nn.StateDict;
  /** [experts, rows, columns] */
  readonly values: Float32Array;
  readonly shape: readonly [experts: number, rows: number, columns: number];
}

/** Random blocks and exponents, and the values level · 2^(exponent − 127). */
function packed(random: Random, shape: Packed["shape"]): Packed {
  const [experts, rows, columns] = shape;
  const groups = columns / 32;
  const blocks = Uint8Array.from({ length: experts * rows * groups * 16 }, () => random.integer(0, 255));
  const scales = Uint8Array.from({ length: experts * rows * groups }, () => random.integer(121, 125));
  const values = Float32Array.from({ length: experts * rows * columns }, (_, at) => {
    const level = (blocks[at >> 1] >> (4 * (at & 1))) & 15;
    return LEVELS[level] * 2 ** (scales[Math.floor(at / 32)] - 127);
  });
  const parts = {
    blocks: tensor(blocks, { shape: [experts, rows, groups, 16], dtype: "uint8" }),
    scales: tensor(scales, { shape: [experts, rows, groups], dtype: "uint8" }),
  };
  return { parts, values, shape };
}

/** [experts, rows, columns] → [experts, columns, rows] */
const unpacked = ({ values, shape }: Packed): Tensor => tensor(values, { shape: [...shape] }).transpose(1, 2);

async function write(name: string, config: object, tensors: nn.StateDict): Promise<string> {
  const path = folder.file(name);
  mkdirSync(path);
  writeFileSync(join(path, "config.json"), JSON.stringify(config));
  await io.saveSafetensors(join(path, "model.safetensors"), tensors);
  return path;
}

const sizes = fc.record({
  width: fc.constantFrom(32, 64, 96),
  hidden: fc.constantFrom(32, 64),
  experts: fc.constantFrom(2, 3, 5),
});

test("experts in mxfp4 of drawn sizes, levels and exponents are read exactly", async () => {
  let count = 0;
  await fc.assert(
    fc.asyncProperty(sizes, fc.nat(), async ({ width, hidden, experts }, seed) => {
      const random = new Random(seed);
      const generator = new Generator(seed);
      const drawn = (...shape: number[]) => randn(shape, { generator }).mul(0.2);
      const layer = "model.layers.0.";
      const [gateUp, down] = [packed(random, [experts, 2 * hidden, width]), packed(random, [experts, width, hidden])];
      const others: nn.StateDict = {
        "model.embed_tokens.weight": drawn(32, width),
        "lm_head.weight": drawn(32, width),
        "model.norm.weight": drawn(width),
        [`${layer}input_layernorm.weight`]: drawn(width),
        [`${layer}post_attention_layernorm.weight`]: drawn(width),
        [`${layer}self_attn.sinks`]: drawn(2),
        [`${layer}self_attn.q_proj.weight`]: drawn(16, width),
        [`${layer}self_attn.q_proj.bias`]: drawn(16),
        [`${layer}self_attn.k_proj.weight`]: drawn(8, width),
        [`${layer}self_attn.k_proj.bias`]: drawn(8),
        [`${layer}self_attn.v_proj.weight`]: drawn(8, width),
        [`${layer}self_attn.v_proj.bias`]: drawn(8),
        [`${layer}self_attn.o_proj.weight`]: drawn(width, 16),
        [`${layer}self_attn.o_proj.bias`]: drawn(width),
        [`${layer}mlp.router.weight`]: drawn(experts, width),
        [`${layer}mlp.router.bias`]: drawn(experts),
        [`${layer}mlp.experts.gate_up_proj_bias`]: drawn(experts, 2 * hidden),
        [`${layer}mlp.experts.down_proj_bias`]: drawn(experts, width),
      };
      const config = {
        model_type: "gpt_oss",
        vocab_size: 32,
        hidden_size: width,
        intermediate_size: hidden,
        head_dim: 8,
        num_hidden_layers: 1,
        num_attention_heads: 2,
        num_key_value_heads: 1,
        num_local_experts: experts,
        num_experts_per_tok: 2,
        max_position_embeddings: 64,
        rope_scaling: { rope_type: "default" },
      };
      const partsOf = (name: string, { parts }: Packed) =>
        Object.entries(parts).map(([part, x]) => [`${layer}mlp.experts.${name}_${part}`, x] as const);
      const quantized = await write(
        `packed-${++count}`,
        { ...config, quantization_config: { quant_method: "mxfp4", modules_to_not_convert: ["lm_head"] } },
        { ...others, ...Object.fromEntries([...partsOf("gate_up_proj", gateUp), ...partsOf("down_proj", down)]) },
      );
      const plain = await write(`plain-${count}`, config, {
        ...others,
        [`${layer}mlp.experts.gate_up_proj`]: unpacked(gateUp).contiguous(),
        [`${layer}mlp.experts.down_proj`]: unpacked(down).contiguous(),
      });
      const load = async (path: string) => (await nn.loadModel(path, { dtype: "float32" })).model;
      const [model, wanted] = [await load(quantized), await load(plain)];
      const expert = (model.blocks[0].feedForward as Experts).experts[experts - 1];
      for (const [name, first] of [
        ["gate", 0],
        ["up", 1],
      ] as const) {
        const weight = (expert[name] as nn.QuantizedLinear).weight;
        if (!QuantizedTensor.isQuantized(weight)) throw new Error(`expected ${name} to be quantized`);
        expect(weight.format).toBe("mxfp4");
        const rows = Array.from({ length: hidden }, (_, row) => ((experts - 1) * 2 * hidden + 2 * row + first) * width);
        const values = rows.flatMap((from) => [...gateUp.values.subarray(from, from + width)]);
        expect(numbers(dequantize(weight))).toEqual(values.map((value) => value + 0));
      }
      const [got, want] = [model, wanted].map((each) => noGrad(() => each.forward(TOKENS)));
      expect(errorOf(got, want)).toBeLessThan(1e-5);
    }),
    { numRuns: repeats({ usual: 8, all: 100 }), seed: 5 },
  );
});
