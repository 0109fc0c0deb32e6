/** Texts generated in one batch: each as if it were alone, whichever others join and leave. */
import { beforeEach, describe, expect, test } from "bun:test";
import { amax, Generator, nn, noGrad, setBackend, type Tensor, tensor } from "../../../src/index.ts";
import { waitFor } from "../../support/wait.ts";

const sizes = { vocabularySize: 31, contextLength: 32, layers: 2, heads: 4, width: 16 } as const;
const generator = () => new Generator(9);
const models = {
  GPT: () => new nn.GPT({ ...sizes, generator: generator(), initialization: nn.gpt2Initialization(2, 0.4) }),
  Llama: () =>
    new nn.Llama({ ...sizes, keyValueHeads: 2, generator: generator(), initialization: nn.llamaInitialization(0.4) }),
} as const;
const kinds = ["GPT", "Llama"] as const;

const row = (tokens: readonly number[]) => tensor([tokens as number[]], { dtype: "int32" });
const distance = (a: Tensor, b: Tensor): number => Number(amax(a.sub(b).abs()).item());
/** Prompts of different lengths. */
const prompts = Array.from({ length: 7 }, (_, at) =>
  Array.from({ length: 1 + 2 * at }, (_, i) => (7 * at + 3 * i) % 31),
);

async function read(stream: nn.TokenStream): Promise<number[]> {
  const tokens: number[] = [];
  for await (const { token } of stream) tokens.push(token);
  return tokens;
}

async function alone(model: nn.LanguageModel, prompt: readonly number[], options: nn.GenerateOptions) {
  const tokens: number[] = [];
  for await (const token of nn.generate(model, prompt as number[], options)) tokens.push(token);
  return tokens;
}

beforeEach(() => setBackend("cpu"));

describe.each(kinds)("generation with rows at different positions, %s", (kind) => {
  test("a batch of caches at different positions has the same results as each row alone", () =>
    noGrad(() => {
      const model = models[kind]().eval();
      const [together, apart] = [prompts, prompts].map((all) =>
        all.map((prompt) => {
          const cache = model.newCache();
          model.forward(row(prompt), { cache });
          return cache;
        }),
      ) as [nn.KeyValueCache[], nn.KeyValueCache[]];
      for (const step of [4, 11, 2]) {
        const tokens = prompts.map((_, at) => [(step + at) % 31]);
        const got = model.forward(tensor(tokens, { dtype: "int32" }), { cache: new nn.KeyValueCacheBatch(together) });
        for (const [at, cache] of apart.entries()) {
          const wanted = model.forward(row(tokens[at]), { cache });
          expect(distance(got.narrow(0, at, 1), wanted)).toBeLessThan(2e-5);
        }
      }
      expect(together.map(({ position }) => position)).toEqual(prompts.map(({ length }) => length + 3));
    }));

  test("texts equal those of generate(), in fewer slots than texts", async () => {
    const model = models[kind]();
    using batcher = new nn.Batcher(model, { slots: 3, promptChunk: 4 });
    const options = (at: number) => ({ maxTokens: 3 + at, temperature: at % 2, seed: at });
    const streams = prompts.map((prompt, at) => batcher.submit(prompt, options(at)));
    const got = await Promise.all(streams.map(read));
    for (const [at, prompt] of prompts.entries()) expect(got[at]).toEqual(await alone(model, prompt, options(at)));
    expect(streams.map(({ finishReason }) => finishReason)).toEqual(prompts.map(() => "length"));
  });

  test("a text ends with the context", async () => {
    const model = models[kind]();
    using batcher = new nn.Batcher(model);
    const stream = batcher.submit(prompts[6], { maxTokens: Number.POSITIVE_INFINITY });
    expect(await read(stream)).toHaveLength(sizes.contextLength - 13);
    expect(() => batcher.submit(new Array<number>(32).fill(1))).toThrow(/fewer than 32 tokens.*got 32/);
  });
});

test("a common prefix is not computed again, and does not change results", async () => {
  const model = models.Llama();
  using batcher = new nn.Batcher(model, { slots: 2 });
  const [start, options] = [[5, 6, 7, 8, 9], { maxTokens: 5, temperature: 0 }];
  const lengths: number[] = [];
  const forward = model.forward.bind(model);
  model.forward = (tokens, inputs) => {
    lengths.push(tokens.shape[1]);
    return forward(tokens, inputs);
  };
  const first = await read(batcher.submit([...start, 1], options));
  const again = batcher.submit([...start, 2, 3], options);
  const second = await read(again);
  expect(again.reusedTokens).toBe(5);
  expect(lengths.filter((length) => length > 1)).toEqual([6, 2]);
  expect(first).toEqual(await alone(models.Llama(), [...start, 1], options));
  expect(second).toEqual(await alone(models.Llama(), [...start, 2, 3], options));
});

