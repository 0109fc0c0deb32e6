/** LongRoPE with caches, for texts that cross the original context (96 tokens), compared with `transformers`. */
import { beforeAll, describe, expect, test } from "bun:test";
import { nn, noGrad, type Tensor, tensor } from "../../../../src/index.ts";
import { answersOf, errorOf, folderOf, greedy, numbers } from "./oracle.ts";

const answers = answersOf("phi3");
const [crossing, long] = [answers["crossingTokens"], answers["longTokens"]];
const first = crossing.narrow(0, 0, 1);
const across = numbers(answers["across"]);
const behind = numbers(answers["behind"]);
const CLOSE = 1e-5;

let model: nn.LanguageModel;
beforeAll(async () => {
  ({ model } = await nn.loadModel(folderOf("phi3"), { dtype: "float32" }));
});

const rowOf = (tokens: readonly number[]) => tensor([[...tokens]], { dtype: "int32" });
const logitsOf = (tokens: readonly number[] | Tensor, cache?: nn.KeyValueCache) =>
  noGrad(() => model.forward(Array.isArray(tokens) ? rowOf(tokens) : (tokens as Tensor), { cache, lastOnly: true }));

describe.each([true, false])("long texts have the right tokens, with a cache: %p", (useCache) => {
  test("tokens are right after a text that crosses the original context, and after one beyond it", () => {
    expect(greedy(model, first, 16, { useCache })).toEqual([across]);
    expect(greedy(model, long, 16, { useCache })).toEqual([behind]);
  });

  test("tokens of a batch padded on the left are right", () => {
    const want = [0, 1].map((row) => numbers(answers["acrossPadded"].narrow(0, row, 1)));
    expect(greedy(model, crossing, 16, { useCache, padding: [0, 83] })).toEqual(want);
  });
});

test.each([1, 40, 96, 97])("a prompt in parts of %p tokens has the same logits as the whole", (size) => {
  using cache = model.newCache();
  const tokens = numbers(long);
  let logits = logitsOf(tokens.slice(0, size), cache);
  for (let at = size; at < tokens.length; at += size) logits = logitsOf(tokens.slice(at, at + size), cache);
  expect(errorOf(logits, answers["longLogits"].narrow(1, 2, 1))).toBeLessThan(CLOSE);
});

test("a cache truncated to below the original context has the same logits as the shorter text", () => {
  using cache = model.newCache();
  logitsOf(long, cache);
  cache.truncate(93);
  const text = [...numbers(long).slice(0, 93), 5];
  expect(errorOf(logitsOf([5], cache), logitsOf(text))).toBeLessThan(CLOSE);
  expect(errorOf(logitsOf([6, 7, 8], cache), logitsOf([...text, 6, 7, 8]))).toBeLessThan(CLOSE);
});

test("padding does not count toward the length of a text", () => {
  using cache = model.newCache();
  const text = numbers(long).slice(0, 80);
  const padded = rowOf([...Array<number>(20).fill(0), ...text]);
  const part = (start: number, count: number) =>
    noGrad(() => model.forward(padded.narrow(1, start, count), { cache, padding: [20], lastOnly: true }));
  part(0, 94);
  expect(errorOf(part(94, 6), logitsOf(text))).toBeLessThan(CLOSE);
  const all = noGrad(() => model.forward(padded, { padding: [20], lastOnly: true }));
  expect(errorOf(all, logitsOf(text))).toBeLessThan(CLOSE);
});

test("several texts at once cross the original context separately", async () => {
  using batcher = new nn.Batcher(model, { slots: 3 });
  const tokens = numbers(first);
  const texts = [tokens, numbers(long), tokens.slice(0, 30)].map(async (prompt) => {
    const found: number[] = [];
    for await (const { token } of batcher.submit(prompt, { maxTokens: 16, temperature: 0 })) found.push(token);
    return found;
  });
  const short = greedy(model, rowOf(tokens.slice(0, 30)), 16, { useCache: false });
  expect(await Promise.all(texts)).toEqual([across, behind, ...short]);
});

test("speculative decoding across the original context has the same tokens", async () => {
  const { model: draft } = await nn.loadModel(folderOf("llama"), { dtype: "float32" });
  for (const other of [draft, model]) {
    const found: number[] = [];
    const options = { maxTokens: 16, temperature: 0, draft: other };
    for await (const token of nn.generate(model, numbers(first), options)) found.push(token);
    expect(found).toEqual(across);
  }
});

test("consecutive texts in one row have separate lengths", () => {
  const tokens = numbers(long).slice(0, 60);
  const both = noGrad(() => model.forward(rowOf([...tokens, ...tokens.toReversed()]), { segments: [[60, 60]] }));
  const alone = [tokens, tokens.toReversed()].map((own) => noGrad(() => model.forward(rowOf(own))));
  for (const [at, own] of alone.entries()) expect(errorOf(both.narrow(1, 60 * at, 60), own)).toBeLessThan(CLOSE);
});

test("a cache of unknown texts is rejected", () => {
  using cache = model.newCache();
  logitsOf([1, 2, 3], cache);
  const both = tensor([[1], [2]], { dtype: "int32" });
  expect(() => logitsOf(both, cache)).toThrow("expected a cache of 2 texts that this model computed");
});
