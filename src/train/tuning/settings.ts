/** The settings of a run that adapts a model by LoRA. They are saved in every checkpoint. */
import { ArgumentError } from "../../core/errors.ts";
import { type GgmlFormat, ggmlFormats } from "../../quant/formats.ts";
import { checkRanges, checkWarmup, presets, type Settings } from "../settings.ts";

/** Settings with the same meaning in every run. */
type Shared = Pick<
  Settings,
  | ("data" | "heldOut" | "context" | "steps" | "batch" | "accumulate" | "learningRate" | "finalLearningRate")
  | ("warmup" | "beta2" | "weightDecay" | "clip" | "seed" | "evaluateEvery" | "evaluationBatches" | "patience")
  | ("saveEvery" | "keep" | "sampleEvery" | "sampleTokens" | "prompt" | "temperature")
>;

export interface TuningSettings extends Shared {
  /** A Hugging Face model folder or a `.gguf` file. */
  readonly model: string;
  /** The rank of the LoRA matrices. */
  readonly lora: number;
  /** Updates are multiplied by this divided by the rank; 0: the rank. */
  readonly loraAlpha: number;
  readonly loraDropout: number;
  /** The layers to adapt; empty: queries and values. */
  readonly loraTargets: readonly string[];
  /** The format of the model's weights; `""`: the file's. */
  readonly quantize: GgmlFormat | "";
  /** The dtype of activations and of unquantized weights; `""`: the file's. */
  readonly dtype: Settings["dtype"] | "";
  /** Whether a row may contain several texts. */
  readonly packing: boolean;
  /** Whether blocks are recomputed in the backward pass. */
  readonly checkpointActivations: boolean;
}

/**
 * The defaults. 0 steps means three epochs; a context of 0 means the model's, up to {@link MOST_CONTEXT}. The learning
 * rate is ten times that of training all weights, as is usual for adapters.
 */
const defaults: Omit<TuningSettings, "model" | "data" | "lora"> = {
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
};

/** Number of epochs if the number of steps is not set. */
export const EPOCHS = 3;

/** Maximum default context, since longer rows need much memory. */
const MOST_CONTEXT = 1024;

/** Resolves the context for a model with this context length. */
export const withContext = (settings: TuningSettings, contextLength: number): TuningSettings =>
  settings.context > 0 ? settings : { ...settings, context: Math.min(MOST_CONTEXT, contextLength) };

/** Settings of text runs that a pretrained model determines. */
const ofText = ["architecture", "layers", "heads", "width", "dropout", "tokenizer", "vocabulary", "preset"] as const;

/** Settings that determine the model or the shapes of trained weights. */
const fixed = ["model", "lora", "loraAlpha", "loraTargets", "quantize", "dtype", "context", "packing"] as const;

export type TuningFlags = Partial<TuningSettings>;

/**
 * Merges settings from the command line with those of the checkpoint if a run is resumed.
 *
 * @throws {ArgumentError} for invalid settings, and for changes of fixed ones.
 */
export function tuningSettings(flags: TuningFlags, saved?: TuningSettings): TuningSettings {
  const base = { ...defaults, model: "", data: [], lora: 0, ...saved }; // runs of older versions lack some settings
  const known = Object.entries(flags).filter(([name, value]) => name in base && value !== undefined);
  const settings: TuningSettings = { ...base, ...Object.fromEntries(known) };
  const foreign = ofText.find((name) => name in flags);
  if (foreign !== undefined) fail(`${foreign} can't be set for a pretrained model`);
  if (saved) checkFixed(settings, saved);
  if (settings.lora === 0)
    fail("expected --lora with a rank, got none; pretrained models are trained only by adapters");
  if (settings.data.length === 0) fail("expected --data with files of chats, got none");
  return checkTuning(flags.warmup === undefined ? { ...settings, warmup: warmupOf(settings) } : settings);
}

/**
 * Returns the number of warmup steps: the setting, or half of all steps if the warmup would not end before the last
 * step.
 */
export const warmupOf = ({ warmup, steps }: Pick<Settings, "warmup" | "steps">): number =>
  steps > 0 && warmup >= steps ? Math.floor(steps / 2) : warmup;

function checkFixed(settings: TuningSettings, saved: TuningSettings): void {
  const changed = fixed.find((name) => JSON.stringify(settings[name]) !== JSON.stringify(saved[name]));
  if (changed === undefined) return;
  const [expected, got] = [saved[changed], settings[changed]].map((value) => JSON.stringify(value));
  fail(`expected ${changed} to be ${expected}, as in the run, got ${got}; leave it out, or start a new run`);
}

function checkTuning(settings: TuningSettings): TuningSettings {
  const { lora, loraAlpha, loraDropout, quantize, steps } = settings;
  // 0 steps: three epochs, known once the files are read; a context of 0: the model's
  const known = { steps: Math.max(1, steps), context: settings.context || 1 };
  checkRanges({ ...presets.cpu, ...settings, ...known, dtype: "float32" });
  if (!Number.isSafeInteger(lora) || lora < 1) fail(`expected lora to be a rank of at least 1, got ${lora}`);
  if (!(loraAlpha >= 0 && loraAlpha < Infinity)) fail(`expected loraAlpha to be at least 0, got ${loraAlpha}`);
  if (!(loraDropout >= 0 && loraDropout < 1))
    fail(`expected loraDropout to be at least 0 and below 1, got ${loraDropout}`);
  if (quantize !== "" && !ggmlFormats.includes(quantize))
    fail(`expected quantize to be one of ${ggmlFormats.join(", ")}, got ${quantize}`);
  if (!Number.isSafeInteger(steps) || steps < 0)
    fail(`expected steps to be a whole number of at least 0, got ${steps}`);
  if (steps > 0) checkWarmup(settings);
  return settings;
}

/** Resolves the number of steps once the files are read. */
export function withSteps(settings: TuningSettings, examples: number, tokens: number): TuningSettings {
  if (settings.steps > 0) return settings;
  const { packing, batch, accumulate, context } = settings;
  const rows = packing ? tokens / context : examples;
  const steps = Math.max(2, Math.ceil((EPOCHS * rows) / (batch * accumulate)));
  return { ...settings, steps, warmup: warmupOf({ ...settings, steps }) };
}

function fail(problem: string): never {
  throw new ArgumentError("train", "invalidSetting", problem);
}
