/** The training loop: takes steps, evaluates, samples and saves checkpoints until the last step or a signal. */
import { setImmediate } from "node:timers/promises";
import type { Module } from "../nn/layers/module.ts";
import type { AdamW } from "../optim/adam.ts";
import type { EarlyStopping } from "../optim/early_stopping.ts";
import { memory } from "../tensor/usage.ts";
import type { Listener, Outcome, StepEvent } from "./events.ts";
import { NotFiniteError } from "./not_finite.ts";
import { Pace } from "./pace.ts";
import type { Settings } from "./settings.ts";
import type { Team } from "./team.ts";
import type { StepResult } from "./trainee.ts";

/** The result of an evaluation. */
export interface HeldOut {
  /** The loss in nats. */
  readonly loss: number;
  /** Other measures, as a sentence. */
  readonly note?: string;
}

/** A training session: a model on text, an adapter on chats, or an encoder. */
export interface Trainable {
  readonly settings: Pick<Settings, "steps" | "evaluateEvery" | "saveEvery"> & Partial<Pick<Settings, "sampleEvery">>;
  readonly backend: string;
  readonly team: Team;
  readonly model: Module;
  readonly optimizer: AdamW;
  /** Early stopping; undefined: take all steps. */
  readonly stopping: EarlyStopping | undefined;
  /** The number of steps taken. */
  readonly step: number;
  readonly tokensPerStep: number;
  /** Whether there is held-out data. */
  readonly hasHeldOut: boolean;
  /** Computes the loss on held-out data. */
  heldOutLoss(): Promise<HeldOut>;
  /**
   * Returns the mean number of bytes per token that has a loss, in the text and in the held-out data. Undefined for
   * losses of whole texts.
   */
  bytesPerToken?(): Promise<{ readonly text: number; readonly heldOut: number }>;
  /** Takes an optimizer step. @throws {NotFiniteError} */
  takeStep(): Promise<StepResult>;
  /** Saves a checkpoint in a folder, and returns its path. @throws {FileError} */
  save(folder: string): Promise<string>;
  /** Generates a text from a prompt. Undefined for models that generate none. */
  sample?(): Promise<{ readonly prompt: string; readonly text: string }>;
}

/**
 * Trains until the last step, or until the signal is aborted: then the current step ends and the run is saved.
 *
 * @param checkpoints the folder of checkpoints
 *
 * @throws {NotFiniteError} for a loss or gradients that are not finite.
 */
export async function runSession(
  session: Trainable,
  checkpoints: string,
  listener: Listener,
  signal?: AbortSignal,
): Promise<Outcome> {
  const run = new Run(session, checkpoints, listener);
  try {
    const outcome = await run.toTheEnd(signal);
    listener.on({ kind: "end", step: session.step, reason: outcome.reason });
    return outcome;
  } catch (error) {
    // The state is from before the failed step. Save it unless its weights are not finite.
    if (error instanceof NotFiniteError && error.brokenParameter === undefined) await run.save();
    if (error instanceof NotFiniteError) await session.team.together(); // a rank that exits would end all ranks
    listener.on({ kind: "end", step: session.step, reason: "failed" });
    throw error;
  }
}

/** Converts a loss in nats per token to bits per byte. */
const bitsPerByte = (loss: number, bytesPerToken: number | undefined): number | undefined =>
  bytesPerToken === undefined ? undefined : loss / (Math.LN2 * bytesPerToken);

const isDue = (step: number, every: number): boolean => every > 0 && step % every === 0;

class Run {
  private readonly pace = new Pace();
  private loss = Number.NaN;
  private heldOut: { readonly step: number; readonly loss: number; readonly bitsPerByte?: number | undefined } = {
    step: -1,
    loss: Number.NaN,
  };
  private isStopped = false;
  private bytesPerToken: { readonly text: number; readonly heldOut: number } | undefined;
  private checkpoint: { step: number; file?: string; problem?: unknown } = { step: -1 };

  constructor(
    private readonly session: Trainable,
    private readonly checkpoints: string,
    private readonly listener: Listener,
  ) {}

