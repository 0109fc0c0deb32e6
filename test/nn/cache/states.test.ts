/** Caches of recurrent layers: states are copied, reordered, cleared, and cannot go back. */
import { expect, test } from "bun:test";
import { nn, noGrad, type Tensor, tensor } from "../../../src/index.ts";
import { errorOf } from "../models/loading/oracle.ts";

const models = ["lfm2", "mamba2", "qwen3_next"].map((name) => {
  const shared = { model_type: name, vocab_size: 40, hidden_size: 16, num_hidden_layers: 2 };
  const attention = { num_attention_heads: 2, num_key_value_heads: 1, intermediate_size: 24 };
  const own = {
    lfm2: { ...attention, layer_types: ["conv", "full_attention"], block_multiple_of: 4 },
    mamba2: { num_heads: 4, head_dim: 8, state_size: 6, n_groups: 2 },
    qwen3_next: {
      ...attention,
      head_dim: 8,
      num_experts: 0,
      linear_num_key_heads: 1,
      linear_num_value_heads: 2,
      linear_key_head_dim: 4,
      linear_value_head_dim: 4,
      full_attention_interval: 2,
    },
  }[name];
  return [name, nn.createModel({ ...shared, ...own }).eval() as nn.LanguageModel] as const;
});
const tokens = (...rows: number[][]) => tensor(rows, { dtype: "int32" });
const run = (model: nn.LanguageModel, x: Tensor, cache?: nn.KeyValueCache) =>
  noGrad(() => model.forward(x, { cache }) as Tensor);

test.each(models)("%s: a reset cache starts again, and cannot be truncated to fewer tokens", (_, model) => {
  using cache = model.newCache();
  const first = run(model, tokens([1, 2, 3]), cache);
  expect([cache.canTruncate(3), cache.canTruncate(2), cache.canTruncate(0)]).toEqual([true, false, true]);
  expect(() => cache.truncate(2)).toThrow("a recurrent layer keeps only the state of all tokens");
  expect(cache.position).toBe(3);
  cache.truncate(0);
  expect(errorOf(run(model, tokens([1, 2, 3]), cache), first)).toBe(0);
  cache.reset();
  expect(errorOf(run(model, tokens([1, 2, 3]), cache), first)).toBe(0);
});

test.each(models)("%s: reordered rows continue their texts", (_, model) => {
  using cache = model.newCache();
  run(model, tokens([1, 2, 3, 4], [5, 6, 7, 8]), cache);
  cache.reorder([1, 1]);
  const got = run(model, tokens([9], [10]), cache);
  const want = run(model, tokens([5, 6, 7, 8, 9], [5, 6, 7, 8, 10])).narrow(1, 4, 1);
  expect(errorOf(got, want)).toBeLessThan(1e-5);
});

test.each(models)("%s: a long text in chunks has the same logits as its tokens one at a time", (_, model) => {
  const text = Array.from({ length: 150 }, (_, at) => (at * 7919) % 40);
  const whole = run(model, tokens(text));
  using cache = model.newCache();
  const rows = text.map((token) => run(model, tokens([token]), cache));
  for (const at of [0, 63, 64, 65, 128, 149]) expect(errorOf(rows[at], whole.narrow(1, at, 1))).toBeLessThan(1e-4);
});

test.each(models)("%s: gradients reach every parameter", (_, model) => {
  model.train();
  (model.forward(tokens([1, 2, 3, 4, 5])) as Tensor).square().mean().backward();
  const without = [...model.namedParameters()].filter(([, { grad }]) => grad === null).map(([name]) => name);
  expect(without).toEqual([]);
  for (const parameter of model.parameters()) parameter.grad = null;
  model.eval();
});

test.each(models)(
  "%s: huggingFaceState() is rejected, because Hugging Face's convolutions have another shape",
  (_, model) => {
    expect(() => model.huggingFaceState()).toThrow("expected a model with weights in Hugging Face's form");
  },
);

test.each(models)("%s: drafts and rows of several texts are rejected", async (_, model) => {
  const texts = async () => await Array.fromAsync(nn.generate(model, [1, 2], { draft: model, maxTokens: 2 }));
  expect(texts()).rejects.toThrow("draft is not supported for models with recurrent layers");
  expect(() => model.forward(tokens([1, 2, 3, 4]), { segments: [[2, 2]] })).toThrow(
    "rows of several texts are not supported by recurrent layers",
  );
});