test("a canceled text frees its slot and does not affect the others", async () => {
  const model = models.Llama();
  using batcher = new nn.Batcher(model, { slots: 2, queue: 8 });
  const options = { maxTokens: 18, temperature: 0 };
  const controller = new AbortController();
  const streams = prompts.map((prompt, at) =>
    batcher.submit(prompt, { ...options, ...(at === 4 && { signal: controller.signal }) }),
  );
  const leave = async (stream: nn.TokenStream) => {
    for await (const _ of stream) break;
  };
  const aborted = read(streams[4]).catch((error) => error);
  controller.abort(new Error("enough"));
  await Promise.all([leave(streams[0]), leave(streams[2])]);
  for (const at of [1, 3, 5, 6]) expect(await read(streams[at])).toEqual(await alone(model, prompts[at], options));
  expect(await aborted).toEqual(new Error("enough"));
  expect([batcher.active, batcher.waiting]).toEqual([0, 0]);
});

test("the queue is limited, and disposing ends every text", async () => {
  const batcher = new nn.Batcher(models.Llama(), { slots: 1, queue: 2 });
  const streams = [1, 2].map((token) => batcher.submit([token]));
  expect(batcher.isFull).toBe(true);
  expect(() => batcher.submit([3])).toThrow(expect.objectContaining({ code: "queueFull" }));
  streams[1].cancel();
  const third = batcher.submit([3]);
  batcher.dispose();
  await expect(read(third)).rejects.toThrow(/disposed during generation/);
  expect(() => batcher.submit([3])).toThrow(expect.objectContaining({ name: "DisposedError" }));
});

test("logits of NaN end the texts with an error, and later ones continue", async () => {
  const model = models.Llama();
  using batcher = new nn.Batcher(model, { slots: 2 });
  const forward = model.forward.bind(model);
  model.forward = (tokens, inputs) => forward(tokens, inputs).mul(Number.NaN);
  await expect(read(batcher.submit([1, 2, 3]))).rejects.toThrow(/finite maximum, got NaN/);
  await waitFor("the end of every text", () => batcher.active + batcher.waiting === 0);
  model.forward = forward;
  const options = { maxTokens: 4, temperature: 0 };
  expect(await read(batcher.submit([1, 2, 3], options))).toEqual(await alone(model, [1, 2, 3], options));
});

test("log-probabilities match the logits", async () => {
  const model = models.Llama();
  using batcher = new nn.Batcher(model);
  const stream = batcher.submit([1, 2, 3], { maxTokens: 1, temperature: 3, seed: 2, logProbabilities: 4 });
  const { value } = await stream.next();
  const logits = noGrad(() => model.eval().forward(row([1, 2, 3]), { lastOnly: true })).dataSync();
  const values = [...(logits as Float32Array)];
  const sum = values.reduce((total, own) => total + Math.exp(own), 0);
  const wanted = values.map((own, token) => ({ token, logProbability: own - Math.log(sum) }));
  const sorted = wanted.toSorted((a, b) => b.logProbability - a.logProbability);
  expect(value!.logProbability).toBeCloseTo(wanted[value!.token].logProbability, 5);
  expect(value!.likeliest!.map(({ token }) => token)).toEqual(sorted.slice(0, 4).map(({ token }) => token));
  for (const [at, own] of value!.likeliest!.entries())
    expect(own.logProbability).toBeCloseTo(sorted[at].logProbability, 5);
});

test("an endless constraint delays only its text", async () => {
  const model = models.Llama();
  using batcher = new nn.Batcher(model, { slots: 2 });
  const decided = Promise.withResolvers<void>();
  const disposed = Promise.withResolvers<void>();
  const constraint = {
    start: async () => ({
      isDone: false,
      forbid: () => undefined,
      accept: () => decided.promise,
      [Symbol.dispose]: disposed.resolve,
    }),
  };
  const held = batcher.submit([1, 2], { constraint, maxTokens: 3, temperature: 0 });
  const free = batcher.submit([3], { maxTokens: 12, temperature: 0 });
  expect(await read(free)).toEqual(await alone(model, [3], { maxTokens: 12, temperature: 0 }));
  expect(held.isDone).toBe(false);
  decided.resolve();
  expect(await read(held)).toEqual(await alone(model, [1, 2], { maxTokens: 3, temperature: 0 }));
  await disposed.promise;
});
