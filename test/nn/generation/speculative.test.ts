/** Speculative decoding has the large model's distribution, regardless of the draft model. */
import { beforeAll, describe, expect, test } from "bun:test";
import { Generator, nn, noGrad, setBackend, tensor } from "../../../src/index.ts";

const make = (seed: number, vocabularySize: number, layers = 1, scale = 0.5) =>
  new nn.Llama({
    vocabularySize,
    contextLength: 24,
    layers,
    heads: 2,
    width: 8,
    generator: new Generator(seed),
    initialization: nn.llamaInitialization(scale),
  });

async function tokensOf(model: nn.LanguageModel, prompt: number[], options: nn.GenerateOptions): Promise<number[]> {
  return await Array.fromAsync(nn.generate(model, prompt, options));
}

beforeAll(() => {
  setBackend("cpu");
});

describe("greedy tokens match the model alone", () => {
  const model = make(1, 31, 2);
  const drafts = { other: make(2, 31), itself: model };
  test.each(Object.entries(drafts))("a draft model gives the same greedy tokens: %s", async (_name, draft) => {
    for (const draftTokens of [1, 3, 7]) {
      const options = { temperature: 0, maxTokens: 18, repetitionPenalty: 1.3, frequencyPenalty: 0.2 };
      const wanted = await tokensOf(model, [1, 2, 3], options);
      expect(await tokensOf(model, [1, 2, 3], { ...options, draft, draftTokens })).toEqual(wanted);
    }
  });
});

test("a draft model that agrees with the model saves passes of it", async () => {
  const [model, draft] = [make(1, 31, 2), make(1, 31, 2)];
  let passes = 0;
  const forward = model.forward.bind(model);
  model.forward = (tokens, inputs) => {
    passes++;
    return forward(tokens, inputs);
  };
  expect(await tokensOf(model, [1, 2], { draft, draftTokens: 4, maxTokens: 20, seed: 3 })).toHaveLength(20);
  expect(passes).toBe(4); // five tokens in each pass
});

test("tokens have the probabilities of the model alone", async () => {
  const [size, runs] = [4, 1200];
  const [model, draft] = [make(5, size), make(6, size, 1, 0.8)];
  const sampling = { temperature: 1.2, minP: 0.02 };
  const softmax = (prompt: readonly number[]): number[] => {
    const logits = noGrad(() =>
      model.eval().forward(tensor([prompt as number[]], { dtype: "int32" }), { lastOnly: true }),
    );
    const weights = [...(logits.dataSync() as Float32Array)].map((logit) => Math.exp(logit / sampling.temperature));
    const most = Math.max(...weights);
    const kept = weights.map((weight) => (weight >= sampling.minP * most ? weight : 0));
    const sum = kept.reduce((total, weight) => total + weight, 0);
    return kept.map((weight) => weight / sum);
  };
  const chances = softmax([1]).flatMap((chance, token) => softmax([1, token]).map((next) => chance * next));
  const counts = chances.map(() => 0);
  const generator = new Generator(8);
  for (let run = 0; run < runs; run++) {
    const [a, b] = await tokensOf(model, [1], { ...sampling, draft, draftTokens: 2, maxTokens: 2, generator });
    counts[a * size + b]++;
  }
  const terms = chances.map((chance, at) => (chance === 0 ? 0 : (counts[at] - runs * chance) ** 2 / (runs * chance)));
  expect(chances.every((chance, at) => chance > 0 || counts[at] === 0)).toBe(true);
  // Pearson's χ² with 15 degrees of freedom: its 99.9 % bound.
  expect(terms.reduce((sum, term) => sum + term, 0)).toBeLessThan(37.7);
});

test("incompatible models and options are rejected", () => {
  const model = make(1, 31);
  expect(() => nn.generate(model, [1], { draft: make(1, 30) })).toThrow(/vocabulary of 31 tokens, got 30/);
  expect(() => nn.generate(model, [1], { draft: model, useCache: false })).toThrow(/draft requires useCache: true/);
  expect(() => nn.generate(model, new Array<number>(25).fill(1), { draft: model })).toThrow(/at most 24 tokens/);
});
