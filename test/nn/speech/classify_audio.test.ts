/** Compares classifiers of recordings with `transformers`: scripts/fixtures/models/audio.py. */
import { beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../../src/core/paths.ts";
import { backward, io, mul, nn, noGrad, sum, tensor } from "../../../src/index.ts";
import { testFolder } from "../../support/folder.ts";
import { errorOf, weight } from "../models/weights.ts";
import { cases as ctcCases, gradientOf, writeCtcModel } from "./ctc_oracle.ts";
import { audio, type Recording } from "./oracle.ts";

interface Case {
  readonly config: Readonly<Record<string, unknown>> & { readonly model_type: string };
  readonly normalize: boolean;
  readonly audio: Recording;
  readonly labels: Readonly<Record<string, number>>;
  readonly shapes: Readonly<Record<string, number[]>>;
}

const CLOSE = 2e-5;
const fixture = join(packageRoot, "test", "fixtures", "speech", "audio");
const { cases }: { cases: Case[] } = JSON.parse(readFileSync(`${fixture}.json`, "utf8"));
const answers = io.loadSafetensors(`${fixture}.safetensors`);
const folder = testFolder("classify_audio");

async function load(name: string, own: Case, changes: object = {}): Promise<nn.Wav2Vec2> {
  const path = folder.file(name);
  mkdirSync(path, { recursive: true });
  const write = (file: string, value: object) => writeFileSync(join(path, file), JSON.stringify(value));
  write("config.json", { ...own.config, ...changes });
  write("preprocessor_config.json", { do_normalize: own.normalize });
  const tensors = Object.entries(own.shapes).map(([key, shape]) => [key, weight(key, shape)] as const);
  await io.saveSafetensors(join(path, "model.safetensors"), Object.fromEntries(tensors));
  return (await nn.loadModel<nn.Wav2Vec2>(path, { dtype: "float32" })).model;
}

describe.each(cases.map((own, at) => [at, own.config.model_type, own] as const))("classifier %d, %s", (at, _, own) => {
  let model: nn.Wav2Vec2;
  beforeAll(async () => {
    model = await load(`${at}`, own);
  });

  test("labels of a recording equal those of transformers", async () => {
    const [found] = await nn.classifyAudio(model, [tensor(audio(own.audio))]);
    expect(found!.map(({ label }) => label)).toEqual(Object.keys(own.labels));
    for (const { label, score } of found!) expect(Math.abs(score - own.labels[label]!)).toBeLessThan(CLOSE);
  });

  test("logits and gradients equal those of transformers", () => {
    const logits = model.forward(weight("samples", [2, 330]));
    const plain = noGrad(() => logits);
    expect(errorOf(plain, answers[`${at}.logits`]!)).toBeLessThan(CLOSE);
    backward(sum(mul(logits, weight("cotangent", logits.shape))));
    const wanted = Object.keys(answers).filter((key) => key.startsWith(`${at}.gradient.`));
    const wrong = wanted.flatMap((key) => {
      const error = errorOf(gradientOf(model, key.slice(`${at}.gradient.`.length)), answers[key]!);
      return error < CLOSE ? [] : [`${key}: off by ${error}`];
    });
    expect(wrong).toEqual([]);
    expect(wanted.length).toBeGreaterThanOrEqual(3);
  });
});

test("some classifiers use all blocks, and some the last one", () => {
  const kinds = cases.map(({ config }) => config["use_weighted_layer_sum"]);
  expect(new Set(kinds)).toEqual(new Set([true, false]));
});

test("recordings of another rate, and several ones, are classified in their order", async () => {
  const model = await load("several", cases[0]!);
  const samples = tensor(audio(cases[0]!.audio));
  const found = await nn.classifyAudio(model, [samples, { samples, sampleRate: 8000 }]);
  const [alone] = await nn.classifyAudio(model, [samples], { sampleRate: 8000 });
  expect(found).toHaveLength(2);
  expect(found[1]).toEqual(alone!);
  expect(found[0]).not.toEqual(found[1]!);
});

test("other models are rejected", async () => {
  const model = await load("rejected", cases[0]!);
  expect(nn.transcribe(model, tensor([0, 0]))).rejects.toThrow("got a classifier; use nn.classifyAudio");
  await writeCtcModel(folder.file("ctc"), ctcCases[0]!);
  const { model: ctc } = await nn.loadModel<nn.Wav2Vec2>(folder.file("ctc"));
  expect(nn.classifyAudio(ctc, [tensor([0, 0])])).rejects.toThrow("expected a model with a classifier");
  const frames = { architectures: ["Wav2Vec2ForAudioFrameClassification"] };
  expect(load("frames", cases[0]!, frames)).rejects.toThrow("expected architectures to end with ForCTC or");
});
