/** Generation: sampling, the cache, the end of a text, and freed memory. */
import { beforeEach, describe, expect, test } from "bun:test";
import {
  ArgumentError,
  amax,
  data,
  Generator,
  memory,
  nn,
  noGrad,
  oneHot,
  setBackend,
  type Tensor,
  tensor,
} from "../../../src/index.ts";
import type { Sampling } from "../../../src/nn/generation/options.ts";
import { candidatesOf, chooseToken, penalizeRepetition, scoresOf } from "../../../src/nn/generation/sampling.ts";
import { collectGarbage } from "../../support/garbage.ts";

const sizes = { vocabularySize: 31, contextLength: 16, layers: 2, heads: 4, width: 16 } as const;
/** Larger weights than initialized ones, so that logits differ. */
const generator = () => new Generator(9);
const models = {
  GPT: () => new nn.GPT({ ...sizes, generator: generator(), initialization: nn.gpt2Initialization(2, 0.4) }),
  Llama: () =>
    new nn.Llama({ ...sizes, keyValueHeads: 2, generator: generator(), initialization: nn.llamaInitialization(0.4) }),
} as const;
const kinds = ["GPT", "Llama"] as const;

const noLimits: Sampling = {
  temperature: 1,
  topK: Number.POSITIVE_INFINITY,
  topP: 1,
  minP: 0,
  repetitionPenalty: 1,
  presencePenalty: 0,
  frequencyPenalty: 0,
  logitBias: new Map(),
};
const samplingOf = (options: nn.SamplingOptions) => ({ ...noLimits, ...options }) as Sampling;

const row = (tokens: readonly number[]) => tensor([tokens as number[]], { dtype: "int32" });

async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const list: Item[] = [];
  for await (const item of items) list.push(item);
  return list;
}

beforeEach(() => setBackend("cpu"));

