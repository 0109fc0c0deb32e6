/** The entry `orchard-metal/train`: training of language models. Its modules load at the first call. */
import type { Tokenizer } from "../data/tokenizer.ts";
import type { LanguageModel } from "../nn/models/language_model.ts";
import type { Listener, Outcome } from "./events.ts";
import type { PresetName, Settings } from "./settings.ts";

export type {
  CheckpointEvent,
  EndEvent,
  EvaluationEvent,
  Listener,
  NoteEvent,
  Outcome,
  RunEvent,
  SampleEvent,
  StartEvent,
  StepEvent,
} from "./events.ts";
export type { PresetName, Settings } from "./settings.ts";

/** Options of {@link train}: the settings of the run, which default to the preset's or the resumed run's. */
export interface TrainOptions extends Partial<Settings> {
  /** Default: `cpu` on cpu, `gpu` on Apple's GPUs, otherwise `tiny`. */
  readonly preset?: PresetName | undefined;
  /** The folder of the run. Default: a new one in `runs`. */
  readonly out?: string | undefined;
  /** The folder of a run to resume. */
  readonly resume?: string | undefined;
  /** Whether steps are recorded once and replayed. Default: on cpu, without loss scaling. */
  readonly compile?: boolean | undefined;
  /** Receives the events of the run. If it throws, it gets no further events. */
  readonly listener?: Listener | undefined;
  /** Ends the run after the current step, and saves it. */
  readonly signal?: AbortSignal | undefined;
}

/** The result of {@link train}. */
export interface TrainedRun extends Outcome {
  /** The folder with the checkpoints and the log. */
  readonly folder: string;
  readonly model: LanguageModel;
  readonly tokenizer: Tokenizer;
}

/**
 * Trains a GPT or Llama on text, as `orchard train` does, and saves checkpoints and a log. Two runs with the same
 * settings and text have bit-identical losses.
 *
 * @example
 * import { train } from "orchard-metal/train";
 *
 * const { model, loss } = await train({ data: ["books/*.txt"], steps: 200, out: "runs/books" });
 *
 * @throws {ArgumentError} for unknown or invalid settings, or a folder that already has a run.
 * @throws {DataError} for text that is missing or too short. @throws {CheckpointError} for another model's checkpoint.
 */
export async function train(options?: TrainOptions): Promise<TrainedRun>;
export async function train(...values: unknown[]): Promise<TrainedRun> {
  const { start } = await import("./start.ts");
  return start(values);
}
