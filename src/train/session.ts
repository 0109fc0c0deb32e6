/** The state of a run in memory: model, optimizer, data, and positions in the data. */
import { getBackend } from "../backend/policy.ts";
import { CheckpointError } from "../core/errors.ts";
import type { TextDataset } from "../data/dataset.ts";
import type { Tokenizer } from "../data/tokenizer.ts";
import type { Batch, DataPosition } from "../data/windows.ts";
import { type Checkpoint, loadCheckpoint } from "../io/checkpoint/load.ts";
import { saveCheckpoint } from "../io/checkpoint/save.ts";
import type { LanguageModel } from "../nn/models/language_model.ts";
import type { AdamW } from "../optim/adam.ts";
import type { EarlyStopping, EarlyStoppingState } from "../optim/early_stopping.ts";
import type { GradScaler } from "../optim/grad_scaler.ts";
import type { Schedule } from "../optim/schedule.ts";
import type { OptimizerStateDict } from "../optim/state_dict.ts";
import { defaultGenerator, type Generator, type GeneratorState } from "../random/generator.ts";
import { makeModel, makeOptimizer, makeScaler, makeSchedule, makeStopping } from "./model.ts";
import { compiledParts, compilesByDefault, type StepParts } from "./parts.ts";
import type { HeldOut, Trainable } from "./run.ts";
import { writeSample } from "./sample.ts";
import { presets, type Settings, shapeSettings } from "./settings.ts";
import { evaluate, takeStep } from "./step.ts";
import { Team } from "./team.ts";
import { makeTokenizer, openText, type SavedTokenizer, savedTokenizer, tokenizerOf } from "./text.ts";
import type { StepResult, Trainee } from "./trainee.ts";

/** The information about a run in its checkpoints. */
export interface SavedRun {
  readonly settings: Settings;
  readonly scaler: ReturnType<GradScaler["stateDict"]> | null;
  /** The tokenizer, if it was trained on the text. Checkpoints of older versions lack it. */
  readonly tokenizer?: SavedTokenizer;
  /** The state of early stopping, if it is enabled. */
  readonly stopping?: EarlyStoppingState;
}

/** @internal */
export type RunCheckpoint = Checkpoint<{ optimizer: OptimizerStateDict; data: DataPosition; extra: SavedRun }>;

/**
 * Loads the newest valid checkpoint in a folder, or a checkpoint file.
 *
 * @throws {CheckpointError} @throws {FileError} @throws {FileFormatError}
 */
export async function loadRun(
  path: string,
  operation = "train",
): Promise<RunCheckpoint & { readonly extra: SavedRun }> {
  const checkpoint: RunCheckpoint = await loadCheckpoint(path);
  const { extra } = checkpoint;
  if (extra?.settings) return { ...checkpoint, extra: { ...extra, settings: { ...presets.cpu, ...extra.settings } } };
  throw new CheckpointError(
    operation,
    "notOfARun",
    `expected a checkpoint of a training run, got ${checkpoint.path}, which has no settings`,
  );
}

/** Options of a run that do not change its results. */
export interface SessionOptions {
  /**
   * Whether steps are recorded once and then replayed. Default: on cpu, without ranks and loss scaling.
   */
  readonly compile?: boolean | undefined;
}

/**
 * All randomness comes from `settings.seed`: two sessions with the same settings and text have bit-identical losses.
 */
export class Session implements Trainee, Trainable {
  readonly backend: string = getBackend();
  readonly tokenizer: Tokenizer;
  readonly model: LanguageModel;
  readonly optimizer: AdamW;
  readonly scaler: GradScaler | undefined;
  readonly generator: Generator = defaultGenerator;
  readonly schedule: Schedule;
  readonly clip: number;
  readonly stopping: EarlyStopping | undefined;
  readonly parts: StepParts | undefined;
  step = 0;
  private heldOutBytes: number | undefined;
  /** The positions at the end of the last step, which a checkpoint stores. */
  private committed: { readonly generator: GeneratorState; readonly data: DataPosition };

  /** Starts a new run. @throws {DataError} */
  static async start(settings: Settings, team = Team.alone, options: SessionOptions = {}): Promise<Session> {
    team.checkBatch(settings.batch);
    const tokenizer = await makeTokenizer(settings);
    return new Session(settings, tokenizer, await openText(settings, tokenizer), team, options);
  }

  /**
   * Resumes a run.
   *
   * @throws {CheckpointError} `otherShape` if the settings do not match the checkpoint's model. @throws {DataError} if
   * the text differs.
   */
  static async resume(
    checkpoint: RunCheckpoint & { readonly extra: SavedRun },
    settings: Settings,
    team = Team.alone,
    options: SessionOptions = {},
  ): Promise<Session> {
    checkShape(checkpoint, settings);
    team.checkBatch(settings.batch);
    const tokenizer = tokenizerOf(settings, checkpoint.extra.tokenizer);
    const session = new Session(settings, tokenizer, await openText(settings, tokenizer), team, options);
    session.restore(checkpoint);
    return session;
  }