describe("a token is chosen from logits", () => {
  const logits = [1, 3, -2, 3, 0.5, 2];
  const softmax = (values: readonly number[]): number[] => {
    const weights = values.map(Math.exp);
    const sum = weights.reduce((total, weight) => total + weight, 0);
    return weights.map((weight) => weight / sum);
  };
  /** Probabilities by token. */
  const chances = (options: nn.SamplingOptions, come: readonly number[] = []): Map<number, number> => {
    const sampling = samplingOf(options);
    const { tokens, weights } = candidatesOf(penalizeRepetition(logits, come, sampling.repetitionPenalty), sampling);
    const sum = Array.from(weights).reduce((total, weight) => total + weight, 0);
    return new Map(Array.from(tokens, (token, at) => [token, weights[at] / sum]));
  };
  const expectChances = (got: Map<number, number>, wanted: Readonly<Record<number, number>>) => {
    expect([...got.keys()].sort()).toEqual(Object.keys(wanted).map(Number));
    for (const [token, chance] of got) expect(chance).toBeCloseTo(wanted[token], 12);
  };

  test("temperature divides logits", () => {
    expectChances(chances({}), { ...softmax(logits) });
    expectChances(chances({ temperature: 0.5 }), { ...softmax(logits.map((logit) => logit / 0.5)) });
  });

  test("topK keeps the largest logits, the first of equal ones", () => {
    expectChances(chances({ topK: 1 }), { 1: 1 });
    const [a, b, c] = softmax([3, 3, 2]) as [number, number, number];
    expectChances(chances({ topK: 3 }), { 1: a, 3: b, 5: c });
    expect(chances({ topK: 100 }).size).toBe(6);
  });

  test("topP keeps the fewest tokens with that total probability, after topK and temperature", () => {
    const p = softmax(logits);
    expect(p[1] + p[3]).toBeLessThan(0.8);
    const three = softmax([3, 3, 2]);
    expectChances(chances({ topP: 0.8 }), { 1: three[0], 3: three[1], 5: three[2] });
    expectChances(chances({ topP: 0.001 }), { 1: 1 });
    expectChances(chances({ topP: (p[1] + p[3]) * 0.999 }), { 1: 0.5, 3: 0.5 });
    // Of the three most likely tokens, the two largest have probability 0.84; of all six, only 0.76.
    expectChances(chances({ topP: 0.8, topK: 3 }), { 1: 0.5, 3: 0.5 });
  });

  test("a large vocabulary gives the same tokens as sorting all of them", () => {
    // a hundred likely tokens share 10/11 of the probability; the others are a tenth as likely as the mean
    const many = Array.from(
      { length: 1000 },
      (_, at) => ((at * 7) % 10 === 0 ? 0 : Math.log(1 / 90)) - (at % 13) * 1e-9,
    );
    const sorted = many.map((score, token) => ({ token, weight: Math.exp(score) }));
    sorted.sort((a, b) => b.weight - a.weight || a.token - b.token);
    const sum = sorted.reduce((total, { weight }) => total + weight, 0);
    const keptOf = (options: nn.SamplingOptions) =>
      Array.from(candidatesOf(Float64Array.from(many), samplingOf(options)).tokens);
    for (const topP of [0.5, 0.95, 0.999]) {
      const kept: number[] = [];
      for (let mass = 0; mass < topP * sum; mass += sorted[kept.length - 1].weight)
        kept.push(sorted[kept.length].token);
      expect(keptOf({ topP })).toEqual(kept);
      expect(keptOf({ topP, minP: 0.5 })).toEqual(kept.slice(0, 100));
    }
    for (const topK of [1, 99, 101, 999])
      expect(keptOf({ topK })).toEqual(sorted.slice(0, topK).map(({ token }) => token));
  });

  test("after temperature, minP keeps tokens with at least the fraction minP of the top token's probability", () => {
    const p = softmax(logits.map((logit) => logit / 2));
    expect(p[5] / p[1]).toBeCloseTo(Math.exp(-0.5), 12);
    const three = softmax([1.5, 1.5, 1]);
    const kept = { 1: three[0], 3: three[1], 5: three[2] };
    expectChances(chances({ temperature: 2, minP: Math.exp(-0.5) * 0.999 }), kept);
    expectChances(chances({ temperature: 2, minP: Math.exp(-0.5) * 1.001 }), { 1: 0.5, 3: 0.5 });
    expectChances(chances({ minP: 1, topK: 1 }), { 1: 1 });
  });

  test("presence and frequency penalties count generated tokens; biases are added", () => {
    const counts = new Map([
      [1, 3],
      [4, 1],
    ]);
    const sampling = samplingOf({ presencePenalty: 0.5, frequencyPenalty: 0.25 });
    expect([...scoresOf(logits, { seen: [0, 1, 4], counts }, sampling)]).toEqual([1, 1.75, -2, 3, -0.25, 2]);
    const alone = (own: Parameters<typeof samplingOf>[0]) => [
      ...scoresOf(logits, { seen: [0, 1, 4], counts }, samplingOf(own)),
    ];
    expect(alone({ presencePenalty: 0.5 })).toEqual([1, 2.5, -2, 3, 0, 2]);
    expect(alone({ frequencyPenalty: 0.25 })).toEqual([1, 2.25, -2, 3, 0.25, 2]);
    // Each penalty alone, with every multiple of 1/2 that the OpenAI API allows.
    for (let penalty = -2; penalty <= 2; penalty += 0.5) {
      const lowered = (of: (count: number) => number) =>
        [...logits].map((logit, token) => logit - (counts.has(token) ? of(counts.get(token)!) : 0));
      expect(alone({ presencePenalty: penalty })).toEqual(lowered(() => penalty));
      expect(alone({ frequencyPenalty: penalty })).toEqual(lowered((count) => penalty * count));
    }
    const logitBias = new Map([
      [0, 4],
      [3, Number.NEGATIVE_INFINITY],
      [100, 1],
    ]);
    const biased = scoresOf(logits, { seen: [] }, { ...samplingOf({}), logitBias });
    expect([...biased]).toEqual([5, 3, -2, Number.NEGATIVE_INFINITY, 0.5, 2]);
  });

  test("the repetition penalty makes previous tokens less likely, each once", () => {
    const wanted = [1 / 2, 3, -4, 3, 0.5, 2];
    expectChances(chances({ repetitionPenalty: 2 }, [0, 2, 0, 0]), { ...softmax(wanted) });
  });

  test.each<nn.SamplingOptions>([
    {},
    { temperature: 0.7, topK: 4 },
    { topP: 0.9, repetitionPenalty: 1.5, temperature: 2 },
  ])("tokens are drawn with their probabilities: %j", (options) => {
    const [come, draws, source] = [[1, 4], 4000, new Generator(11)];
    const counts = new Map<number, number>();
    for (let draw = 0; draw < draws; draw++) {
      const token = chooseToken(logits, { seen: come }, samplingOf(options), source);
      counts.set(token, (counts.get(token) ?? 0) + 1);
    }
    const wanted = chances(options, come);
    expect([...counts.keys()].every((token) => wanted.has(token))).toBe(true);
    // Pearson's χ², whose 99.9 % bound for up to five degrees of freedom is 20.5.
    const terms = [...wanted].map(
      ([token, chance]) => ((counts.get(token) ?? 0) - draws * chance) ** 2 / (draws * chance),
    );
    expect(terms.reduce((sum, term) => sum + term, 0)).toBeLessThan(20.5);
  });

  test("temperature 0 returns the argmax, the first of ties, and draws no random number", () => {
    const source = new Generator(1);
    const greedy = samplingOf({ temperature: 0 });
    expect(chooseToken(logits, { seen: [] }, greedy, source)).toBe(1);
    expect(chooseToken(logits, { seen: [1] }, samplingOf({ temperature: 0, repetitionPenalty: 2 }), source)).toBe(3);
    expect(source.getState().offset).toBe(0n);
  });

  test("a logit of −∞ is never drawn, NaN is an error", () => {
    const sampling = samplingOf({});
    const source = new Generator(2);
    const drawn = Array.from({ length: 50 }, () => chooseToken([0, -Infinity, 0], { seen: [] }, sampling, source));
    expect(new Set(drawn)).toEqual(new Set([0, 2]));
    for (const wrong of [
      [1, Number.NaN],
      [-Infinity, -Infinity],
      [1, Infinity],
    ])
      expect(() => chooseToken(wrong, { seen: [] }, sampling, source)).toThrow(
        expect.objectContaining({ code: "notFinite" }),
      );
  });
});

