/** The events of a training run, for listeners that show, log or plot it. */

/** One optimizer step. */
export interface StepEvent {
  readonly kind: "step";
  /** The step, counted from 1. */
  readonly step: number;
  /** The mean of −log p over the tokens, or the texts, of the step, before the update, in nats. */
  readonly loss: number;
  /** The loss in bits per byte of text, using the mean length of tokens; undefined in runs of encoders. */
  readonly bitsPerByte?: number | undefined;
  readonly learningRate: number;
  /** The global norm of the gradients, before clipping. */
  readonly gradientNorm: number;
  /** The number of tokens trained on so far, including earlier sessions. */
  readonly tokens: number;
  readonly tokensPerSecond: number;
  /** The estimated time until the last step, without evaluations. */
  readonly secondsLeft: number;
  /** The memory of tensors on all devices. */
  readonly liveBytes: number;
  /** The resident memory of the process. */
  readonly residentBytes: number;
}

/** The loss on held-out data. */
export interface EvaluationEvent {
  readonly kind: "evaluation";
  readonly step: number;
  /** The loss in nats per token, or per text. */
  readonly loss: number;
  /** The loss in bits per byte of text, which is comparable between tokenizers; undefined in runs of encoders. */
  readonly bitsPerByte?: number | undefined;
}

/** Returns the loss of an event as it is shown: in bits per byte, or in nats in runs of encoders. */
export const shownLoss = ({ loss, bitsPerByte }: StepEvent | EvaluationEvent): number => bitsPerByte ?? loss;

/** Text that the model generated. */
export interface SampleEvent {
  readonly kind: "sample";
  readonly step: number;
  readonly prompt: string;
  readonly text: string;
}

/** A checkpoint was written. */
export interface CheckpointEvent {
  readonly kind: "checkpoint";
  readonly step: number;
  readonly file: string;
}

/** The first event of a session. */
export interface StartEvent {
  readonly kind: "start";
  /** The step that the session starts from, 0 for a new run. */
  readonly step: number;
  readonly steps: number;
  readonly backend: string;
  readonly parameters: number;
  /** The settings of the run, as JSON values. */
  readonly settings: Readonly<Record<string, unknown>>;
}

/** The last event of a session. */
export interface EndEvent {
  readonly kind: "end";
  readonly step: number;
  readonly reason: "finished" | "interrupted" | "failed";
}

/** A message for the user, such as a checkpoint that could not be written. */
export interface NoteEvent {
  readonly kind: "note";
  readonly step: number;
  readonly text: string;
}

export type RunEvent = StartEvent | StepEvent | EvaluationEvent | SampleEvent | CheckpointEvent | NoteEvent | EndEvent;

/** Receives every event, in order. */
export interface Listener {
  on(event: RunEvent): void;
  /** Called after the last event, also if the run failed. */
  close?(): void | Promise<void>;
}

/** How a session ended. */
export interface Outcome {
  readonly reason: "finished" | "interrupted";
  readonly step: number;
  /** The loss of the last step; NaN if there was none. */
  readonly loss: number;
  /** The loss of the last evaluation; NaN if there was none. */
  readonly heldOutLoss: number;
  /** The last evaluation's loss in bits per byte; NaN without tokens. */
  readonly heldOutBits: number;
  /** The newest checkpoint that could be written. */
  readonly checkpoint: string | undefined;
  /** Why the last checkpoint could not be written. */
  readonly unsaved: unknown;
}
