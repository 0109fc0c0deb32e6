/** A step of decoding as one operation has the same bits as the operations that it replaces. */
import { beforeEach, describe, expect, test } from "bun:test";
import { environmentFlag } from "../../../src/core/environment.ts";
import {
  codepaths,
  detectAnomaly,
  full,
  Generator,
  manualSeed,
  nn,
  noGrad,
  ones,
  randn,
  resetCodepaths,
  setBackend,
  type Tensor,
  tensor,
  withBackend,
  withOverride,
  withStrict,
  zeros,
  zerosLike,
} from "../../../src/index.ts";
import { attentionStep } from "../../../src/ops/attention/step.ts";
import { decoders, folderOf, numbers } from "./loading/oracle.ts";

beforeEach(() => {
  setBackend("cpu");
  resetCodepaths();
});

const calls = (operation: string): number =>
  codepaths().reduce((sum, own) => sum + (own.operation === operation ? own.calls : 0), 0);
const load = async (name: string, dtype: nn.LoadModelOptions["dtype"] = "float32") =>
  (await nn.loadModel(folderOf(name), { dtype })).model;
const rows = (tokens: readonly (readonly number[])[]) => tensor(tokens as number[][], { dtype: "int32" });

/** Runs `body` with anomaly detection, so that every operation runs separately. */
const inParts = <T>(body: () => T): T => detectAnomaly(body);

interface Options {
  readonly format?: nn.CacheFormat;
  readonly isOneCache?: boolean;
  /** One entry for each text in a step. */
  readonly tokens?: number;
}

/** The logits of some steps after prompts of different lengths, with a cache for each text or one cache for all. */
const steps = (model: nn.LanguageModel, texts: number, options: Options = {}): number[][] =>
  decode(model, texts, (forward) => forward(), options);

function decode(
  model: nn.LanguageModel,
  texts: number,
  step: (forward: () => Tensor) => Tensor,
  { format, isOneCache = false, tokens = 1 }: Options,
): number[][] {
  const caches = Array.from({ length: isOneCache ? 1 : texts }, () => model.newCache({ format }));
  const prompt = (at: number) => Array.from({ length: isOneCache ? 7 : 5 + (at % 4) }, (_, i) => (3 * i + at) % 50);
  const prompts = Array.from({ length: texts }, (_, at) => prompt(at));
  return noGrad(() => {
    if (isOneCache) model.forward(rows(prompts), { cache: caches[0] });
    else for (const [at, cache] of caches.entries()) model.forward(rows([prompts[at]]), { cache });
    const cache = caches.length === 1 ? caches[0] : new nn.KeyValueCacheBatch(caches);
    const found = Array.from({ length: 9 }, (_, at) => {
      const own = prompts.map((_, text) => Array.from({ length: tokens }, (_, i) => (7 * at + 11 * text + i) % 50));
      return numbers(step(() => model.forward(rows(own), { cache })));
    });
    for (const own of caches) own.dispose();
    return found;
  });
}

describe.each(decoders)("a single step of attention on %s", (name) => {
  test.each([
    ["one text", 1, {}],
    ["three tokens at once", 1, { tokens: 3 }],
    ["three texts, a cache each", 3, {}],
    ["three texts in one cache", 3, { isOneCache: true }],
    ["13 texts, which take two operations a layer", 13, {}],
    ["a cache in float16", 3, { format: "float16" }],
  ] as const)("%s: a step with the cache equals plain attention", async (_, texts, options) => {
    const model = await load(name);
    const got = steps(model, texts, options);
    const most = 9 * model.blocks.length * Math.ceil(texts / 11);
    // Phi-3 changes its rotation of texts once one of them exceeds the original context.
    if (name === "phi3") expect(calls("attentionStep")).toBeWithin(1, most + 1);
    else expect(calls("attentionStep")).toBe(most);
    resetCodepaths();
    expect(got).toEqual(decode(model, texts, inParts, options));
    expect(calls("attentionStep")).toBe(0);
  });
});

test.each(["float64", "float16", "bfloat16"] as const)(
  "a model in %s has the same logits with fused steps as with single operations",
  async (dtype) => {
    const model = await load("qwen3", dtype);
    const got = steps(model, 3);
    expect(calls("attentionStep")).toBeGreaterThan(0);
    expect(got).toEqual(decode(model, 3, inParts, {}));
  },
);