describe.each(kinds)("generation with a cache on %s", (kind) => {
  test("logits with a cache equal those without", () => {
    const model = models[kind]().eval();
    const tokens = Array.from({ length: 16 }, (_, at) => (at * 7) % 31);
    const whole = noGrad(() => model.forward(row(tokens)));
    using cache = model.newCache();
    for (const [start, count] of [
      [0, 5],
      [5, 1],
      [6, 1],
      [7, 4],
      [11, 1],
      [12, 1],
      [13, 3],
    ] as const) {
      const part = noGrad(() => model.forward(row(tokens.slice(start, start + count)), { cache }));
      expect(Number(amax(part.sub(whole.narrow(1, start, count)).abs()).item())).toBeLessThan(2e-5);
      const last = noGrad(() => model.forward(row(tokens.slice(0, start + count)), { lastOnly: true }));
      expect(last.shape).toEqual([1, 1, 31]);
      expect(Number(amax(last.sub(whole.narrow(1, start + count - 1, 1)).abs()).item())).toBeLessThan(2e-5);
    }
    expect([cache.position, cache.length, cache.limit]).toEqual([16, 16, 16]);
  });

  test("the tokens are the same with and without a cache", async () => {
    const model = models[kind]();
    // GPT recomputes its context at every token once it is full; in Llama, the effect of forgotten tokens on later
    // layers remains.
    const maxTokens = kind === "GPT" ? 40 : sizes.contextLength - 3;
    const run = (useCache: boolean) =>
      collect(nn.generate(model, [1, 2, 3], { maxTokens, useCache, seed: 5, temperature: 0.9 }));
    const tokens = await run(true);
    expect(tokens.length).toBe(maxTokens);
    expect(new Set(tokens).size).toBeGreaterThan(4);
    expect(await run(false)).toEqual(tokens);
  });

  test("generation continues when the context is full", async () => {
    const tokens = await collect(nn.generate(models[kind](), [1], { maxTokens: 50, seed: 1 }));
    expect(tokens.length).toBe(50);
  });

  test("greedy decoding chooses the most likely token each time", async () => {
    const model = models[kind]();
    const text = [4, 5];
    for await (const token of nn.generate(model, text, { maxTokens: 10, temperature: 0 })) {
      const logits = noGrad(() => model.eval().forward(row(text), { lastOnly: true }));
      expect(token).toBe(Number(logits.argmax().item()));
      text.push(token);
    }
    expect(text.length).toBe(12);
  });

  test("only the end of a prompt longer than the context is used", async () => {
    const model = models[kind]();
    const long = Array.from({ length: 40 }, (_, at) => (at * 5) % 31);
    const run = (tokens: readonly number[]) => collect(nn.generate(model, tokens, { maxTokens: 5, seed: 3 }));
    expect(await run(long)).toEqual(await run(long.slice(-16)));
  });
});

