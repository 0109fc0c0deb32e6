/** The settings of a run that adapts a model by LoRA. They are saved in every checkpoint. */
import { ArgumentError } from "../../core/errors.ts";
import { type GgmlFormat, ggmlFormats } from "../../quant/formats.ts";
import { checkRanges, checkWarmup, presets, type Settings } from "../settings.ts";

/** Settings that mean the same in every run. */
type Shared = Pick<
  Settings,
  | ("data" | "heldOut" | "context" | "steps" | "batch" | "accumulate" | "learningRate" | "finalLearningRate")
  | ("warmup" | "beta2" | "weightDecay" | "clip" | "seed" | "evaluateEvery" | "evaluationBatches" | "patience")
  | ("saveEvery" | "keep" | "sampleEvery" | "sampleTokens" | "prompt" | "temperature")
>;

export interface TuningSettings extends Shared {
  /** A folder of Hugging Face, or a `.gguf` file. */
  readonly model: string;
  /** The rank. */
  readonly lora: number;
  /** What is added is multiplied with this, divided by the rank; 0: the rank. */
  readonly loraAlpha: number;
  readonly loraDropout: number;
  /** The layers that are adapted; none: queries and values. */
  readonly loraTargets: readonly string[];
  /** The format of the model's weights; `""`: that of the file. */
  readonly quantize: GgmlFormat | "";
  /** The dtype of activations, and of weights that are not quantised; `""`: that of the file. */
  readonly dtype: Settings["dtype"] | "";
  /** Whether a row may have several texts. */
  readonly packing: boolean;
  /** Whether blocks are computed again in the backward pass. */
  readonly checkpointActivations: boolean;
}

/**
 * Steps of 0 are those of three epochs, a context of 0 is the model's up to {@link MOST_CONTEXT}. The rate is ten times
 * that of training all weights, as adapters want.
 */
const defaults: Omit<TuningSettings, "model" | "data" | "lora"> = {
  ...{ loraAlpha: 0, loraDropout: 0, loraTargets: [], quantize: "", dtype: "" },
  ...{ packing: false, checkpointActivations: false, context: 0, heldOut: 0.05 },
  ...{ steps: 0, batch: 4, accumulate: 1, learningRate: 2e-4, finalLearningRate: 2e-5, warmup: 10 },
  ...{ beta2: 0.999, weightDecay: 0, clip: 1, seed: 1337, evaluateEvery: 50, evaluationBatches: 20, patience: 0 },
  ...{ saveEvery: 100, keep: 2, sampleEvery: 0, sampleTokens: 100, prompt: "", temperature: 0 },
};

/** How often each example is seen if no number of steps is named. */
export const EPOCHS = 3;

/** The longest context that a model gets where none is named: longer rows take much memory. */
const MOST_CONTEXT = 1024;

/** The context in which a model of this one is trained. */
export const withContext = (settings: TuningSettings, contextLength: number): TuningSettings =>
  settings.context > 0 ? settings : { ...settings, context: Math.min(MOST_CONTEXT, contextLength) };

/** Settings of text runs that a model has of its own. */
const ofText = ["architecture", "layers", "heads", "width", "dropout", "tokenizer", "vocabulary", "preset"] as const;

/** What determines the shapes of what is trained, or which model it belongs to. */
const fixed = ["model", "lora", "loraAlpha", "loraTargets", "quantize", "dtype", "context", "packing"] as const;

export type TuningFlags = Partial<TuningSettings>;

/**
 * Settings from the command line, over those of the checkpoint if a run is resumed.
 *
 * @throws {ArgumentError} for invalid settings, and those that a run can't change.
 */
export function tuningSettings(flags: TuningFlags, saved?: TuningSettings): TuningSettings {
  const base = { ...defaults, model: "", data: [], lora: 0, ...saved }; // runs of older versions lack some
  const known = Object.entries(flags).filter(([name, value]) => name in base && value !== undefined);
  const settings: TuningSettings = { ...base, ...Object.fromEntries(known) };
  const foreign = ofText.find((name) => name in flags);
  if (foreign !== undefined) fail(`expected no ${foreign} with a model that exists, which has its own`);
  if (saved) checkFixed(settings, saved);
  if (settings.lora === 0) fail("expected --lora with a rank: weights of a model that exists are adapted, not trained");
  if (settings.data.length === 0) fail("expected --data with files of chats, got none");
  return checkTuning(flags.warmup === undefined ? { ...settings, warmup: warmupOf(settings) } : settings);
}

const warmupOf = ({ warmup, steps }: TuningSettings): number =>
  steps > 0 && warmup >= steps ? Math.floor(steps / 2) : warmup;

function checkFixed(settings: TuningSettings, saved: TuningSettings): void {
  const changed = fixed.find((name) => JSON.stringify(settings[name]) !== JSON.stringify(saved[name]));
  if (changed === undefined) return;
  const [expected, got] = [saved[changed], settings[changed]].map((value) => JSON.stringify(value));
  fail(`expected ${changed} to be ${expected}, as the run has it, got ${got}; leave it out, or start a new run`);
}

function checkTuning(settings: TuningSettings): TuningSettings {
  const { lora, loraAlpha, loraDropout, quantize, steps } = settings;
  // 0 steps: as many as three epochs have, which is known when the files are read; 0 tokens of context: the model's
  const known = { steps: Math.max(1, steps), context: settings.context || 1 };
  checkRanges({ ...presets.cpu, ...settings, ...known, dtype: "float32" } as Settings);
  if (!Number.isSafeInteger(lora) || lora < 1) fail(`expected lora to be a rank of at least 1, got ${lora}`);
  if (!(loraAlpha >= 0 && loraAlpha < Infinity)) fail(`expected loraAlpha to be at least 0, got ${loraAlpha}`);
  if (!(loraDropout >= 0 && loraDropout < 1)) fail(`expected loraDropout to be from 0 to below 1, got ${loraDropout}`);
  if (quantize !== "" && !ggmlFormats.includes(quantize))
    fail(`expected quantize to be one of ${ggmlFormats.join(", ")}, got ${quantize}`);
  if (!Number.isSafeInteger(steps) || steps < 0)
    fail(`expected steps to be a whole number of at least 0, got ${steps}`);
  if (steps > 0) checkWarmup(settings);
  return settings;
}

/** Settings of a run whose files are known. */
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