const sizes = { vocabularySize: 50, contextLength: 64, layers: 2, heads: 4, width: 128, dtype: "float32" } as const;
/**
 * With heads of 32 values, which fill a block of q8_0, and larger weights than initialized ones, so that positions
 * matter.
 */
const llama = (dtype: nn.LoadModelOptions["dtype"] = "float32") =>
  new nn.Llama({
    ...sizes,
    dtype,
    keyValueHeads: 2,
    generator: new Generator(9),
    initialization: nn.llamaInitialization(0.4),
    ropeScaling: { type: "linear", factor: 2 },
  }).eval();
const gpt = () => new nn.GPT({ ...sizes, generator: new Generator(8) }).eval();

describe.each([
  ["a Llama", llama],
  ["a GPT", gpt],
] as const)("a step that no kernel fuses, on %s", (_, make) => {
  test.each([
    ["one text", 1, {}],
    ["three tokens at once", 1, { tokens: 3 }],
    ["three texts, a cache each", 3, {}],
    ["three texts in one cache", 3, { isOneCache: true }],
    ["a cache in float16", 3, { format: "float16" }],
    ["a cache in q8_0", 1, { format: "q8_0" }],
    ["three caches in q8_0", 3, { format: "q8_0" }],
    ["a cache in q8_0 of three texts, two tokens at once", 3, { format: "q8_0", isOneCache: true, tokens: 2 }],
  ] as const)("%s: the step runs as single operations, with the same results", (_, texts, options) => {
    const model = make();
    const got = steps(model, texts, options);
    expect(calls("attentionStep")).toBe(9 * model.blocks.length);
    resetCodepaths();
    expect(got).toEqual(decode(model, texts, inParts, options));
    expect(calls("attentionStep")).toBe(0);
  });
});

describe("a step reads a cache in q8_0", () => {
  test.each(["float64", "float16", "bfloat16"] as const)(
    "for a model in %s, the step equals single operations",
    (dtype) => {
      const model = llama(dtype);
      const got = steps(model, 3, { format: "q8_0" });
      expect(calls("attentionStep")).toBe(9 * model.blocks.length);
      expect(got).toEqual(decode(model, 3, inParts, { format: "q8_0" }));
    },
  );

  test("the cache is read in place, not unpacked at each step", () => {
    const model = llama();
    using cache = model.newCache({ format: "q8_0" });
    const forward = (tokens: number[]) => noGrad(() => model.forward(rows([tokens]), { cache }));
    forward([1, 2, 3, 4, 5, 6]);
    resetCodepaths();
    forward([7]);
    expect([calls("attentionStep"), calls("dequantize")]).toEqual([2, 0]);
  });

  test.each([NaN, Infinity, 127 * 65_520])("values of %d are rejected", (value) => {
    const room = () => zeros([5, 1, 1, 34], { dtype: "uint8" }).permute([1, 2, 0, 3]);
    const rotation = { cycles: Float64Array.of(0.1), magnitude: 1, interleaved: false };
    const sequences = [{ room: 0, batch: 0, position: 4, first: 0, rows: 5 }];
    const step = (values: Tensor) => {
      const operands = [ones([1, 1, 32]), ones([1, 1, 32]), values] as const;
      return attentionStep(operands, [{ keys: room(), values: room() }], {
        scale: 1,
        rotation,
        sequences,
        heads: 1,
        kvHeads: 1,
      });
    };
    expect(numbers(step(ones([1, 1, 32])))[0]).toBeGreaterThan(0);
    expect(() => step(full([1, 1, 32], value))).toThrow(/finite keys and values/);
  });
});

