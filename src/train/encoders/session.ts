/** The state of a run that trains an encoder: model, optimizer, records, and positions in them. */
import { join } from "node:path";
import { noGrad } from "../../autograd/modes.ts";
import { getBackend } from "../../backend/policy.ts";
import { ArgumentError } from "../../core/errors.ts";
import type { DataPosition } from "../../data/windows.ts";
import type { Checkpoint } from "../../io/checkpoint/load.ts";
import { saveCheckpoint } from "../../io/checkpoint/save.ts";
import { locateModel } from "../../io/hub/locate.ts";
import { Encoder } from "../../nn/models/encoder/encoder.ts";
import { loadClassifier } from "../../nn/models/loading/encoder/classifier.ts";
import { loadModel } from "../../nn/models/loading/load_model.ts";
import { type LoraAdapter, lora } from "../../nn/models/lora/lora.ts";
import { saveLora } from "../../nn/models/lora/peft.ts";
import { tokenizerOf } from "../../nn/tasks/batches.ts";
import { copy_ } from "../../ops/copy/inplace.ts";
import { isfinite } from "../../ops/elementwise/predicates.ts";
import { detach } from "../../ops/gradient/backward.ts";
import { all } from "../../ops/reduction/logic.ts";
import { AdamW } from "../../optim/adam.ts";
import { clipGradNorm } from "../../optim/clip.ts";
import type { EarlyStopping, EarlyStoppingState } from "../../optim/early_stopping.ts";
import type { Schedule } from "../../optim/schedule.ts";
import type { OptimizerStateDict } from "../../optim/state_dict.ts";
import { defaultGenerator, type GeneratorState } from "../../random/generator.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { makeSchedule, makeStopping } from "../model.ts";
import { NotFiniteError } from "../not_finite.ts";
import type { HeldOut, Trainable } from "../run.ts";
import { Team } from "../team.ts";
import type { StepResult } from "../trainee.ts";
import { ADAPTER } from "../tuning/session.ts";
import { EpochBatches, type SplitRecords, splitRecords } from "./batches.ts";
import { classification, embedding, type Objective } from "./objectives.ts";
import { type LabeledRecord, labelsOf, type PairRecord, readLabeled, readPairs } from "./records.ts";
import { checkSavable, saveEncoder, type TrainedEncoder } from "./save.ts";
import { type EncoderSettings, withEpochs } from "./settings.ts";

/** The information about a run in its checkpoints. */
export interface SavedEncoderRun {
  readonly encoder: EncoderSettings;
  /** The names of the classes, of a classifier. */
  readonly labels: readonly string[];
  /** The state of early stopping, if it is enabled. */
  readonly stopping?: EarlyStoppingState;
}

/** @internal */
export type EncoderCheckpoint = Checkpoint<{
  optimizer: OptimizerStateDict;
  data: DataPosition;
  extra: SavedEncoderRun;
}>;

/** The trained model's folder in the run's folder. */
export const MODEL = "model";

/** The trained model, its records, and the task with its losses. */
interface Parts<T> extends TrainedEncoder {
  readonly records: SplitRecords<T>;
  readonly objective: (model: Encoder) => Objective<T>;
}

/**
 * All randomness comes from `settings.seed`: two sessions with the same settings and files have bit-identical losses.
 */
export class EncoderSession<T = unknown> implements Trainable {
  readonly backend: string = getBackend();
  readonly team: Team = Team.alone;
  readonly model: Encoder;
  readonly adapter: LoraAdapter<Encoder> | undefined;
  readonly optimizer: AdamW;
  readonly stopping: EarlyStopping | undefined;
  readonly records: SplitRecords<T>;
  readonly tokensPerStep: number;
  step = 0;
  private readonly schedule: Schedule;
  private readonly objective: Objective<T>;
  private readonly batches: EpochBatches<T>;
  private readonly trained: ReadonlyMap<string, Tensor>;
  private committed: { readonly generator: GeneratorState; readonly data: DataPosition };