  private constructor(
    readonly settings: Settings,
    tokenizer: Tokenizer,
    readonly text: TextDataset,
    readonly team: Team,
    { compile }: SessionOptions,
  ) {
    this.generator.manualSeed(settings.seed);
    this.tokenizer = tokenizer;
    this.model = makeModel(settings, tokenizer.vocabularySize, this.generator);
    this.optimizer = makeOptimizer(this.model, settings);
    this.scaler = makeScaler(settings);
    this.schedule = makeSchedule(settings);
    this.clip = settings.clip;
    this.stopping = makeStopping(settings);
    if (compile ?? compilesByDefault(this)) this.parts = compiledParts(this, team);
    team.join(this.model);
    team.seed(this.generator);
    this.committed = this.position();
  }

  /** Windows of text per pass over all ranks. */
  get batch(): number {
    return this.settings.batch;
  }

  get tokensPerStep(): number {
    const { batch, accumulate, context } = this.settings;
    return batch * accumulate * context;
  }

  /** Returns this rank's windows for one forward and backward pass. */
  nextBatch(): Batch {
    return this.text.train.next(this.settings.batch, this.team.share);
  }

  get hasHeldOut(): boolean {
    return this.text.heldOut.windowCount > 0;
  }

  /** Returns the windows of an evaluation, which are always the same. */
  heldOutBatches(): Iterable<Batch> {
    const { batch, evaluationBatches } = this.settings;
    return this.text.heldOut.batches(batch, batch * evaluationBatches);
  }

  async heldOutLoss(): Promise<HeldOut> {
    return { loss: await evaluate(this.model, this.heldOutBatches(), this.team) };
  }

  /** Returns the mean bytes per token: of the whole text, and of the evaluated held-out tokens. */
  async bytesPerToken(): Promise<{ readonly text: number; readonly heldOut: number }> {
    const { bytes, tokens } = this.text.report;
    this.heldOutBytes ??= await bytesPerTarget(this.tokenizer, this.heldOutBatches());
    return { text: bytes / tokens, heldOut: this.heldOutBytes };
  }

  async sample(): Promise<{ readonly prompt: string; readonly text: string }> {
    return { prompt: this.settings.prompt, text: await writeSample(this) };
  }

  /** Takes one optimizer step. @throws {NotFiniteError} */
  async takeStep(): Promise<StepResult> {
    const batches = Array.from({ length: this.settings.accumulate }, () => this.nextBatch());
    const result = await takeStep(this, batches);
    for (const { x, y } of batches) for (const each of [x, y]) each.dispose();
    this.committed = this.position();
    return result;
  }

  /** Saves a checkpoint of the state after the last step. Returns its path. @throws {FileError} */
  save(folder: string): Promise<string> {
    const { model, optimizer, step, settings, scaler, committed } = this;
    const tokenizer = savedTokenizer(this.tokenizer);
    const stopping = this.stopping?.stateDict();
    const some = { ...(tokenizer && { tokenizer }), ...(stopping && { stopping }) };
    const extra: SavedRun = { settings, scaler: scaler?.stateDict() ?? null, ...some };
    return saveCheckpoint(folder, { model, optimizer, step, ...committed, extra }, { keep: settings.keep });
  }

  private restore({ model, optimizer, step, generator, data, extra }: RunCheckpoint): void {
    this.model.loadStateDict(model);
    if (optimizer) this.optimizer.loadStateDict(optimizer);
    if (generator) this.team.seed(this.generator.setState(generator));
    if (data) this.text.train.setState(data);
    if (extra?.scaler) this.scaler?.loadStateDict(extra.scaler);
    if (extra?.stopping) this.stopping?.loadStateDict(extra.stopping);
    this.step = step;
    this.committed = this.position();
  }

  private position() {
    return { generator: this.generator.getState(), data: this.text.train.getState() };
  }
}

/** Returns the mean bytes per target. Separators of documents count as 0 bytes. */
async function bytesPerTarget(tokenizer: Tokenizer, batches: Iterable<Batch>): Promise<number> {
  let [bytes, count] = [0, 0];
  for (const { x, y } of batches) {
    const targets = await y.data();
    for (const token of targets) if (token !== tokenizer.endOfText) bytes += tokenizer.bytesOf(token).byteLength;
    count += targets.length;
    for (const each of [x, y]) each.dispose();
  }
  return bytes / count;
}

function checkShape({ path, extra }: { path: string; extra: SavedRun }, settings: Settings): void {
  const differences = [...shapeSettings, "dtype" as const].filter((name) => extra.settings[name] !== settings[name]);
  if (differences.length === 0) return;
  const list = differences
    .map((name) => `\n  ${name}: expected ${extra.settings[name]}, got ${settings[name]}`)
    .join("");
  const advice = "leave these flags out to resume it, or start a new run";
  throw new CheckpointError("train", "otherShape", `the settings do not match ${path}; ${advice}:${list}`);
}
