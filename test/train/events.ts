import type { RunEvent, StepEvent } from "../../src/train/events.ts";

/** Events as a run of 400 steps emits them. */
export const startEvent: RunEvent = {
  kind: "start",
  step: 0,
  steps: 400,
  backend: "cpu",
  parameters: 812_544,
  settings: {},
};

export const stepEvent = (step: number, more: Partial<StepEvent> = {}): StepEvent => ({
  kind: "step",
  step,
  loss: 3 * (1 + 4 / step),
  bitsPerByte: 1 + 4 / step,
  learningRate: 1e-3,
  gradientNorm: 1,
  tokens: step * 768,
  tokensPerSecond: 45_678,
  secondsLeft: 61,
  liveBytes: 3 * 2 ** 20,
  residentBytes: 100 * 2 ** 20,
  ...more,
});