describe.if(!environmentFlag("ORCHARD_SKIP_METAL"))("a step on metal", () => {
  const metal = <T>(body: () => T): T => withStrict(true, () => withBackend("metal", body));

  describe.each([
    ["a Llama", llama],
    ["a GPT", gpt],
    ["Qwen 3", () => load("qwen3")],
    ["Mistral, with a window", () => load("mistral")],
  ] as const)("%s", (_, make) => {
    test.each([
      ["one text", 1, {}],
      ["three tokens at once", 1, { tokens: 3 }],
      ["three texts in one cache", 3, { isOneCache: true }],
    ] as const)("%s: the step equals plain attention", async (_, texts, options) => {
      const model = await make();
      const got = metal(() => steps(model, texts, options));
      expect(calls("attentionStep")).toBe(9 * model.blocks.length);
      expect(got).toEqual(metal(() => decode(model, texts, inParts, options)));
    });
  });

  test.each(["float16", "bfloat16"] as const)("a model in %s: the step equals plain attention", (dtype) => {
    const model = llama(dtype);
    const got = metal(() => steps(model, 1));
    expect(calls("attentionStep")).toBe(9 * model.blocks.length);
    expect(got).toEqual(metal(() => decode(model, 1, inParts, {})));
  });

  test.each([
    ["a cache each", 3, {}],
    ["a cache in float16", 1, { format: "float16" }],
  ] as const)("%s: the step runs as single operations", (_, texts, options) => {
    const got = metal(() => steps(llama(), texts, options));
    expect(calls("attentionStep")).toBe(0);
    expect(got).toEqual(metal(() => decode(llama(), texts, inParts, options)));
  });

  // The first rows fill no part, or leave parts empty.
  test.each([
    [1, 1, Infinity],
    [600, 2, Infinity],
    [2047, 1, Infinity],
    [2048, 4, Infinity],
    [1500, 3, 1100],
  ])(
    "%d rows of a long cache, %d new tokens, a window of %d: attention equals the cpu backend's",
    (end, tokens, window) => {
      const rows = Math.min(end, window - 1 + tokens);
      const attributes = {
        scale: 0.3,
        softcap: 20,
        window,
        heads: 4,
        kvHeads: 2,
        rotation: { cycles: Float64Array.of(0.01, -0.3), magnitude: 1.1, interleaved: true },
        sequences: [0, 1].map((batch) => ({ room: 0, batch, position: end - tokens, first: end - rows, rows })),
      };
      const run = () => {
        manualSeed(5);
        const [q, k, v] = [4, 2, 2].map((heads) => randn([2, tokens, heads * 8]));
        const room = { keys: randn([2, 2, 2048, 8]), values: randn([2, 2, 2048, 8]) };
        const out = attentionStep([q, k, v], [room], attributes);
        return [out, room.keys, room.values].map(numbers);
      };
      const [got, wanted] = [metal(run), withBackend("cpu", run)];
      for (const [at, values] of got.entries())
        for (const [i, value] of values.entries()) expect(Math.abs(value - wanted[at][i])).toBeLessThan(2e-6);
    },
  );
});

describe("cases that run as single operations", () => {
  test("an override of attention is used", async () => {
    const model = await load("llama");
    let count = 0;
    const body: Parameters<typeof withOverride>[2] = ({ outputs: [out] }) => {
      count++;
      noGrad(() => out.copy_(zerosLike(out)));
    };
    withOverride("attentionForward", "cpu", body, () => steps(model, 1));
    expect(calls("attentionStep")).toBe(0);
    expect(count).toBeGreaterThan(9);
  });

  test("another backend is used", async () => {
    const model = await load("llama");
    withBackend("reference", () => steps(model, 1));
    expect(calls("attentionStep")).toBe(0);
  });

  test("rows with padding run as single operations", async () => {
    const model = await load("llama");
    using cache = model.newCache();
    const forward = (tokens: number[][]) => noGrad(() => model.forward(rows(tokens), { cache, padding: [0, 2] }));
    forward([
      [1, 2, 3, 4],
      [0, 0, 5, 6],
    ]);
    forward([[7], [8]]);
    expect(calls("attentionStep")).toBe(0);
  });

  test("caches of different formats run as single operations", async () => {
    const model = await load("llama");
    const caches = [model.newCache(), model.newCache({ format: "float16" })];
    const cache = new nn.KeyValueCacheBatch(caches);
    noGrad(() => {
      for (const own of caches) model.forward(rows([[1, 2, 3]]), { cache: own });
      resetCodepaths();
      const got = model.forward(rows([[4], [5]]), { cache });
      expect(numbers(got).every(Number.isFinite)).toBe(true);
    });
    expect(calls("attentionStep")).toBe(0);
    expect(caches.map(({ position }) => position)).toEqual([4, 4]);
    cache.dispose();
  });
});
