/** A step that fails changes nothing. */
import { expect, test } from "bun:test";
import { withBackend, withStrict } from "../../src/backend/policy.ts";
import { ShapeError } from "../../src/core/errors.ts";
import type { Batch } from "../../src/data/windows.ts";
import { full } from "../../src/ops/creation/full.ts";
import { Generator } from "../../src/random/generator.ts";
import { makeModel, makeOptimizer } from "../../src/train/model.ts";
import { presets } from "../../src/train/settings.ts";
import { takeStep } from "../../src/train/step.ts";
import type { Trainee } from "../../src/train/trainee.ts";
import { tested } from "../ops/run.ts";
import "../../src/index.ts";

const VOCABULARY = 40;
const settings = { ...presets.tiny, layers: 1, width: 16, context: 8 };

function makeTrainee(): Trainee {
  const generator = new Generator(0);
  const model = makeModel(settings, VOCABULARY, generator);
  const optimizer = makeOptimizer(model, settings);
  return { model, optimizer, scaler: undefined, generator, clip: 1, schedule: () => 1, step: 0 };
}

const tokens = (token: number) => full([2, 8], token, { dtype: "int32" });
const batches: Readonly<Record<"inputs" | "targets", () => Batch>> = {
  inputs: () => ({ x: tokens(VOCABULARY), y: tokens(0) }),
  targets: () => ({ x: tokens(0), y: tokens(VOCABULARY) }),
};

for (const backend of tested)
  test.each(["inputs", "targets"] as const)(`on ${backend}: %s beyond the vocabulary are rejected`, async (part) => {
    const on = <Result>(body: () => Result) => withStrict(true, () => withBackend(backend, body));
    const trainee = on(makeTrainee);
    const weights = () => trainee.model.parameters().map((parameter) => parameter.toArray());
    const before = on(weights);
    const error: unknown = await on(() => takeStep(trainee, [batches[part]()])).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(ShapeError);
    expect(error).toHaveProperty("code", "indexOutOfRange");
    expect(trainee.step).toBe(0);
    expect(on(weights)).toEqual(before);
    await on(() => takeStep(trainee, [{ x: tokens(0), y: tokens(1) }])); // a valid step succeeds
    expect(trainee.step).toBe(1);
  });