  /**
   * Starts a new run.
   *
   * @throws {DataError} for invalid files, with the line. @throws {ArgumentError} for a model that is not an encoder
   * with a tokenizer. Errors of `loadModel` and `lora`.
   */
  static async start(settings: EncoderSettings, team: Team = Team.alone): Promise<EncoderSession> {
    if (team.size > 1)
      throw new ArgumentError("train", "invalidSetting", `--task does not support several processes, got ${team.size}`);
    defaultGenerator.manualSeed(settings.seed);
    const session = settings.task === "embed" ? await startEmbedding(settings) : await startClassifier(settings);
    checkSavable(session.parts.model);
    return session as EncoderSession;
  }

  /** Resumes a run. @throws {DataError} `otherData` if the files differ. */
  static async resume(checkpoint: EncoderCheckpoint, settings: EncoderSettings, team?: Team): Promise<EncoderSession> {
    const session = await EncoderSession.start(settings, team);
    session.restore(checkpoint);
    return session;
  }

  /** @internal */
  constructor(
    readonly settings: EncoderSettings,
    private readonly parts: Parts<T>,
  ) {
    const { batch, seed, learningRate: lr, beta2 } = settings;
    this.model = parts.model;
    this.records = parts.records;
    this.adapter = adapted(this.model, settings);
    this.model.train();
    this.objective = parts.objective(this.model);
    this.trained = this.model.namedParameters();
    this.optimizer = new AdamW(groupsOf(this.trained, settings), { lr, betas: [0.9, beta2] });
    this.schedule = makeSchedule(settings);
    this.stopping = makeStopping(settings);
    const { train, fingerprint } = this.records;
    const position = `${fingerprint}/${batch}`;
    this.batches = new EpochBatches(train, batch, this.objective.keysOf, BigInt(seed), position);
    this.tokensPerStep = this.meanTokens() * batch * settings.accumulate;
    this.committed = this.position();
  }

  /** The path of the pretrained model. */
  get path(): string {
    return this.parts.path;
  }

  get hasHeldOut(): boolean {
    return this.records.heldOut.length > 0;
  }

  heldOutLoss(): Promise<HeldOut> {
    const { batch, evaluationBatches } = this.settings;
    return this.objective.evaluate(this.records.heldOut.slice(0, batch * evaluationBatches), batch);
  }

  /** Takes an optimizer step. @throws {NotFiniteError} Then nothing was changed. */
  async takeStep(): Promise<StepResult> {
    const { accumulate, clip } = this.settings;
    this.optimizer.scaleLearningRate(this.schedule(this.step));
    this.optimizer.zeroGrad();
    let loss = 0;
    for (let pass = 0; pass < accumulate; pass++)
      loss += (await this.objective.backward(this.batches.next(), accumulate)) / accumulate;
    using norm = clipGradNorm([...this.trained.values()], clip === 0 ? Infinity : clip);
    const result = { loss, gradientNorm: Number((await norm.data())[0]) };
    this.checkFinite(result);
    this.optimizer.step();
    this.step++;
    this.committed = this.position();
    return result;
  }

  /** Saves a checkpoint, and next to its folder the model, and with LoRA the adapter. @throws {FileError} */
  async save(folder: string): Promise<string> {
    const { optimizer, step, settings: encoder, committed, model } = this;
    const stopping = this.stopping?.stateDict();
    const extra: SavedEncoderRun = { encoder, labels: model.labels?.names ?? [], ...(stopping && { stopping }) };
    const weights = Object.fromEntries([...this.trained].map(([name, x]) => [name, detach(x)]));
    const content = { model: weights, optimizer, step, ...committed, extra };
    const path = await saveCheckpoint(folder, content, { keep: encoder.keep });
    await saveEncoder(this.parts, join(folder, "..", MODEL));
    if (this.adapter && encoder.task === "embed") await saveLora(this.adapter, join(folder, "..", ADAPTER));
    return path;
  }

  private checkFinite({ loss, gradientNorm }: StepResult): void {
    if (Number.isFinite(loss) && Number.isFinite(gradientNorm)) return;
    const what = Number.isFinite(loss) ? `gradients of norm ${gradientNorm}` : `a loss of ${loss}`;
    const isWhole = (x: Tensor) => tidy(() => Boolean(all(isfinite(x)).item()));
    const broken = [...this.trained].find(([, x]) => !isWhole(x))?.[0];
    const origin = broken === undefined ? "; try a lower --learning-rate" : `: the weights ${broken} are not finite`;
    throw new NotFiniteError(what, this.step + 1, undefined, broken, origin);
  }

