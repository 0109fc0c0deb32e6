/** What a run is made of: all that decides on its numbers. Kept in its folder and in every checkpoint. */
import { ArgumentError } from "../core/errors.ts";

export const architectures = ["gpt", "llama"] as const;
export const tokenizers = ["bytes", "gpt2"] as const;
export const trainingDTypes = ["float32", "bfloat16", "float16"] as const;

export interface Settings {
  readonly architecture: (typeof architectures)[number];
  readonly layers: number;
  readonly heads: number;
  readonly width: number;
  /** Tokens that the model sees at once. */
  readonly context: number;
  readonly dropout: number;
  /** Of weights and activations; with 16 bits the optimiser keeps weights in float32 beside them. */
  readonly dtype: (typeof trainingDTypes)[number];
  /** Files, folders and globs; none: the declaration files under `node_modules`. */
  readonly data: readonly string[];
  readonly tokenizer: (typeof tokenizers)[number];
  /** The share of the data that is never trained on. */
  readonly heldOut: number;
  readonly steps: number;
  /** Windows in a forward and backward pass. */
  readonly batch: number;
  /** Passes whose gradients make one step. */
  readonly accumulate: number;
  readonly learningRate: number;
  /** Where the cosine ends. */
  readonly finalLearningRate: number;
  /** Steps in which the learning rate rises from 0. */
  readonly warmup: number;
  readonly beta2: number;
  readonly weightDecay: number;
  /** The largest global norm of a step's gradients; 0: any. */
  readonly clip: number;
  readonly seed: number;
  /** Steps between evaluations; 0: only at the end. */
  readonly evaluateEvery: number;
  readonly evaluationBatches: number;
  /** Steps between checkpoints; 0: only at the end. */
  readonly saveEvery: number;
  /** Checkpoints that stay. */
  readonly keep: number;
  /** Steps between samples; 0: only at the end. */
  readonly sampleEvery: number;
  readonly sampleTokens: number;
  readonly prompt: string;
  readonly temperature: number;
}

/** The settings that give a model its shape: a checkpoint of others can't be gone on with. */
export const shapeSettings = ["architecture", "layers", "heads", "width", "context", "tokenizer"] as const;

/** What all presets begin with. */
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
  saveEvery: 250,
  keep: 2,
  sampleEvery: 500,
  sampleTokens: 300,
  prompt: "export ",
  temperature: 0.8,
};

const gpu = { layers: 6, heads: 6, width: 384, context: 256, batch: 64, steps: 5000, dropout: 0.2 } as const;

/** What learns most in a minute of two cores: a high learning rate, and nothing between the first step and the last but evaluations. */
const brief = {
  ...{ steps: 1500, learningRate: 4e-3, finalLearningRate: 4e-4, warmup: 50 },
  ...{ evaluateEvery: 300, saveEvery: 500, sampleEvery: 0, sampleTokens: 500, temperature: 0.5 },
} as const;

/** nanoGPT's recipes for a CPU and for one GPU (github.com/karpathy/nanoGPT, README), and one for a device that is simulated. */
export const presets = {
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
} as const satisfies Readonly<Record<string, Settings>>;

export type PresetName = keyof typeof presets;

/** The recipe for a machine's backend. Metal on Linux is simulated, and the reference is plain TypeScript. */
export function presetFor(backend: string): PresetName {
  if (backend === "cpu") return "cpu";
  return backend === "metal" && process.platform === "darwin" ? "gpu" : "tiny";
}

/** @throws {ArgumentError} for settings that no run can have. */
export function checkSettings(settings: Settings): Settings {
  const wrong = Object.entries(rules).find(([name, { holds }]) => !holds(settings[name as keyof Settings] as number));
  if (wrong) {
    const [name, { wanted }] = wrong;
    fail(`${name} is ${wanted}, ${settings[name as keyof Settings]} came`);
  }
  const { width, heads, warmup, steps } = settings;
  if (width % heads !== 0) fail(`width is a multiple of heads; ${width} is none of ${heads}`);
  if (warmup >= steps) fail(`warmup ends before the last of ${steps} steps, ${warmup} came`);
  return settings;
}

interface Rule {
  readonly wanted: string;
  holds(value: number): boolean;
}

const positiveCount: Rule = { wanted: "a whole number from 1 on", holds: (x) => Number.isSafeInteger(x) && x >= 1 };
const count: Rule = { wanted: "a whole number from 0 on", holds: (x) => Number.isSafeInteger(x) && x >= 0 };
const share: Rule = { wanted: "at least 0 and below 1", holds: (x) => x >= 0 && x < 1 };
const positive: Rule = { wanted: "a finite number above 0", holds: (x) => x > 0 && Number.isFinite(x) };
const notNegative: Rule = { wanted: "a finite number of at least 0", holds: (x) => x >= 0 && Number.isFinite(x) };

const rules: { readonly [Name in keyof Settings]?: Rule } = {
  layers: positiveCount,
  heads: positiveCount,
  width: positiveCount,
  context: positiveCount,
  dropout: share,
  heldOut: share,
  steps: positiveCount,
  batch: positiveCount,
  accumulate: positiveCount,
  learningRate: positive,
  finalLearningRate: notNegative,
  warmup: count,
  beta2: share,
  weightDecay: notNegative,
  clip: notNegative,
  seed: count,
  evaluateEvery: count,
  evaluationBatches: positiveCount,
  saveEvery: count,
  keep: positiveCount,
  sampleEvery: count,
  sampleTokens: count,
  temperature: notNegative,
};

function fail(problem: string): never {
  throw new ArgumentError("train", "invalidSetting", problem);
}
