/** Sparse attention of GLM-5 and DeepSeek-V3.2 in texts of several blocks of queries. */
import { describe, expect, test } from "bun:test";
import { Generator, nn, noGrad, randn, type Tensor, tensor } from "../../../src/index.ts";
import type { Decoder } from "../../../src/nn/models/decoder/decoder.ts";
import { Random } from "../../ops/samples.ts";
import { errorOf } from "./loading/oracle.ts";

const LENGTH = 300; // three blocks of queries

function modelOf(type: "glm_moe_dsa" | "deepseek_v32", count: number): Decoder {
  const model = nn
    .createModel<Decoder>({
      model_type: type,
      vocab_size: 31,
      hidden_size: 16,
      intermediate_size: 20,
      num_hidden_layers: 3,
      num_attention_heads: 2,
      num_key_value_heads: 2,
      n_routed_experts: 4,
      num_experts_per_tok: 2,
      n_group: 1,
      topk_group: 1,
      moe_intermediate_size: 12,
      kv_lora_rank: 8,
      q_lora_rank: 12,
      v_head_dim: 6,
      qk_rope_head_dim: 4,
      qk_nope_head_dim: 4,
      index_topk: count,
      index_head_dim: 12,
      index_n_heads: 16,
      max_position_embeddings: 512,
      ...(type === "glm_moe_dsa" && { indexer_types: ["full", "shared", "full"] }),
    })
    .eval();
  const generator = new Generator(9);
  noGrad(() => {
    for (const own of model.parameters()) own.copy_(randn([...own.shape], { generator }).mul(0.4) as Tensor);
  });
  return model;
}

const random = new Random(4);
const texts = [0, 1].map(() => Array.from({ length: LENGTH }, () => random.integer(1, 30)));
const batch = (rows: readonly number[][]) => tensor(rows as number[][], { dtype: "int32" });

describe.each(["glm_moe_dsa", "deepseek_v32"] as const)("a text of several blocks: %s", (type) => {
  const model = modelOf(type, 20);

  test("equals the same text in parts with a cache", () => {
    using cache = model.newCache();
    const whole = noGrad(() => model.forward(batch(texts)));
    let first = 0;
    for (const count of [13, 140, 1, 146]) {
      const part = noGrad(() => model.forward(batch(texts).narrow(1, first, count), { cache }));
      expect(errorOf(part, whole.narrow(1, first, count))).toBeLessThan(1e-5);
      first += count;
    }
    expect(first).toBe(LENGTH);
  });

  test("equals the same text with padding before it", () => {
    const padded = [texts[0], [...Array<number>(40).fill(0), ...texts[1].slice(0, LENGTH - 40)]];
    const whole = noGrad(() => model.forward(batch([texts[1]])));
    const got = noGrad(() => model.forward(batch(padded), { padding: [0, 40] }));
    expect(errorOf(got.narrow(0, 1, 1).narrow(1, 40, LENGTH - 40), whole.narrow(1, 0, LENGTH - 40))).toBeLessThan(1e-5);
  });

  test("a cache can be truncated", () => {
    using cache = model.newCache();
    const whole = noGrad(() => model.forward(batch([texts[0]]), { cache })).narrow(1, 200, 5);
    cache.truncate(200);
    const again = noGrad(() => model.forward(batch([texts[0].slice(200, 205)]), { cache }));
    expect(errorOf(again, whole)).toBeLessThan(1e-5);
  });

  test("differs from attention to all tokens only beyond the number of chosen tokens", () => {
    const [sparse, full] = [model, modelOf(type, LENGTH)].map((each) => noGrad(() => each.forward(batch([texts[0]]))));
    expect(errorOf(sparse.narrow(1, 0, 20), full.narrow(1, 0, 20))).toBeLessThan(1e-6);
    expect(errorOf(sparse.narrow(1, 21, 100), full.narrow(1, 21, 100))).toBeGreaterThan(1e-3);
  });

  test("equals the same text beside another in a row", () => {
    const rows = [texts[0].slice(0, 60), texts[1].slice(0, 90)];
    const both = noGrad(() => model.forward(batch([rows.flat()]), { segments: [[60, 90]] }));
    const alone = noGrad(() => model.forward(batch([rows[1]])));
    expect(errorOf(both.narrow(1, 60, 90), alone)).toBeLessThan(1e-5);
  });
});
