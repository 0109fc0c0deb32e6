import { describe, expect, test } from "bun:test";
import { ArgumentError } from "../../src/core/errors.ts";
import { checkRanges, checkSettings, presetFor, presets, type Settings, settingsOf } from "../../src/train/settings.ts";
import { type TuningFlags, tuningSettings } from "../../src/train/tuning/settings.ts";

describe("the settings of every recipe are valid", () => {
  test.each(Object.entries(presets))("settings of the recipe %s are valid", (_, preset) => {
    expect(checkSettings(preset)).toBe(preset);
  });

  const wrong: readonly (readonly [Partial<Settings>, string])[] = [
    [{ layers: 0 }, "expected layers to be a whole number of at least 1, got 0"],
    [{ batch: 1.5 }, "expected batch to be a whole number of at least 1, got 1.5"],
    [{ learningRate: 0 }, "expected learningRate to be a finite number above 0, got 0"],
    [{ learningRate: Number.NaN }, "expected learningRate to be a finite number above 0, got NaN"],
    [{ dropout: 1 }, "expected dropout to be at least 0 and below 1, got 1"],
    [{ width: 130 }, "expected width to be a multiple of heads, got 130 and 4"],
    [{ warmup: 2000 }, "expected warmup to be below the number of steps, 2000, got 2000"],
    [{ prompt: "" }, "expected prompt, the start of samples, to have at least one character"],
    [{ seed: -1 }, "expected seed to be a whole number of at least 0, got -1"],
  ];
  const counts = "warmup seed evaluateEvery patience saveEvery sampleEvery sampleTokens";
  const positiveCounts = "layers heads width context steps batch accumulate evaluationBatches keep";
  const most = Number.MAX_SAFE_INTEGER;
  /** Words of the error, the settings' names, and values on both sides of each limit. */
  const limits: readonly (readonly [string, string, readonly number[], readonly number[]])[] = [
    ["a whole number of at least 0", counts, [0, 1, most], [-1, 0.5, most + 1]],
    ["a whole number of at least 1", positiveCounts, [1, 2, most], [0, -1, 1.5, most + 1]],
    ["a whole number from 257 to 1048576", "vocabulary", [257, 2 ** 20], [256, 2 ** 20 + 1, 300.5]],
    ["at least 0 and below 1", "dropout heldOut beta2", [0, 0.5, 1 - 2 ** -53], [-Number.MIN_VALUE, 1, 1.5]],
    ["a finite number above 0", "learningRate", [Number.MIN_VALUE, 2], [0, -1, Infinity]],
    ["a finite number of at least 0", "finalLearningRate weightDecay clip temperature", [0, 2], [-1, Infinity]],
  ];
  test.each(limits)("the setting %s is rejected: %s", (expected, names, taken, refused) => {
    for (const name of names.split(" ")) {
      const check = (value: number) => () => checkRanges({ ...presets.cpu, [name]: value });
      for (const value of taken) expect(check(value)).not.toThrow();
      for (const value of [...refused, Number.NaN])
        expect(check(value)).toThrow(`[train] expected ${name} to be ${expected}, got ${value}`);
    }
  });

  test("all numbers among the settings have limits", () => {
    const limited = limits.flatMap(([, names]) => names.split(" ")).toSorted();
    const numbers = Object.entries(presets.cpu).filter(([, value]) => typeof value === "number");
    expect(limited).toEqual(numbers.map(([name]) => name).toSorted());
  });

  test.each(wrong)("the settings %p are rejected", (settings, sentence) => {
    expect(() => checkSettings({ ...presets.cpu, ...settings })).toThrow(ArgumentError);
    expect(() => checkSettings({ ...presets.cpu, ...settings })).toThrow(sentence);
  });
});

describe("the warmup adapts to the number of steps", () => {
  test.each(Object.keys(presets) as (keyof typeof presets)[])(
    "the warmup of the recipe %s adapts to few steps",
    (name) => {
      for (const steps of [1, 2, 5, 50]) {
        const settings = checkSettings(settingsOf({ steps }, presets[name]));
        expect(settings.warmup).toBe(presets[name].warmup < steps ? presets[name].warmup : Math.floor(steps / 2));
      }
    },
  );

  test("an explicit warmup is kept, and is an error if it is too long", () => {
    expect(settingsOf({ steps: 5, warmup: 4 }, presets.cpu).warmup).toBe(4);
    expect(settingsOf({ steps: 200 }, { ...presets.cpu, warmup: 150 }).warmup).toBe(150);
    expect(() => checkSettings(settingsOf({ steps: 5, warmup: 5 }, presets.cpu))).toThrow(
      "expected warmup to be below the number of steps, 5, got 5",
    );
  });

  test("the warmup does not adapt to an invalid number of steps, which is the error", () => {
    expect(() => checkSettings(settingsOf({ steps: 0 }, presets.cpu))).toThrow("expected steps to be");
  });
});