describe("generate returns the tokens of a text", () => {
  const model = models.GPT();

  test("a seed repeats the tokens, another seed does not; a generator advances", async () => {
    const run = (options: nn.GenerateOptions) => collect(nn.generate(model, [1], { maxTokens: 12, ...options }));
    expect(await run({ seed: 7 })).toEqual(await run({ seed: 7 }));
    expect(await run({ seed: 7 })).not.toEqual(await run({ seed: 8 }));
    expect(await run({ seed: 7 })).toEqual(await run({ generator: new Generator(7) }));
    expect(await run({})).not.toEqual(await run({}));
  });

  test("generate accepts lists, typed arrays and tensors", async () => {
    const run = (tokens: nn.Tokens) => collect(nn.generate(model, tokens, { maxTokens: 4, seed: 1 }));
    const tokens = await run([3, 4]);
    expect(await run(Uint16Array.of(3, 4))).toEqual(tokens);
    expect(await run(tensor([3n, 4n]))).toEqual(tokens);
    expect(await run(row([3, 4]))).toEqual(tokens);
  });

  test("generation stops before a stop token, and at maxTokens", async () => {
    const all = await collect(nn.generate(model, [1], { maxTokens: 30, seed: 2 }));
    const stop = all[9];
    const stopped = await collect(nn.generate(model, [1], { maxTokens: 30, seed: 2, stopTokens: [stop, 99] }));
    expect(stopped).toEqual(all.slice(0, all.indexOf(stop)));
    expect(await collect(nn.generate(model, [1], { maxTokens: 0 }))).toEqual([]);
  });

  test("a signal ends generation with its reason", async () => {
    const controller = new AbortController();
    const got: number[] = [];
    const run = async () => {
      for await (const token of nn.generate(model, [1], { seed: 2, signal: controller.signal })) {
        got.push(token);
        if (got.length === 3) controller.abort(new Error("enough"));
      }
    };
    await expect(run()).rejects.toThrow("enough");
    expect(got.length).toBe(3);
  });

  test("the event loop runs between tokens", async () => {
    let turns = 0;
    const timer = setInterval(() => turns++, 0);
    const seen = new Set<number>();
    for await (const _ of nn.generate(model, [1], { maxTokens: 200, seed: 2 })) seen.add(turns);
    clearInterval(timer);
    expect(seen.size).toBeGreaterThan(2);
  });

  test("generation runs without dropout and autograd, and does not change the model", async () => {
    const own = new nn.GPT({
      ...sizes,
      dropout: 0.5,
      generator: generator(),
      initialization: nn.gpt2Initialization(2, 0.4),
    });
    own.blocks[0].eval();
    const modes = () => own.modules().map(({ training }) => training);
    const before = modes();
    const tokens = await collect(nn.generate(own, [1], { maxTokens: 8, temperature: 0 }));
    expect(modes()).toEqual(before);
    expect(tokens).toEqual(await collect(nn.generate(model, [1], { maxTokens: 8, temperature: 0 })));
    expect(own.parameters().every(({ grad }) => grad === null)).toBe(true);
  });

  test.each(kinds)("%s: 200 tokens leave no memory behind, and neither does an early exit", async (kind) => {
    const big = { ...sizes, width: 128, contextLength: 256 }; // blocks of 64 KB and more are counted
    const own = kind === "GPT" ? new nn.GPT(big) : new nn.Llama(big);
    await collect(nn.generate(own, [1], { maxTokens: 2 }));
    await collectGarbage(); // otherwise garbage of other tests would be counted
    const live = () => memory().host.liveBytes;
    const before = live();
    let [most, count] = [0, 0];
    for await (const _ of nn.generate(own, [1], { maxTokens: 200, seed: 1 })) {
      most = Math.max(most, live() - before);
      count++;
    }
    expect([count, live()]).toEqual([200, before]);
    // Keys and values of two layers, the peak memory of one step, and the arena of a program.
    expect(most).toBeLessThan(2 * 2 * 256 * 128 * 4 * 1.1 + 2 ** 16);
    for await (const _ of nn.generate(own, [1])) break;
    expect(live()).toBe(before);
  });

  test.each<readonly [string, nn.GenerateOptions]>([
    ["expected temperature to be a finite number of at least 0", { temperature: -1 }],
    ["expected topK to be a whole number of at least 1", { topK: 0 }],
    ["expected topK to be a whole number of at least 1", { topK: 1.5 }],
    ["expected topP to be a probability above 0", { topP: 0 }],
    ["expected topP to be a probability above 0", { topP: 1.1 }],
    ["expected repetitionPenalty to be a finite number above 0", { repetitionPenalty: 0 }],
    ["expected maxTokens to be a whole number of at least 0", { maxTokens: -1 }],
    ["expected temperature to be a finite number of at least 0", { temperature: Number.NaN }],
    ["expected a seed or a generator, got both", { seed: 1, generator: new Generator(1) }],
  ])("generate rejects %s at once", (said, options) => {
    expect(() => nn.generate(model, [1], options)).toThrow(ArgumentError);
    expect(() => nn.generate(model, [1], options)).toThrow(said);
  });

  test.each<readonly [string, nn.Tokens]>([
    ["noTokens", []],
    ["notInVocabulary", [1, 31]],
    ["notInVocabulary", [-1]],
    ["notInVocabulary", [1.5]],
    ["notOneText", tensor([[1], [2]], { dtype: "int32" })],
  ])("generate rejects the tokens %s at once", (code, tokens) => {
    expect(() => nn.generate(model, tokens)).toThrow(expect.objectContaining({ code }));
  });

  test("weights of NaN are an error", async () => {
    const broken = models.GPT();
    broken.finalNorm.loadStateDict({
      weight: tensor(new Array<number>(16).fill(Number.NaN)),
      bias: new nn.LayerNorm(16).bias! as Tensor,
    });
    const message = "expected logits with a finite maximum, got NaN";
    await expect(collect(nn.generate(broken, [1], {}))).rejects.toThrow(message);
  });
});

