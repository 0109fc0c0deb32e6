/** The settings of a run: everything that determines its results. They are saved in every checkpoint. */
import { ArgumentError } from "../core/errors.ts";

export const architectures = ["gpt", "llama"] as const;
export const tokenizers = ["bytes", "gpt2", "bpe"] as const;
export const trainingDTypes = ["float32", "bfloat16", "float16"] as const;

export interface Settings {
  readonly architecture: (typeof architectures)[number];
  readonly layers: number;
  readonly heads: number;
  readonly width: number;
  /** The context length in tokens. */
  readonly context: number;
  readonly dropout: number;
  /** The dtype of weights and activations. 16-bit weights have float32 master weights in the optimizer. */
  readonly dtype: (typeof trainingDTypes)[number];
  /** Files, folders and globs; empty: the declaration files in `node_modules`. */
  readonly data: readonly string[];
  /** The tokenizer. `bpe` is a byte-pair encoding that is trained on the text. */
  readonly tokenizer: (typeof tokenizers)[number];
  /** The vocabulary size of `bpe`. */
  readonly vocabulary: number;
  /** The fraction of the data that is held out for evaluation. */
  readonly heldOut: number;
  readonly steps: number;
  /** Windows per forward and backward pass. */
  readonly batch: number;
  /** Gradient accumulation: passes per step. */
  readonly accumulate: number;
  readonly learningRate: number;
  /** The learning rate at the end of the cosine schedule. */
  readonly finalLearningRate: number;
  /** Warmup steps, in which the learning rate rises from 0. */
  readonly warmup: number;
  readonly beta2: number;
  readonly weightDecay: number;
  /** The largest global norm of a step's gradients; 0: no clipping. */
  readonly clip: number;
  readonly seed: number;
  /** Steps between evaluations; 0: only at the end. */
  readonly evaluateEvery: number;
  readonly evaluationBatches: number;
  /** Number of consecutive evaluations without a lower held-out loss after which the run stops; 0: never. */
  readonly patience: number;
  /** Steps between checkpoints; 0: only at the end. */
  readonly saveEvery: number;
  /** Number of checkpoints to keep. */
  readonly keep: number;
  /** Steps between samples; 0: only at the end. */
  readonly sampleEvery: number;
  readonly sampleTokens: number;
  readonly prompt: string;
  readonly temperature: number;
}

/** The settings that determine the shapes of the weights. A resumed run must not change them. */
export const shapeSettings = [
  "architecture",
  "layers",
  "heads",
  "width",
  "context",
  "tokenizer",
  "vocabulary",
] as const;

/** The base of all presets. */
const common: Settings = {
  architecture: "gpt",
  layers: 4,
  heads: 4,
  width: 128,
  context: 64,
  dropout: 0,
  dtype: "float32",
  data: [],
  tokenizer: "bytes",
  vocabulary: 1024,
  heldOut: 0.05,
  steps: 2000,
  batch: 12,
  accumulate: 1,
  learningRate: 1e-3,
  finalLearningRate: 1e-4,
  warmup: 100,
  beta2: 0.99,
  weightDecay: 0.1,
  clip: 1,
  seed: 1337,
  evaluateEvery: 250,
  evaluationBatches: 20,
  patience: 0,
  saveEvery: 250,
  keep: 2,
  sampleEvery: 500,
  sampleTokens: 300,
  prompt: "export ",
  temperature: 0.8,
};

const gpu = { layers: 6, heads: 6, width: 384, context: 256, batch: 64, steps: 5000, dropout: 0.2 } as const;

/**
 * Settings for the lowest loss within a minute on two cores: a tokenizer trained on the text, a high learning rate, and
 * no interruptions of the steps except evaluations.
 */
const brief = {
  tokenizer: "bpe",
  prompt: "export interface",
  steps: 1500,
  learningRate: 4e-3,
  finalLearningRate: 4e-4,
  warmup: 50,
  evaluateEvery: 300,
  saveEvery: 500,
  sampleEvery: 0,
  sampleTokens: 160,
  temperature: 0.5,
} as const;

export type PresetName = "cpu" | "gpu" | "tiny" | "demo";

/**
 *  nanoGPT's settings for a CPU and for one GPU (github.com/karpathy/nanoGPT, README), and some for a simulated device.
 */
