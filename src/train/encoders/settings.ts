/** The settings of a run that trains a pretrained encoder. They are saved in every checkpoint. */
import { ArgumentError } from "../../core/errors.ts";
import { checkRanges, checkWarmup, presets, type Settings } from "../settings.ts";
import { EPOCHS, warmupOf } from "../tuning/settings.ts";
import { type EncoderTask, encoderTasks } from "./records.ts";

/** Settings with the same meaning in every run. */
type Shared = Pick<
  Settings,
  | ("data" | "heldOut" | "steps" | "batch" | "accumulate" | "learningRate" | "finalLearningRate" | "warmup")
  | (
      | "beta2"
      | "weightDecay"
      | "clip"
      | "seed"
      | "evaluateEvery"
      | "evaluationBatches"
      | "patience"
      | "saveEvery"
      | "keep"
    )
>;

export interface EncoderSettings extends Shared {
  /** The task that the encoder is trained for. */
  readonly task: EncoderTask;
  /** A Hugging Face folder of an encoder. */
  readonly model: string;
  /** The maximum tokens of a text; longer texts are cut. 0: the model's. */
  readonly context: number;
  /** The factor of cosines in the loss of embeddings, 1 / temperature. */
  readonly scale: number;
  /** The rank of the LoRA matrices; 0: all weights are trained. */
  readonly lora: number;
  /** Updates are multiplied by this divided by the rank; 0: the rank. */
  readonly loraAlpha: number;
  readonly loraDropout: number;
  /** The layers to adapt; empty: queries and values. */
  readonly loraTargets: readonly string[];
}

/** The defaults. 0 steps means three epochs. Adapters have ten times the learning rate. */
const defaults: Omit<EncoderSettings, "task" | "model" | "data"> = {
  context: 0,
  scale: 20,
  lora: 0,
  loraAlpha: 0,
  loraDropout: 0,
  loraTargets: [],
  heldOut: 0.1,
  steps: 0,
  batch: 32,
  accumulate: 1,
  learningRate: 2e-5,
  finalLearningRate: 0,
  warmup: 10,
  beta2: 0.999,
  weightDecay: 0.01,
  clip: 1,
  seed: 1337,
  evaluateEvery: 50,
  evaluationBatches: 20,
  patience: 0,
  saveEvery: 100,
  keep: 2,
};
const ADAPTER_RATE = 2e-4;

export type EncoderFlags = Partial<Omit<EncoderSettings, "task">> & { readonly task?: EncoderTask };

/** Settings of other runs. */
const foreign = [
  "architecture",
  "layers",
  "heads",
  "width",
  "dropout",
  "tokenizer",
  "vocabulary",
  "preset",
  "dtype",
  "quantize",
  "packing",
  "checkpointActivations",
  "sampleEvery",
  "sampleTokens",
  "prompt",
  "temperature",
  "dashboard",
] as const;

/** Settings that determine the model or the shapes of trained weights. */
const fixed = ["task", "model", "lora", "loraAlpha", "loraTargets", "context"] as const;

/**
 * Merges settings from the command line with those of the checkpoint if a run is resumed.
 *
 * @throws {ArgumentError} for invalid settings, and for changes of fixed ones.
 */
export function encoderSettings(flags: EncoderFlags, saved?: EncoderSettings): EncoderSettings {
  const learningRate = flags.lora === undefined ? defaults.learningRate : ADAPTER_RATE;
  const base = { ...defaults, learningRate, task: "embed" as const, model: "", data: [], ...saved };
  const known = Object.entries(flags).filter(([name, value]) => name in base && value !== undefined);
  const settings: EncoderSettings = { ...base, ...Object.fromEntries(known) };
  const other = foreign.find((name) => name in flags);
  if (other !== undefined) fail(`${other} can't be set with --task`);
  const changed = saved && fixed.find((name) => JSON.stringify(settings[name]) !== JSON.stringify(saved[name]));
  if (changed !== undefined)
    fail(
      `expected ${changed} to be ${JSON.stringify(saved![changed])}, as in the run, ` +
        `got ${JSON.stringify(settings[changed])}; leave it out, or start a new run`,
    );
  if (!encoderTasks.includes(settings.task))
    fail(`expected task to be ${encoderTasks.join(" or ")}, got ${settings.task}`);
  if (settings.model === "") fail("--task requires --model with the folder of an encoder");
  if (settings.data.length === 0) fail("expected --data with files of texts, got none");
  return checked(flags.warmup === undefined ? { ...settings, warmup: warmupOf(settings) } : settings);
}

function checked(settings: EncoderSettings): EncoderSettings {
  const { lora, loraAlpha, loraDropout, scale, steps, context, batch, task } = settings;
  const whole = { lora, steps, context };
  for (const [name, value] of Object.entries(whole))
    if (!Number.isSafeInteger(value) || value < 0)
      fail(`expected ${name} to be a whole number of at least 0, got ${value}`);
  checkRanges({
    ...presets.cpu,
    ...settings,
    steps: Math.max(1, steps),
    context: context || 1,
    dtype: "float32",
  });
  if (!(loraAlpha >= 0 && loraAlpha < Infinity)) fail(`expected loraAlpha to be at least 0, got ${loraAlpha}`);
  if (!(loraDropout >= 0 && loraDropout < 1))
    fail(`expected loraDropout to be at least 0 and below 1, got ${loraDropout}`);
  if (!(scale > 0 && scale < Infinity)) fail(`expected scale to be a finite number above 0, got ${scale}`);
  if (task === "embed" && batch < 2) fail(`expected batch to be at least 2 for in-batch negatives, got ${batch}`);
  if (task === "embed" && context > 0)
    fail("context can't be set with --task embed; texts are cut as sentence_bert_config.json says");
  if (steps > 0) checkWarmup(settings);
  return settings;
}

/** Resolves the number of steps once the files are read. */
export function withEpochs(settings: EncoderSettings, records: number): EncoderSettings {
  if (settings.steps > 0) return settings;
  const steps = Math.max(2, Math.ceil((EPOCHS * records) / (settings.batch * settings.accumulate)));
  return { ...settings, steps, warmup: warmupOf({ ...settings, steps }) };
}

function fail(problem: string): never {
  throw new ArgumentError("train", "invalidSetting", problem);
}
