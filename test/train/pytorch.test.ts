/**
 * A training run compared with PyTorch's, from the same weights and batches: the gradients of its first step, and 200
 * losses. See scripts/fixtures/training.py.
 */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { metalContext } from "../../src/backend/metal/context.ts";
import type { BackendName } from "../../src/backend/names.ts";
import { withBackend, withStrict } from "../../src/backend/policy.ts";
import { environmentFlag } from "../../src/core/environment.ts";
import { packageRoot } from "../../src/core/paths.ts";
import type { Batch } from "../../src/data/windows.ts";
import { loadSafetensors } from "../../src/io/safetensors/open.ts";
import { toDType } from "../../src/ops/copy/cast.ts";
import { Generator } from "../../src/random/generator.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { accumulateGradients } from "../../src/train/gradients.ts";
import { makeModel, makeOptimizer, makeSchedule } from "../../src/train/model.ts";
import { presets, type Settings } from "../../src/train/settings.ts";
import { takeStep } from "../../src/train/step.ts";
import type { StepResult, Trainee } from "../../src/train/trainee.ts";
import "../../src/index.ts";
import { checkFindings } from "../ops/run.ts";
import { ulpOf } from "../ops/tolerance.ts";

const fixture = loadSafetensors(join(packageRoot, "test", "fixtures", "training.safetensors"));
const partOf = (prefix: string): Record<string, Tensor> =>
  Object.fromEntries(
    Object.entries(fixture)
      .filter(([name]) => name.startsWith(`${prefix}.`))
      .map(([name, tensor]) => [name.slice(prefix.length + 1), tensor]),
  );
const numbers = (x: Tensor): number[] => Array.from(toDType(x, "float64").dataSync());

const VOCABULARY = 96;
/** PyTorch's recipe: AdamW with β (0.9, 0.99), a constant learning rate, decay of matrices only. */
const settings: Settings = {
  ...presets.tiny,
  layers: 2,
  heads: 2,
  width: 16,
  context: 16,
  dropout: 0,
  batch: 4,
  accumulate: 1,
  steps: 200,
  warmup: 0,
  learningRate: 1e-3,
  finalLearningRate: 1e-3,
  beta2: 0.99,
  weightDecay: 0.1,
  clip: 1,
};

/** The parts of a session, with PyTorch's initial weights. */
function makeTrainee(): Trainee {
  const generator = new Generator(0);
  const model = makeModel(settings, VOCABULARY, generator);
  model.loadStateDict(partOf("initial"));
  const optimizer = makeOptimizer(model, settings);
  return {
    model,
    optimizer,
    scaler: undefined,
    generator,
    clip: settings.clip,
    schedule: makeSchedule(settings),
    step: 0,
  };
}

/** The windows of a step: its tokens, and the tokens shifted by one. */
function batchOf(step: number): Batch {
  const { tokens } = fixture;
  const windows = toDType(tokens.narrow(0, step, 1).squeeze({ dim: 0 }), "int32");
  const part = (from: number) => windows.narrow(1, from, settings.context).contiguous() as Tensor<"int32">;
  return { x: part(0), y: part(1) };
}

const tested = (["cpu", "reference", "metal"] as const).filter(
  (name) => name !== "metal" || !environmentFlag("ORCHARD_SKIP_METAL"),
);

/** All steps if the backend is fast. */
const steps: Readonly<Record<BackendName, number>> = { cpu: 200, reference: 40, metal: 3 };

/** The results of each step. */
async function train(count: number): Promise<StepResult[]> {
  const trainee = makeTrainee();
  const found: StepResult[] = [];
  while (trainee.step < count) found.push(await takeStep(trainee, [batchOf(trainee.step)]));
  return found;
}

/** Runs on one backend only, and on Metal under the checker. */
function on<Result>(backend: BackendName, body: () => Result): Result {
  if (backend === "metal") metalContext().configure("check", true);
  return withStrict(true, () => withBackend(backend, body));
}

const largest = (values: readonly number[]): number => Math.max(...values.map(Math.abs));
const distance = (got: readonly number[], want: readonly number[]): number =>
  largest(want.map((value, at) => got[at] - value));

describe.each(tested)("training is as in PyTorch, on %s", (backend) => {
  test("each gradient of the first step is at most 3 times as far off as PyTorch's, plus a rounding", () => {
    const { model } = on(backend, () => {
      const trainee = makeTrainee();
      accumulateGradients(trainee.model, [batchOf(0)]).dispose();
      return trainee;
    });
    if (backend === "metal") checkFindings({ name: "the first step" });
    const [exact, errors] = [partOf("gradient"), partOf("error")];
    const parameters = [...model.namedParameters()];
    expect(parameters.map(([name]) => name).sort()).toEqual(Object.keys(exact).sort());
    const shares = parameters.map(([name, { grad }]) => {
      const want = numbers(exact[name]);
      return distance(numbers(grad!), want) / (3 * Number(errors[name].item()) + ulpOf("float32", largest(want)));
    });
    console.log(`      the farthest gradient on ${backend} is ${largest(shares).toFixed(2)} of what is allowed`);
    expect(parameters.filter((_, at) => !(shares[at] <= 1)).map(([name]) => name)).toEqual([]);
  });

  test(`the losses of ${steps[backend]} steps are PyTorch's within 1e-4`, async () => {
    const found = await on(backend, () => train(steps[backend]));
    if (backend === "metal") checkFindings({ name: "the first steps" });
    const [single, double] = [numbers(fixture["losses"]), numbers(fixture["losses64"])];
    const far = (want: readonly number[]) => largest(found.map(({ loss }, at) => loss / want[at] - 1));
    console.log(`      the farthest loss on ${backend}: ${far(single)} from float32, ${far(double)} from float64`);
    expect(far(single)).toBeLessThan(1e-4);
    expect(far(double)).toBeLessThan(1e-4);
    expect(found.some(({ gradientNorm }) => gradientNorm > settings.clip)).toBe(true);
  });
});
