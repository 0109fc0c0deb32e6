/**
 * Fine-tuning a model on metal gives the losses and the adapter of the cpu backend, for plain and quantized weights.
 */
import { beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { metalContext } from "../../../src/backend/metal/context.ts";
import type { BackendName } from "../../../src/backend/names.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { environmentFlag } from "../../../src/core/environment.ts";
import { TuningSession } from "../../../src/train/tuning/session.ts";
import { type TuningFlags, tuningSettings } from "../../../src/train/tuning/settings.ts";
import { checkFindings } from "../../ops/run.ts";
import { writeModel } from "../../serve/folder.ts";
import { testFolder } from "../../support/folder.ts";

const folder = testFolder("tuning-backends");
const [model, data] = [folder.file("model"), folder.file("chats.jsonl")];
/** A few roundings of float32, relative to the largest number. */
const TOLERANCE = 1e-5;

beforeAll(async () => {
  await writeModel(model);
  const chat = (at: number) => [
    { role: "user", content: `the ${at}` },
    { role: "assistant", content: `is ${at}` },
  ];
  writeFileSync(data, Array.from({ length: 4 }, (_, at) => JSON.stringify({ messages: chat(at) })).join("\n"));
});

async function trained(flags: TuningFlags) {
  const session = await TuningSession.start(
    tuningSettings({
      model,
      data: [data],
      lora: 2,
      context: 32,
      steps: 3,
      warmup: 1,
      batch: 2,
      learningRate: 2e-2,
      evaluateEvery: 0,
      saveEvery: 0,
      sampleTokens: 2,
      ...flags,
    }),
  );
  const losses: number[] = [];
  for (let step = 0; step < 3; step++) losses.push((await session.takeStep()).loss);
  return [losses, session.adapter.parameters().flatMap((own) => Array.from(own.dataSync(), Number))] as const;
}

const far = (a: readonly number[], b: readonly number[]): number =>
  a.length === b.length
    ? Math.max(...a.map((value, at) => Math.abs(value - b[at]))) / Math.max(...b.map(Math.abs))
    : Number.POSITIVE_INFINITY;

test.skipIf(environmentFlag("ORCHARD_SKIP_METAL")).each<[string, TuningFlags]>([
  ["float32", {}],
  ["q4_0, recomputed blocks", { quantize: "q4_0", checkpointActivations: true }],
])("LoRA trains on metal as on cpu, in %s", async (_, flags) => {
  metalContext().configure("check", true);
  metalContext().wait();
  metalContext().report({ clear: true }); // otherwise, garbage of other files would be counted
  const on = (backend: BackendName) => withStrict(true, () => withBackend(backend, () => trained(flags)));
  const [want, got] = [await on("cpu"), await on("metal")];
  expect([far(got[0], want[0]), far(got[1], want[1])].map((own) => own <= TOLERANCE)).toEqual([true, true]);
  expect(want[0][2]).toBeLessThan(want[0][0]);
  checkFindings({ name: "adapting a model" });
});
