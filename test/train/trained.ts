/** Runs so small that Metal's software device computes a step in a moment, and their results. */
import { join } from "node:path";
import type { BackendName } from "../../src/backend/names.ts";
import { withBackend } from "../../src/backend/policy.ts";
import { packageRoot } from "../../src/core/paths.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import type { RunEvent } from "../../src/train/events.ts";
import { runSession } from "../../src/train/run.ts";
import { Session } from "../../src/train/session.ts";
import { presets, type Settings } from "../../src/train/settings.ts";
import "../../src/index.ts";
import { testFolder } from "../support/folder.ts";

/** Settings with dropout, and otherwise as small as possible. */
export const small: Settings = {
  ...presets.tiny,
  data: [join(packageRoot, "LICENSE")],
  layers: 1,
  heads: 2,
  width: 16,
  context: 8,
  batch: 2,
  dropout: 0.1,
  steps: 5,
  warmup: 1,
  learningRate: 3e-3,
  finalLearningRate: 3e-4,
  clip: 0.5,
  evaluateEvery: 0,
  evaluationBatches: 1,
  saveEvery: 0,
  sampleTokens: 2,
  temperature: 0,
};

/** The result of a run: its curve, its optimizer's moments by name, and the text of its model. */
export interface Trained {
  readonly losses: readonly number[];
  readonly norms: readonly number[];
  readonly heldOutLoss: number;
  readonly sample: string;
  readonly moments: ReadonlyMap<string, readonly number[]>;
}

export interface Disturbance {
  /** Called before any computation with the model. */
  readonly atStart?: (session: Session) => void;
  /** Called before each step; steps are counted from 0. */
  readonly beforeStep?: (step: number) => void;
}

/** Trains on a backend, from the first step to the sample at the end. */
export function train(backend: BackendName, settings: Settings, disturb: Disturbance = {}): Promise<Trained> {
  return withBackend(backend, async () => {
    const session = await Session.start(settings);
    const events: RunEvent[] = [];
    const on = (event: RunEvent) => {
      events.push(event);
      if (event.kind === "start") disturb.atStart?.(session);
      if (event.kind === "start" || event.kind === "step") disturb.beforeStep?.(event.step);
    };
    const { heldOutLoss } = await runSession(session, testFolder("trained").path, { on });
    const steps = events.filter((event) => event.kind === "step");
    const sample = events.filter((event) => event.kind === "sample").map((event) => event.text);
    return {
      losses: steps.map(({ loss }) => loss),
      norms: steps.map(({ gradientNorm }) => gradientNorm),
      heldOutLoss,
      sample: sample.join(),
      moments: new Map(Object.entries(session.optimizer.stateDict().tensors).map(([name, x]) => [name, numbers(x)])),
    };
  });
}

const numbers = (x: Tensor): number[] => Array.from(x.dataSync(), Number);

/** The largest difference relative to the largest number. */
export function distance(got: readonly number[], want: readonly number[]): number {
  if (got.length !== want.length) return Number.POSITIVE_INFINITY;
  const largest = (values: readonly number[]) => Math.max(...values.map(Math.abs));
  return largest(want.map((value, at) => got[at] - value)) / largest(want);
}

/** The largest distance between two runs' curves, and between the two moments over all parameters. */
export function distances(got: Trained, want: Trained) {
  const all = ({ moments }: Trained, kind: string) =>
    [...moments].filter(([name]) => name.endsWith(`.${kind}`)).flatMap(([, values]) => values);
  const of = (kind: string) => distance(all(got, kind), all(want, kind));
  return {
    losses: distance([...got.losses, got.heldOutLoss], [...want.losses, want.heldOutLoss]),
    norms: distance(got.norms, want.norms),
    firstMoments: of("firstMoment"),
    secondMoments: of("secondMoment"),
  };
}