  /** The mean tokens of a record, estimated from the first ones. */
  private meanTokens(): number {
    const some = this.records.train.slice(0, 64);
    const tokenizer = tokenizerOf("train", this.model);
    const texts = some.flatMap((record) => this.objective.textsOf(record));
    return Math.round(texts.reduce((sum, text) => sum + tokenizer.encode(text).length, 0) / some.length);
  }

  private restore({ model, optimizer, step, generator, data, extra }: EncoderCheckpoint): void {
    noGrad(() => {
      for (const [name, x] of this.trained) copy_(x, model[name]);
    });
    if (optimizer) this.optimizer.loadStateDict(optimizer);
    if (generator) defaultGenerator.setState(generator);
    if (data) this.batches.setState(data);
    if (extra?.stopping) this.stopping?.loadStateDict(extra.stopping);
    this.step = step;
    this.committed = this.position();
  }

  private position() {
    return { generator: defaultGenerator.getState(), data: this.batches.getState() };
  }
}

async function startEmbedding(settings: EncoderSettings): Promise<EncoderSession<PairRecord>> {
  // before weights are loaded, so that errors appear immediately
  const records = splitRecords(readPairs(settings.data), settings.heldOut);
  const path = await locateModel("loadModel", settings.model);
  const loaded = await loadModel<Encoder>(path, { dtype: "float32" });
  checkEncoder(loaded.model, path);
  const { model, config } = loaded;
  // dropout would draw different numbers when a chunk of texts is recomputed
  const objective = (model: Encoder) =>
    embedding(model, settings.scale, settings.loraDropout > 0 ? 2 ** 30 : undefined);
  return new EncoderSession(withEpochs(settings, records.train.length), { model, config, path, records, objective });
}

async function startClassifier(settings: EncoderSettings): Promise<EncoderSession<LabeledRecord>> {
  const all = readLabeled(settings.data);
  const labels = labelsOf(all);
  if (labels.length < 2)
    throw new ArgumentError("train", "oneLabel", `expected texts with at least two labels, got only "${labels[0]}"`);
  const records = splitRecords(all, settings.heldOut);
  const path = await locateModel("loadModel", settings.model);
  const { model, config } = await loadClassifier(path, labels);
  checkEncoder(model, path);
  const context = settings.context > 0 ? settings.context : model.contextLength;
  if (context > model.contextLength)
    throw new ArgumentError(
      "train",
      "invalidSetting",
      `expected context to be at most ${model.contextLength}, that of ${path}, got ${context}`,
    );
  const objective = (model: Encoder) => classification(model, context);
  return new EncoderSession(withEpochs(settings, records.train.length), { model, config, path, records, objective });
}

function checkEncoder(model: unknown, path: string): asserts model is Encoder {
  if (model instanceof Encoder && !path.endsWith(".gguf")) return void tokenizerOf("train", model);
  const message = `expected --task with the folder of an encoder, an architecture of docs/encoders.md, got ${path}`;
  throw new ArgumentError("train", "notAnEncoder", message);
}

/** Adds an adapter, which freezes the model. A head for classes is trained too. */
function adapted(model: Encoder, settings: EncoderSettings): LoraAdapter<Encoder> | undefined {
  const { lora: rank, loraAlpha: alpha, loraDropout: dropout, loraTargets: targets, task } = settings;
  if (rank === 0) return undefined;
  const chosen = { ...(alpha > 0 && { alpha }), ...(targets.length > 0 && { targets }) };
  const head = model.head?.parameters() ?? []; // before freezing, because frozen tensors are not listed
  const adapter = lora(model, { rank, dropout, generator: defaultGenerator, ...chosen });
  if (task === "classify") for (const parameter of head) parameter.requiresGrad = true;
  return adapter;
}

/** Matrices have weight decay; biases and norms have none. */
function groupsOf(trained: ReadonlyMap<string, Tensor>, { weightDecay }: EncoderSettings) {
  const [matrices, others] = [true, false].map(
    (isMatrix) => new Map([...trained].filter(([, { rank }]) => rank >= 2 === isMatrix)),
  );
  const groups = [
    { parameters: matrices, weightDecay },
    { parameters: others, weightDecay: 0 },
  ];
  return groups.filter(({ parameters }) => parameters.size > 0);
}
