/** Errors of results, and memory use, for caches that round keys and values and for caches of windows. */
import { beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import {
  amax,
  flashAttention as flash,
  Generator,
  memory,
  nn,
  noGrad,
  randn,
  setBackend,
  type Tensor,
  tensor,
  tidy,
  toDType,
} from "../../../src/index.ts";
import { testFolder } from "../../support/folder.ts";
import { collectGarbage } from "../../support/garbage.ts";
import { errorOf, folderOf } from "../models/loading/oracle.ts";

beforeEach(() => setBackend("cpu"));

const formats = ["float16", "q8_0"] as const;
const distance = (a: Tensor, b: Tensor): number => Number(amax(a.sub(b).abs()).item());
const float = (x: Tensor): Tensor => toDType(x, "float32");
const row = (tokens: readonly number[]) => tensor([tokens as number[]], { dtype: "int32" });
const count = (length: number, modulus: number) => Array.from({ length }, (_, at) => (at * at + 3 * at) % modulus);

/** Size classes of memory grow by an eighth. */
function expectBytes(got: number, wanted: number): void {
  expect(got).toBeGreaterThanOrEqual(wanted);
  expect(got).toBeLessThan(1.125 * wanted);
}

/**
 * Rounding keys by δk and values by δv changes a score by at most δs = scale · ‖q‖₁ · δk, a softmax by a factor of at
 * most exp(2 δs), and the output by at most (exp(2 δs) − 1) · max|v| + δv. float16 also rounds q and the output.
 */
function boundOf(format: nn.CacheFormat, q: Tensor, k: Tensor, v: Tensor): number {
  const unit = { float16: 2 ** -11, q8_0: 1 / 254 + 2 ** -11 }[format];
  const [mostK, mostV] = [k, v].map((x) => Number(amax(x.abs()).item())) as [number, number];
  const norm = Number(amax(q.abs().sum(-1)).item()); // the largest ‖q‖₁
  const roundings = format === "float16" ? 2 : 1;
  const score = (q.shape[3] ** -0.5 * norm * mostK * unit * roundings) / (1 - unit);
  return (Math.exp(2 * score) - 1) * mostV + roundings * unit * mostV + 2 ** -18 * mostV;
}

describe.each(formats)("caches with keys and values in formats of fewer bits, %s", (format) => {
  test.each([[[1, 1, 1, 1, 1, 1, 1]], [[5, 1, 1]], [[3, 4]]])("tokens in parts of %j are within the bound", (sizes) => {
    const generator = new Generator(4);
    const [q, k, v] = [4, 2, 2].map((heads) => randn([2, heads, 7, 64], { generator }).mul(0.5) as Tensor);
    using exact = new nn.AttentionCache(7);
    using rounded = new nn.AttentionCache(7, { format });
    const layer = { causal: true } as const;
    let [start, worst] = [0, 0];
    for (const size of sizes) {
      const part = (x: Tensor) => x.narrow(2, start, size);
      const attend = (queries: Tensor, { keys, values }: nn.KeysAndValues) =>
        tidy(() => flash(queries, keys, values, layer));
      const [got, wanted] = [rounded, exact].map((cache) =>
        noGrad(() => cache.attend(part(q), { keys: part(k), values: part(v) }, attend)),
      ) as [Tensor, Tensor];
      expect(got.dtype).toBe("float32");
      worst = Math.max(worst, distance(got, wanted));
      start += size;
    }
    expect(worst).toBeGreaterThan(0);
    expect(worst).toBeLessThan(boundOf(format, q, k, v));
  });

  test("values are within their format's rounding error", () => {
    const keys = randn([2, 3, 9, 64], { generator: new Generator(6) });
    using cache = new nn.AttentionCache(20, { format });
    noGrad(() => cache.append({ keys: keys.narrow(2, 0, 4), values: keys.narrow(2, 0, 4).neg() }));
    const held = noGrad(() => cache.append({ keys: keys.narrow(2, 4, 5), values: keys.narrow(2, 4, 5).neg() }));
    const [got, wanted] = [float(held.keys), keys].map((x) => x.reshape([-1, 32])) as [Tensor, Tensor];
    const unit = { float16: 2 ** -11, q8_0: 1 / 254 + 2 ** -11 }[format];
    const allowed = wanted
      .abs()
      .amax(-1, true)
      .mul(unit * (1 + 2 ** -10)) as Tensor;
    expect(got.sub(wanted).abs().le(allowed).all().item()).toBe(true);
    expect(distance(float(held.values), float(held.keys).neg())).toBe(0);
  });

  test("the cache uses the memory of its format", async () => {
    await collectGarbage(); // garbage of other tests is collected now, not between two readings
    const before = memory().host.liveBytes;
    using cache = new nn.AttentionCache(4096, { format });
    tidy(() => void noGrad(() => cache.append({ keys: randn([1, 2, 4096, 64]), values: randn([1, 2, 4096, 64]) })));
    const values = 2 * 2 * 4096 * 64;
    expectBytes(memory().host.liveBytes - before, format === "float16" ? 2 * values : (34 / 32) * values);
  });

  test("a batch of caches has the same results as each alone, and so has a batcher", async () => {
    const model = new nn.Llama({ ...sizes, generator: new Generator(9), initialization: nn.llamaInitialization(0.4) });
    const prompts = [3, 9, 20].map((length) => count(length, 31));
    using batcher = new nn.Batcher(model, { slots: 2, cache: format, promptChunk: 8 });
    const options = { maxTokens: 12, temperature: 0 };
    const together = await Promise.all(
      prompts.map(async (prompt) => (await Array.fromAsync(batcher.submit(prompt, options))).map(({ token }) => token)),
    );
    for (const [at, prompt] of prompts.entries())
      expect(together[at]).toEqual(await Array.fromAsync(nn.generate(model, prompt, { ...options, cache: format })));
  });
});

const sizes = { vocabularySize: 31, contextLength: 64, layers: 2, heads: 2, keyValueHeads: 1, width: 64 } as const;

test("errors of logits are within the documented bounds", () => {
  const generator = new Generator(5);
  const model = new nn.Llama({ ...sizes, contextLength: 256, layers: 4, generator }).eval();
  const tokens = count(200, 31);
  const logits = (format?: nn.CacheFormat) => {
    using cache = model.newCache({ format });
    return noGrad(() => model.forward(row(tokens), { cache }));
  };
  const wanted = logits();
  expect(errorOf(logits("float16"), wanted)).toBeLessThan(1e-3);
  expect(errorOf(logits("q8_0"), wanted)).toBeLessThan(1e-2);
});

test("unsupported values are rejected", () => {
  const cache = new nn.AttentionCache(4, { format: "q8_0" });
  const part = randn([1, 1, 1, 48]);
  expect(() => cache.append({ keys: part, values: part })).toThrow(/head width that is a multiple of 32.*got 48/);
  expect(() => new nn.KeyValueCache(2, 4, { windows: [1] })).toThrow(/windows to be 2 numbers.*got 1/);
  const model = new nn.Llama(sizes);
  const options = { useCache: false, cache: "q8_0" } as const;
  expect(() => nn.generate(model, [1], options)).toThrow(/cache: "q8_0" requires useCache: true/);
});

/** A model of `transformers` with a window of 5 tokens, used with longer texts than in its fixture. */
const { path: root } = testFolder("windows");
async function windowed(name: string): Promise<nn.LanguageModel> {
  const folder = join(root, name);
  mkdirSync(folder, { recursive: true });
  const config = await Bun.file(join(folderOf(name), "config.json")).json();
  await Bun.write(join(folder, "config.json"), JSON.stringify({ ...config, max_position_embeddings: 512 }));
  await Bun.write(join(folder, "model.safetensors"), Bun.file(join(folderOf(name), "model.safetensors")));
  return (await nn.loadModel(folder, { dtype: "float32" })).model;
}

describe("windows of a cache keep the last tokens", () => {
  const layer = () => new nn.MultiHeadAttention({ width: 8, heads: 2, causal: true, rotary: {}, dtype: "float64" });
  /** Each query attends to the last `window` keys alone. */
  const banded = (own: nn.MultiHeadAttention, x: Tensor, window: number) => {
    const length = x.shape[1];
    const rows = Array.from({ length }, (_, at) => Array.from({ length }, (_, key) => key <= at && key > at - window));
    return noGrad(() => own.forward(x, { mask: tensor([[rows]], { dtype: "bool" }) as Tensor<"bool"> }));
  };

  test("a layer with a window keeps only its last tokens", () => {
    const own = layer().eval();
    const x = randn([1, 200, 8], { dtype: "float64", generator: new Generator(2) });
    const wanted = banded(own, x, 5);
    using cache = new nn.AttentionCache(200, { window: 5 });
    for (let at = 0; at < 200; at++) {
      const got = tidy(() => noGrad(() => own.forward(x.narrow(1, at, 1), { cache })));
      expect(distance(got, wanted.narrow(1, at, 1))).toBeLessThan(1e-14);
    }
    expect([cache.position, cache.length]).toEqual([200, 5]);
  });

  test.each(["mistral", "gemma2", "gemma3"])(
    "%s: logits in parts of any size equal those without a cache",
    async (name) => {
      const model = await windowed(name);
      const vocabulary = model.vocabularySize;
      const tokens = count(200, vocabulary);
      const wanted = noGrad(() => model.forward(row(tokens)));
      for (const parts of [[1], [3, 180, 2]]) {
        using cache = model.newCache();
        let start = 0;
        for (let part = 0; start < tokens.length; part++) {
          const size = Math.min(parts[Math.min(part, parts.length - 1)], tokens.length - start);
          const got = tidy(() => noGrad(() => model.forward(row(tokens.slice(start, start + size)), { cache })));
          expect(errorOf(got, wanted.narrow(1, start, size))).toBeLessThan(1e-5);
          start += size;
        }
      }
    },
  );

  test("rows may begin with padding", async () => {
    const model = await windowed("mistral");
    const texts = [count(300, model.vocabularySize), count(293, model.vocabularySize)];
    const padding = [0, 7];
    const rows = tensor([texts[0], [...new Array<number>(7).fill(0), ...texts[1]]], { dtype: "int32" });
    using cache = model.newCache();
    let got: Tensor | undefined;
    for (const [start, size] of [[0, 200], ...Array.from({ length: 100 }, (_, at) => [200 + at, 1] as const)] as const)
      got = noGrad(() => model.forward(rows.narrow(1, start, size), { cache, padding, lastOnly: true }));
    for (const [at, text] of texts.entries()) {
      const alone = noGrad(() => model.forward(row(text), { lastOnly: true }));
      expect(errorOf(got!.narrow(0, at, 1), alone)).toBeLessThan(1e-5);
    }
  });

  test("the memory depends on the window, not on the length of the text", async () => {
    using cache = new nn.AttentionCache(100_000, { window: 2048 });
    await collectGarbage();
    const before = memory().host.liveBytes;
    const append = (tokens: number) =>
      tidy(() =>
        noGrad(() => {
          const part = randn([1, 4, tokens, 32]);
          cache.attend(part, { keys: part, values: part }, (queries) => queries);
        }),
      );
    append(5000);
    const most = 2 * 4 * 32 * 4 * (2048 + 64 + 256);
    expectBytes(memory().host.liveBytes - before, most);
    for (let at = 0; at < 300; at++) append(1);
    append(77);
    expectBytes(memory().host.liveBytes - before, most);
    expect([cache.position, cache.length]).toEqual([5377, 2048]);
  });

  test("the last 64 tokens can be truncated, earlier ones can't", () => {
    const own = layer().eval();
    const x = randn([1, 300, 8], { dtype: "float64", generator: new Generator(2) });
    const wanted = banded(own, x, 5);
    using cache = new nn.AttentionCache(300, { window: 5 });
    const steps = (from: number, to: number) => {
      for (let at = from; at < to; at++) {
        const got = noGrad(() => own.forward(x.narrow(1, at, 1), { cache }));
        expect(distance(got, wanted.narrow(1, at, 1))).toBeLessThan(1e-14);
      }
    };
    for (let end = 150; end < 290; end += 3) {
      steps(cache.position, end);
      expect([cache.canTruncate(end - 64), cache.canTruncate(5), cache.canTruncate(end + 1)]).toEqual([
        true,
        false,
        false,
      ]);
    }
    expect(() => cache.truncate(100)).toThrow(
      /expected length to be at least \d+, got 100; earlier tokens were dropped/,
    );
    expect(() => cache.truncate(289)).toThrow("expected length to be at most 288, got 289");
    cache.truncate(288 - 64);
    steps(288 - 64, 300);
  });

  test("a common prefix is reused only while it is in the cache", async () => {
    const model = await windowed("mistral");
    using batcher = new nn.Batcher(model, { slots: 1 });
    const text = count(300, model.vocabularySize);
    const options = { maxTokens: 2, temperature: 0 };
    const read = async (prompt: number[]) => {
      const stream = batcher.submit(prompt, options);
      const tokens = (await Array.fromAsync(stream)).map(({ token }) => token);
      expect(tokens).toEqual(await Array.fromAsync(nn.generate(model, prompt, options)));
      return stream.reusedTokens;
    };
    expect(await read(text)).toBe(0);
    expect(await read([...text.slice(0, 250), 1])).toBe(250);
    expect(await read([...text.slice(0, 4), 1])).toBe(0);
    expect(await read([...text.slice(0, 4), 1, 2])).toBe(5);
  });

  test("speculative decoding has the tokens of the model alone", async () => {
    const [model, draft] = [await windowed("gemma2"), await windowed("gemma3")];
    const options = { maxTokens: 50, temperature: 0 };
    const prompt = count(130, model.vocabularySize);
    const wanted = await Array.fromAsync(nn.generate(model, prompt, options));
    expect(await Array.fromAsync(nn.generate(model, prompt, { ...options, draft, draftTokens: 6 }))).toEqual(wanted);
  });
});