const bytes = new data.ByteTokenizer();

describe("generateText yields pieces of a text", () => {
  /** A model that continues a given text: each of its tokens is almost certain. */
  class Reciting extends nn.GPT {
    text: readonly number[] = [];
    override forward(): Tensor {
      const [next = 0, ...rest] = this.text;
      this.text = rest;
      return oneHot(tensor([[next]], { dtype: "int64" }), { numClasses: 256 })
        .to("float32")
        .mul(100) as Tensor;
    }
  }
  const reciting = new Reciting({ ...sizes, vocabularySize: 257 });
  const piecesOf = (text: readonly number[], tokenizer: nn.TextCodec = bytes) => {
    reciting.text = text;
    return collect(nn.generateText(reciting, tokenizer, "a", { maxTokens: text.length, temperature: 0 }));
  };

  test("a character is yielded in one piece, with its last byte", async () => {
    const text = "aä€😀 ẞ\n";
    expect(await piecesOf([...new TextEncoder().encode(text)])).toEqual([...text]);
  });

  test("invalid and incomplete UTF-8 is yielded as U+FFFD", async () => {
    expect(await piecesOf([0x61, 0xff, 0x62])).toEqual(["a", "\uFFFD", "b"]);
    expect(await piecesOf([0x61, 0xe2, 0x82])).toEqual(["a", "\uFFFD"]);
  });

  test("generation ends at the tokenizer's end-of-text token", async () => {
    const ending = { endOfText: 0, encode: (text: string) => bytes.encode(text), decoder: () => bytes.decoder() };
    expect(await piecesOf([0x61, 0x62, 0, 0x63], ending)).toEqual(["a", "b"]);
    expect(await piecesOf([0x61, 0, 0x63])).toEqual(["a", "\0", "c"]);
  });

  test("generateText streams the text of the tokens that generate() returns", async () => {
    const model = new nn.GPT({
      ...sizes,
      vocabularySize: bytes.vocabularySize,
      generator: generator(),
      initialization: nn.gpt2Initialization(2, 0.4),
    });
    const options = { maxTokens: 60, seed: 3 };
    const tokens = await collect(nn.generate(model, bytes.encode("ab"), options));
    const pieces = await collect(nn.generateText(model, bytes, "ab", options));
    expect(pieces.join("")).toBe(bytes.decode(tokens));
    expect(pieces.length).toBeGreaterThan(10);
    expect(pieces).not.toContain("");
  });

  test("an empty prompt is rejected at once", () => {
    expect(() => nn.generateText(models.GPT(), bytes, "")).toThrow(ArgumentError);
  });
});

test("a text ends before the first stop text, and a prompt may be tokens", async () => {
  const model = new nn.Llama({ ...sizes, vocabularySize: 256, generator: generator() });
  const bytes = new data.ByteTokenizer();
  const options = { maxTokens: 12, temperature: 3, topK: 200, seed: 5 };
  const ascii = Object.fromEntries(Array.from({ length: 128 }, (_, at) => [128 + at, Number.NEGATIVE_INFINITY]));
  const own = { ...options, logitBias: ascii };
  const whole = (await collect(nn.generateText(model, bytes, "ab", own))).join("");
  expect(whole).toHaveLength(12);
  const stop = ["never", whole.slice(5, 8)];
  const stopped = (await collect(nn.generateText(model, bytes, bytes.encode("ab"), { ...own, stop }))).join("");
  expect(stopped).toBe(whole.slice(0, whole.indexOf(stop[1])));
});
