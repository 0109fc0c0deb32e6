/** What happens in a training run, for whoever shows, writes or plots it. */

/** One step of the optimiser. */
export interface StepEvent {
  readonly kind: "step";
  /** Counted from 1. */
  readonly step: number;
  /** The mean of −log p over the step's tokens, before the step, in nats. */
  readonly loss: number;
  readonly learningRate: number;
  /** The global norm of the gradients, before they were clipped. */
  readonly gradientNorm: number;
  /** Seen since the run's first step, in earlier sessions too. */
  readonly tokens: number;
  readonly tokensPerSecond: number;
  /** Until the last step, at the pace of the latest ones; without evaluations. */
  readonly secondsLeft: number;
  /** Of tensors, on all devices. */
  readonly liveBytes: number;
  /** Of the process. */
  readonly residentBytes: number;
}

/** The loss on data that is held out of training. */
export interface EvaluationEvent {
  readonly kind: "evaluation";
  readonly step: number;
  readonly loss: number;
}

/** What the model writes now. */
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
  /** The step from which the session goes on, 0 for a new run. */
  readonly step: number;
  readonly steps: number;
  readonly backend: string;
  readonly parameters: number;
  /** Of the run's settings, each as a JSON value. */
  readonly settings: Readonly<Record<string, unknown>>;
}

/** The last event of a session. */
export interface EndEvent {
  readonly kind: "end";
  readonly step: number;
  readonly reason: "finished" | "interrupted" | "failed";
}

/** Something that a user should know, such as a checkpoint that could not be read. */
export interface NoteEvent {
  readonly kind: "note";
  readonly step: number;
  readonly text: string;
}

export type RunEvent = StartEvent | StepEvent | EvaluationEvent | SampleEvent | CheckpointEvent | NoteEvent | EndEvent;

/** Is told of every event, in order. */
export interface Listener {
  on(event: RunEvent): void;
  /** After the last event, also where the run failed. */
  close?(): void | Promise<void>;
}