export const presets: Readonly<Record<PresetName, Settings>> = {
  cpu: common,
  gpu: { ...common, ...gpu },
  tiny: {
    ...common,
    layers: 2,
    heads: 2,
    width: 32,
    context: 32,
    batch: 4,
    steps: 50,
    warmup: 5,
    evaluationBatches: 2,
  },
  demo: { ...common, ...brief },
};

/**
 *  Returns the preset for a backend: the small one for Metal on Linux, which is simulated, and the reference backend.
 */
export function presetFor(backend: string): PresetName {
  if (backend === "cpu") return "cpu";
  return backend === "metal" && process.platform === "darwin" ? "gpu" : "tiny";
}

/**
 * Merges settings from the command line with those of the preset or the checkpoint. If the default warmup would not end
 * before the last step, it becomes half of the steps.
 */
export function settingsOf(named: Partial<Settings>, defaults: Settings): Settings {
  const known = Object.entries(named).filter(([name, value]) => name in defaults && value !== undefined);
  const settings: Settings = { ...defaults, ...Object.fromEntries(known) };
  const { steps, warmup } = settings;
  const isTooLong = named.warmup === undefined && warmup >= steps && steps >= 1;
  return isTooLong ? { ...settings, warmup: Math.floor(steps / 2) } : settings;
}

/** Checks all settings. @throws {ArgumentError} */
export function checkSettings(settings: Settings): Settings {
  checkRanges(settings);
  const { width, heads, prompt } = settings;
  if (prompt === "") fail("expected prompt, the start of samples, to have at least one character, got none");
  if (width % heads !== 0) fail(`expected width to be a multiple of heads, got ${width} and ${heads}`);
  checkWarmup(settings);
  return settings;
}

/** Checks that the warmup ends. @throws {ArgumentError} */
export function checkWarmup({ warmup, steps }: Pick<Settings, "warmup" | "steps">): void {
  if (warmup >= steps) fail(`expected warmup to be below the number of steps, ${steps}, got ${warmup}`);
}

/** Checks the ranges of numbers. @throws {ArgumentError} */
export function checkRanges(settings: Settings): void {
  const invalid = Object.entries(ranges).find(
    ([name, { holds }]) => !holds(settings[name as keyof Settings] as number),
  );
  if (invalid) {
    const [name, { expected }] = invalid;
    fail(`expected ${name} to be ${expected}, got ${settings[name as keyof Settings]}`);
  }
}

interface Range {
  readonly expected: string;
  holds(value: number): boolean;
}

const vocabularySize: Range = {
  expected: "a whole number from 257 to 1048576",
  holds: (x) => Number.isInteger(x) && x >= 257 && x <= 2 ** 20,
};
const positiveCount: Range = {
  expected: "a whole number of at least 1",
  holds: (x) => Number.isSafeInteger(x) && x >= 1,
};
const count: Range = { expected: "a whole number of at least 0", holds: (x) => Number.isSafeInteger(x) && x >= 0 };
const fraction: Range = { expected: "at least 0 and below 1", holds: (x) => x >= 0 && x < 1 };
const positive: Range = { expected: "a finite number above 0", holds: (x) => x > 0 && Number.isFinite(x) };
const notNegative: Range = { expected: "a finite number of at least 0", holds: (x) => x >= 0 && Number.isFinite(x) };

const ranges: { readonly [Name in keyof Settings]?: Range } = {
  layers: positiveCount,
  heads: positiveCount,
  width: positiveCount,
  context: positiveCount,
  dropout: fraction,
  vocabulary: vocabularySize,
  heldOut: fraction,
  steps: positiveCount,
  batch: positiveCount,
  accumulate: positiveCount,
  learningRate: positive,
  finalLearningRate: notNegative,
  warmup: count,
  beta2: fraction,
  weightDecay: notNegative,
  clip: notNegative,
  seed: count,
  evaluateEvery: count,
  evaluationBatches: positiveCount,
  patience: count,
  saveEvery: count,
  keep: positiveCount,
  sampleEvery: count,
  sampleTokens: count,
  temperature: notNegative,
};

function fail(problem: string): never {
  throw new ArgumentError("train", "invalidSetting", problem);
}
