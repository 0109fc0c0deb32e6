/** The state of a run that adapts a model: adapter, optimizer, examples, and positions in them. */
import { join } from "node:path";
import { getBackend } from "../../backend/policy.ts";
import { ArgumentError } from "../../core/errors.ts";
import type { DataPosition } from "../../data/windows.ts";
import type { Checkpoint } from "../../io/checkpoint/load.ts";
import { saveCheckpoint } from "../../io/checkpoint/save.ts";
import { locateModel } from "../../io/hub/locate.ts";
import { generateText } from "../../nn/generation/text.ts";
import type { Decoder } from "../../nn/models/decoder/decoder.ts";
import { type LoadedModel, loadModel } from "../../nn/models/loading/load_model.ts";
import type { LoraAdapter } from "../../nn/models/lora/lora.ts";
import { saveLora } from "../../nn/models/lora/peft.ts";
import { AdamW } from "../../optim/adam.ts";
import type { EarlyStopping, EarlyStoppingState } from "../../optim/early_stopping.ts";
import { GradScaler } from "../../optim/grad_scaler.ts";
import type { Schedule } from "../../optim/schedule.ts";
import type { OptimizerStateDict } from "../../optim/state_dict.ts";
import { defaultGenerator, type Generator, type GeneratorState } from "../../random/generator.ts";
import { loadTokenizer } from "../../text/load_tokenizer.ts";
import type { PretrainedTokenizer } from "../../text/pretrained_tokenizer.ts";
import { makeSchedule, makeStopping } from "../model.ts";
import type { HeldOut, Trainable } from "../run.ts";
import { evaluate, takeStep } from "../step.ts";
import { Team } from "../team.ts";
import type { StepResult, Trainee } from "../trainee.ts";
import { adapt, restoreAdapter, weightsOf } from "./adapter.ts";
import { batchesOf, disposeBatch, type ExampleBatch } from "./batches.ts";
import { readChats } from "./chats.ts";
import { type ExampleDataset, openExamples } from "./dataset.ts";
import { Encoder } from "./examples.ts";
import { type TuningSettings, withContext, withSteps } from "./settings.ts";
import { AnswerFinder } from "./spans.ts";

/** The information about a run in its checkpoints. */
export interface SavedTuning {
  readonly tuning: TuningSettings;
  readonly scaler: ReturnType<GradScaler["stateDict"]> | null;
  /** The state of early stopping, if it is enabled. */
  readonly stopping?: EarlyStoppingState;
}

/** @internal */
export type TuningCheckpoint = Checkpoint<{ optimizer: OptimizerStateDict; data: DataPosition; extra: SavedTuning }>;

/** The adapter's folder in the run's folder. */
export const ADAPTER = "adapter";

interface Parts {
  readonly loaded: LoadedModel;
  readonly tokenizer: PretrainedTokenizer;
  readonly data: ExampleDataset;
}

/**
 * All randomness comes from `settings.seed`: two sessions with the same settings and files have bit-identical losses.
 */
export class TuningSession implements Trainee, Trainable {
  readonly backend: string = getBackend();
  readonly model: Decoder;
  readonly tokenizer: PretrainedTokenizer;
  readonly adapter: LoraAdapter;
  readonly optimizer: AdamW;
  readonly scaler: GradScaler | undefined;
  readonly generator: Generator = defaultGenerator;
  readonly schedule: Schedule;
  readonly clip: number;
  readonly stopping: EarlyStopping | undefined;
  readonly data: ExampleDataset;
  readonly loaded: LoadedModel;
  step = 0;
  private committed: { readonly generator: GeneratorState; readonly data: DataPosition };

  /**
   * Starts a new run.
   *
   * @throws {DataError} for invalid files of chats, with the line. Errors of `loadModel`, `loadTokenizer` and `lora`.
   */
  static async start(given: TuningSettings, team = Team.alone): Promise<TuningSession> {
    team.checkBatch(given.batch);
    const written = readChats(given.data); // before the weights, so that errors appear immediately
    const path = await locateModel("loadModel", given.model);
    const tokenizer = loadTokenizer(path);
    const { dtype, quantize } = given;
    const loaded = await loadModel(path, { ...(dtype && { dtype }), ...(quantize && { quantize }) });
    const settings = withContext(given, loaded.model.contextLength);
    checkFit(settings, loaded.model, tokenizer);
    const { chatTemplate } = loaded;
    const finder = chatTemplate === undefined ? undefined : new AnswerFinder(chatTemplate, tokenizer.templateTokens);
    const data = await openExamples(written, new Encoder(tokenizer, finder), tokenizer, settings);
    const { examples, heldOut, tokens } = data.report;
    const known = withSteps(settings, examples - heldOut, tokens);
    return new TuningSession(known, { loaded, tokenizer, data }, team);
  }

  /** Resumes a run. @throws {DataError} `otherData` if the files differ. */
  static async resume(checkpoint: TuningCheckpoint, settings: TuningSettings, team = Team.alone) {
    const session = await TuningSession.start(settings, team);
    session.restore(checkpoint);
    return session;
  }