  async toTheEnd(signal: AbortSignal | undefined): Promise<Outcome> {
    const { team } = this.session;
    this.emitStart();
    this.bytesPerToken = await this.session.bytesPerToken?.();
    while (!this.isComplete && !team.any(signal?.aborted === true)) {
      this.pace.start();
      await this.takeStep();
      await this.betweenSteps();
      await setImmediate(); // yields, so that timers and signal handlers run
    }
    const reason = this.isComplete ? "finished" : "interrupted";
    if (reason === "finished") await this.evaluate();
    await this.save();
    if (reason === "finished") await this.sample();
    return this.outcome(reason);
  }

  private get isComplete(): boolean {
    return this.isStopped || this.session.step >= this.session.settings.steps;
  }

  private outcome(reason: Outcome["reason"]): Outcome {
    const { loss, heldOut, checkpoint, session } = this;
    const { file, problem } = checkpoint;
    return {
      reason,
      step: session.step,
      loss,
      heldOutLoss: heldOut.loss,
      heldOutBits: heldOut.bitsPerByte ?? Number.NaN,
      checkpoint: file,
      unsaved: problem,
    };
  }

  private emitStart(): void {
    const { step, settings, model, backend } = this.session;
    const parameters = model.parameters().reduce((total, { size }) => total + size, 0);
    this.listener.on({ kind: "start", step, steps: settings.steps, backend, parameters, settings: { ...settings } });
  }

  private async takeStep(): Promise<void> {
    const { loss, gradientNorm } = await this.session.takeStep();
    this.loss = loss;
    this.listener.on(this.stepEvent(gradientNorm, this.pace.lap()));
  }

  private stepEvent(gradientNorm: number, secondsPerStep: number): StepEvent {
    const { step, settings, optimizer, tokensPerStep } = this.session;
    const { host, metal } = memory();
    return {
      kind: "step",
      step,
      loss: this.loss,
      bitsPerByte: bitsPerByte(this.loss, this.bytesPerToken?.text),
      learningRate: optimizer.groups[0].lr,
      gradientNorm,
      tokens: step * tokensPerStep,
      tokensPerSecond: tokensPerStep / secondsPerStep,
      secondsLeft: (settings.steps - step) * secondsPerStep,
      liveBytes: host.liveBytes + metal.liveBytes,
      residentBytes: process.memoryUsage.rss(),
    };
  }

  private async betweenSteps(): Promise<void> {
    const { step, settings } = this.session;
    if (isDue(step, settings.evaluateEvery)) await this.evaluate();
    if (isDue(step, settings.saveEvery)) await this.save();
    if (isDue(step, settings.sampleEvery ?? 0) && step < settings.steps) await this.sample();
  }

  private async evaluate(): Promise<void> {
    const { step } = this.session;
    if (this.heldOut.step === step || !this.session.hasHeldOut) return;
    const { loss, note } = await this.session.heldOutLoss();
    this.heldOut = { step, loss, bitsPerByte: bitsPerByte(loss, this.bytesPerToken?.heldOut) };
    this.listener.on({ kind: "evaluation", ...this.heldOut });
    if (note !== undefined) this.listener.on({ kind: "note", step, text: note });
    const { stopping, settings } = this.session;
    this.isStopped = stopping?.step(loss) === true && step < settings.steps;
    if (!this.isStopped) return;
    const text = `stopped early: the last ${stopping?.badSteps} evaluations had no lower loss than ${stopping?.best}`;
    this.listener.on({ kind: "note", step, text });
  }

  private async sample(): Promise<void> {
    const { step, team } = this.session;
    if (team.isFirst && this.session.sample)
      this.listener.on({ kind: "sample", step, ...(await this.session.sample()) });
  }

  /**
   * A checkpoint that cannot be written, for example because the disk is full, does not end the run. Later ones are
   * tried again.
   */
  async save(): Promise<void> {
    const { step, team } = this.session;
    if (this.checkpoint.step === step || !team.isFirst) return;
    try {
      const file = await this.session.save(this.checkpoints);
      this.checkpoint = { step, file };
      this.listener.on({ kind: "checkpoint", step, file });
    } catch (problem) {
      this.checkpoint = { ...this.checkpoint, step, problem };
      const reason = problem instanceof Error ? problem.message : String(problem);
      this.listener.on({ kind: "note", step, text: `the run could not be saved: ${reason}` });
    }
  }
}