describe("the values of recipes are nanoGPT's", () => {
  // config/train_shakespeare_char.py and the README's command for a CPU, of github.com/karpathy/nanoGPT
  const nanoGpt = { learningRate: 1e-3, finalLearningRate: 1e-4, beta2: 0.99, warmup: 100, evaluateEvery: 250 };
  const defaults = { weightDecay: 0.1, clip: 1, seed: 1337, accumulate: 1 };
  const ofCpu = { layers: 4, heads: 4, width: 128, context: 64, batch: 12, steps: 2000, dropout: 0 };
  const ofGpu = { layers: 6, heads: 6, width: 384, context: 256, batch: 64, steps: 5000, dropout: 0.2 };
  const own = {
    ...({ architecture: "gpt", dtype: "float32", data: [], tokenizer: "bytes", vocabulary: 1024 } as const),
    heldOut: 0.05,
    evaluationBatches: 20,
    patience: 0,
    saveEvery: 250,
    keep: 2,
    sampleEvery: 500,
    sampleTokens: 300,
    prompt: "export ",
    temperature: 0.8,
  };
  const cpu = { ...own, ...nanoGpt, ...defaults, ...ofCpu };

  test("the recipes cpu and gpu are nanoGPT's", () => {
    expect<Settings>(presets.cpu).toEqual(cpu);
    expect<Settings>(presets.gpu).toEqual({ ...cpu, ...ofGpu });
  });

  test("the recipes tiny and demo differ from cpu in these values", () => {
    const sizes = { layers: 2, heads: 2, width: 32, context: 32, batch: 4, steps: 50, warmup: 5 };
    expect<Settings>(presets.tiny).toEqual({ ...cpu, ...sizes, evaluationBatches: 2 });
    const rates = { learningRate: 4e-3, finalLearningRate: 4e-4, warmup: 50, steps: 1500 };
    const intervals = { evaluateEvery: 300, saveEvery: 500, sampleEvery: 0, sampleTokens: 160 };
    const texts = { tokenizer: "bpe", prompt: "export interface", temperature: 0.5 } as const;
    expect<Settings>(presets.demo).toEqual({ ...cpu, ...rates, ...intervals, ...texts });
  });

  test("recipes of adapters have ten times the learning rate of a whole model", () => {
    expect(tuningSettings({ model: "m", data: ["d"], lora: 8 })).toEqual({
      model: "m",
      data: ["d"],
      lora: 8,
      loraAlpha: 0,
      loraDropout: 0,
      loraTargets: [],
      quantize: "",
      dtype: "",
      packing: false,
      checkpointActivations: false,
      context: 0,
      heldOut: 0.05,
      steps: 0,
      batch: 4,
      accumulate: 1,
      learningRate: 2e-4,
      finalLearningRate: 2e-5,
      warmup: 10,
      beta2: 0.999,
      weightDecay: 0,
      clip: 1,
      seed: 1337,
      evaluateEvery: 50,
      evaluationBatches: 20,
      patience: 0,
      saveEvery: 100,
      keep: 2,
      sampleEvery: 0,
      sampleTokens: 100,
      prompt: "",
      temperature: 0,
    });
  });
});

describe("settings of adapters are checked", () => {
  const check = (own: TuningFlags) => () => tuningSettings({ model: "m", data: ["d"], lora: 8, ...own });
  const limits: readonly (readonly [keyof TuningFlags, readonly unknown[], readonly unknown[]])[] = [
    ["lora", [1, 2], [-1, 0.5, Number.NaN]],
    ["loraAlpha", [0, 0.5, 1e9], [-1, Infinity, Number.NaN]],
    ["loraDropout", [0, 1 - 2 ** -53], [-Number.MIN_VALUE, 1, Number.NaN]],
    ["quantize", ["", "q4_0", "q8_0"], ["q4", "Q4_0"]],
    ["steps", [0, 1], [-1, 0.5, Number.NaN]],
    ["context", [0, 1], [-1, 0.5]],
    ["dtype", ["", "bfloat16"], []],
    ["prompt", ["", "a"], []],
  ];
  test.each(limits)("the setting of an adapter is rejected: %s", (name, taken, refused) => {
    for (const value of taken) expect(check({ [name]: value })).not.toThrow();
    for (const value of refused) expect(check({ [name]: value })).toThrow(`[train] expected ${name} to be`);
  });

  test("a default warmup ends within the steps; an explicit one has to", () => {
    for (const [steps, warmup] of [
      [0, 10],
      [1, 0],
      [10, 5],
      [11, 10],
    ] as const)
      expect(check({ steps })().warmup).toBe(warmup);
    expect(check({ steps: 10, warmup: 9 })().warmup).toBe(9);
    expect(check({ steps: 10, warmup: 10 })).toThrow("expected warmup to be below the number of steps, 10, got 10");
    expect(check({ steps: 0, warmup: 10 })().warmup).toBe(10);
  });

  test.each(["architecture", "layers", "heads", "width", "dropout", "tokenizer", "vocabulary", "preset"])(
    "%s can't be set for a pretrained model",
    (name) => expect(check({ [name]: 1 } as TuningFlags)).toThrow(`${name} can't be set for a pretrained model`),
  );

  test.each(["model", "lora", "loraAlpha", "loraTargets", "quantize", "dtype", "context", "packing"] as const)(
    "a resumed run rejects another value of %s",
    (name) => {
      const saved = check({})();
      const other = { model: "n", loraTargets: ["value"], quantize: "q8_0", dtype: "float16", packing: true } as const;
      const value = name in other ? other[name as keyof typeof other] : 3;
      expect(() => tuningSettings({ [name]: value }, saved)).toThrow(`expected ${name} to be `);
      expect(tuningSettings({ [name]: saved[name], seed: 5 }, saved)).toEqual({ ...saved, seed: 5 });
    },
  );
});

test("a machine's recipe matches its backend", () => {
  const gpu = process.platform === "darwin" ? "gpu" : "tiny";
  expect(["cpu", "reference", "metal"].map(presetFor)).toEqual(["cpu", "tiny", gpu]);
});