  private constructor(
    readonly settings: TuningSettings,
    { loaded, tokenizer, data }: Parts,
    readonly team: Team,
  ) {
    this.generator.manualSeed(settings.seed);
    this.loaded = loaded;
    this.model = loaded.model;
    this.tokenizer = tokenizer;
    this.data = data;
    this.adapter = adapt(this.model, settings, this.generator);
    this.model.train();
    const { learningRate: lr, beta2, weightDecay } = settings;
    this.optimizer = new AdamW(this.adapter.namedParameters(), { lr, betas: [0.9, beta2], weightDecay });
    this.scaler = this.model.stateDict()["finalNorm.weight"]?.dtype === "float16" ? new GradScaler() : undefined;
    this.schedule = makeSchedule(settings);
    this.clip = settings.clip;
    this.stopping = makeStopping(settings);
    team.join(this.model);
    team.seed(this.generator);
    this.committed = this.position();
  }

  /** Rows per pass over all ranks. */
  get batch(): number {
    return this.settings.batch;
  }

  /** An estimate, since examples have different lengths. */
  get tokensPerStep(): number {
    const { batch, accumulate, packing, context } = this.settings;
    const { tokens, examples } = this.data.report;
    return Math.round(batch * accumulate * (packing ? context : tokens / examples));
  }

  get hasHeldOut(): boolean {
    return this.data.heldOut.length > 0;
  }

  heldOutBatches(): Iterable<ExampleBatch> {
    const { batch, evaluationBatches, context } = this.settings;
    return batchesOf(this.data.heldOut.slice(0, batch * evaluationBatches), batch, context);
  }

  async heldOutLoss(): Promise<HeldOut> {
    return { loss: await evaluate(this.model, this.heldOutBatches(), this.team) };
  }

  bytesPerToken(): Promise<{ readonly text: number; readonly heldOut: number }> {
    const { targetBytes, targets } = this.data.report;
    return Promise.resolve({ text: targetBytes / targets, heldOut: targetBytes / targets });
  }

  async takeStep(): Promise<StepResult> {
    const { accumulate, batch } = this.settings;
    const batches = Array.from({ length: accumulate }, () => this.data.train.next(batch, this.team.share));
    try {
      const result = await takeStep(this, batches);
      this.committed = this.position();
      return result;
    } finally {
      for (const batch of batches) disposeBatch(batch);
    }
  }

  /** Saves a checkpoint, and next to its folder the adapter in PEFT's format. @throws {FileError} */
  async save(folder: string): Promise<string> {
    const { optimizer, step, settings: tuning, scaler, committed } = this;
    const stopping = this.stopping?.stateDict();
    const extra: SavedTuning = { tuning, scaler: scaler?.stateDict() ?? null, ...(stopping && { stopping }) };
    const model = weightsOf(this.adapter);
    const path = await saveCheckpoint(folder, { model, optimizer, step, ...committed, extra }, { keep: tuning.keep });
    await saveLora(this.adapter, join(folder, "..", ADAPTER));
    return path;
  }

  /**
   * Answers the prompt of the settings, or the prompt of the first example. It does not use the run's random numbers.
   */
  async sample(): Promise<{ readonly prompt: string; readonly text: string }> {
    const { sampleTokens: maxTokens, temperature, seed } = this.settings;
    const tokens = this.promptTokens();
    const prompt = this.tokenizer.decode(tokens, { skipSpecialTokens: false });
    const { stopTokens } = this.loaded.generation;
    const stop = stopTokens.length > 0 ? { stopTokens } : {};
    const options = { maxTokens, temperature, seed: seed + this.step, ...stop };
    const pieces = await Array.fromAsync(generateText(this.model, this.tokenizer, tokens, options));
    return { prompt, text: pieces.join("") };
  }

  private promptTokens(): readonly number[] {
    const { prompt } = this.settings;
    const { chatTemplate } = this.loaded;
    if (prompt === "") {
      const { tokens, isTarget } = this.data.first;
      return [...tokens.subarray(0, Math.max(1, isTarget.indexOf(1, 1)))];
    }
    if (chatTemplate === undefined) return this.tokenizer.encode(prompt);
    const asked = new AnswerFinder(chatTemplate, this.tokenizer.templateTokens).ask(prompt);
    return this.tokenizer.encode(asked, { addSpecialTokens: false });
  }

  private restore({ model, optimizer, step, generator, data, extra }: TuningCheckpoint): void {
    restoreAdapter(this.adapter, model);
    if (optimizer) this.optimizer.loadStateDict(optimizer);
    if (generator) this.team.seed(this.generator.setState(generator));
    if (data) this.data.train.setState(data);
    if (extra?.scaler) this.scaler?.loadStateDict(extra.scaler);
    if (extra?.stopping) this.stopping?.loadStateDict(extra.stopping);
    this.step = step;
    this.committed = this.position();
  }

  private position() {
    return { generator: this.generator.getState(), data: this.data.train.getState() };
  }
}

/** Checks the context and the tokenizer. @throws {ArgumentError} if they exceed the model's. */
function checkFit({ context, model: path }: TuningSettings, model: Decoder, tokenizer: PretrainedTokenizer): void {
  const fail = (problem: string) => new ArgumentError("train", "invalidSetting", problem);
  if (context > model.contextLength)
    throw fail(`expected context to be at most ${model.contextLength}, that of ${path}, got ${context}`);
  if (tokenizer.vocabularySize > model.vocabularySize)
    throw fail(
      `expected a tokenizer of at most ${model.vocabularySize} tokens in ${path}, got ${tokenizer.vocabularySize}`,
    );
}
