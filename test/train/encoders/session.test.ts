/** Runs that train a small random encoder. */
import { beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { nn, noGrad, type Tensor, tensor } from "../../../src/index.ts";
import { loadCheckpoint } from "../../../src/io/checkpoint/load.ts";
import { apart, EpochBatches } from "../../../src/train/encoders/batches.ts";
import { readLabeled, readPairs } from "../../../src/train/encoders/records.ts";
import { type EncoderCheckpoint, EncoderSession } from "../../../src/train/encoders/session.ts";
import { type EncoderFlags, encoderSettings } from "../../../src/train/encoders/settings.ts";
import type { RunEvent } from "../../../src/train/events.ts";
import { runSession } from "../../../src/train/run.ts";
import { folderOf } from "../../nn/tasks/models.ts";
import { Random } from "../../ops/samples.ts";
import { testFolder } from "../../support/folder.ts";

const folder = testFolder("encoders");
const [model, pairs, labels] = ["model", "pairs.jsonl", "labels.jsonl"].map((name) => folder.file(name)) as [
  string,
  string,
  string,
];
const shared: EncoderFlags = {
  model,
  batch: 8,
  steps: 24,
  warmup: 2,
  evaluateEvery: 0,
  saveEvery: 0,
  learningRate: 3e-3,
  finalLearningRate: 1e-3,
  scale: 5,
};
const pairsOf = (own: EncoderFlags = {}) => encoderSettings({ ...shared, task: "embed", data: [pairs], ...own });
const labelsOf = (own: EncoderFlags = {}) => encoderSettings({ ...shared, task: "classify", data: [labels], ...own });
const numbers = (x: Tensor): number[] => Array.from(x.dataSync(), Number);
const run = async (session: EncoderSession, name: string) => {
  const events: RunEvent[] = [];
  const outcome = await runSession(session, folder.file(name, "checkpoints"), { on: (event) => events.push(event) });
  return { outcome, events };
};
const first = async (session: EncoderSession): Promise<number> => (await session.takeStep()).loss;
const words = ["red", "green", "blue", "cat", "dog", "house", "tree", "river", "sun", "moon"];

beforeAll(async () => {
  await folderOf(model, "classify", { isBare: true });
  const random = new Random(3);
  const word = () => words[random.integer(0, words.length - 1)];
  const lines = Array.from({ length: 60 }, (_, at) => {
    const [a, b] = [word(), word()];
    const pair = { anchor: `${a} ${b} ${at}`, positive: `the ${b} of ${a} ${at}` };
    return JSON.stringify(at % 3 === 0 ? { ...pair, negative: `no ${word()} here ${at}` } : pair);
  });
  writeFileSync(pairs, lines.join("\n"));
  const texts = Array.from({ length: 60 }, (_, at) => {
    const isAnimal = at % 2 === 0;
    const text = `the ${isAnimal ? "cat" : "house"} ${word()} ${at}`;
    return JSON.stringify(
      at % 5 === 0
        ? { text, pair: word(), label: isAnimal ? "animal" : "thing" }
        : { text, label: isAnimal ? "animal" : "thing" },
    );
  });
  writeFileSync(labels, texts.join("\n"));
});

describe("embeddings of texts can be trained", () => {
  test("the loss falls, and the saved folder has the trained model's vectors", async () => {
    const before = readFileSync(join(model, "model.safetensors"));
    const session = await EncoderSession.start(pairsOf());
    const { outcome, events } = await run(session, "embed");
    const start = await first(await EncoderSession.start(pairsOf()));
    expect(outcome.loss).toBeLessThan(0.8 * start);
    expect(outcome.heldOutLoss).toBeLessThan(start);
    expect(session.records.heldOut.length).toBe(6);
    const notes = events.flatMap((event) => (event.kind === "note" ? [event.text] : []));
    expect(notes).toEqual([expect.stringMatching(/^held out: \d+\.\d % of anchors are nearest to their positive/)]);
    expect(events.some((event) => event.kind === "step" && event.bitsPerByte !== undefined)).toBe(false);
    const { model: saved } = await nn.loadModel<nn.Encoder>(folder.file("embed", "model"));
    const texts = ["red cat", "the river of the moon"];
    const [got, want] = await Promise.all([saved, session.model].map((each) => nn.embed(each, texts)));
    expect(numbers(got)).toEqual(numbers(want));
    // sentence-transformers 6.2.0 reads these, and its vectors differ by at most 3e-7
    const modules: { type: string; path: string }[] = JSON.parse(
      readFileSync(folder.file("embed", "model", "modules.json"), "utf8"),
    );
    expect(modules.map(({ type, path }) => [type.split(".").at(-1), path])).toEqual([
      ["Transformer", ""],
      ["Pooling", "1_Pooling"],
      ["Normalize", "2_Normalize"],
    ]);
    expect(saved.sentence?.description.poolings).toEqual(["mean"]);
    expect(readFileSync(join(model, "model.safetensors")).equals(before)).toBe(true);
  });

  test("with LoRA only the adapter is trained; the folder has merged weights, the adapter those of PEFT", async () => {
    const own = { lora: 4, learningRate: 5e-2, finalLearningRate: 1e-2, steps: 30 };
    const session = await EncoderSession.start(pairsOf(own));
    const { outcome } = await run(session, "adapted");
    expect(outcome.loss).toBeLessThan(0.9 * (await first(await EncoderSession.start(pairsOf(own)))));
    const texts = ["red cat", "the river of the moon"];
    const wanted = numbers(await nn.embed(session.model, texts));
    const { model: merged } = await nn.loadModel<nn.Encoder>(folder.file("adapted", "model"));
    const { model: base } = await nn.loadModel<nn.Encoder>(model);
    const frozen = (of: nn.Encoder) => numbers(of.embeddings!.token.weight as Tensor);
    expect(frozen(merged)).toEqual(frozen(base));
    const plain = numbers(await nn.embed(base, texts));
    const adapter = nn.loadLora(base, folder.file("adapted", "adapter"));
    expect(adapter.layers.size).toBe(2 * base.blocks.length);
    for (const each of [merged, base]) {
      const got = numbers(await nn.embed(each, texts));
      expect(Math.max(...got.map((value, at) => Math.abs(value - wanted[at])))).toBeLessThan(1e-6);
      expect(Math.max(...got.map((value, at) => Math.abs(value - plain[at])))).toBeGreaterThan(1e-3);
    }
    const config = JSON.parse(readFileSync(folder.file("adapted", "adapter", "adapter_config.json"), "utf8"));
    expect([config.task_type, config.target_modules]).toEqual([
      "FEATURE_EXTRACTION",
      ["attention.self.query", "attention.self.value"],
    ]);
  });

  test("accumulated passes have the mean gradient of their batches", async () => {
    const session = await EncoderSession.start(
      pairsOf({ accumulate: 2, clip: 0, learningRate: 1e-9, finalLearningRate: 0 }),
    );
    const other = await EncoderSession.start(pairsOf({ clip: 0, learningRate: 1e-9, finalLearningRate: 0 }));
    const { loss } = await session.takeStep();
    const losses = [await first(other), await first(other)];
    expect(loss).toBeCloseTo((losses[0] + losses[1]) / 2, 4);
  });

  test("no two records of a batch share a text, and an epoch has each record once", () => {
    const records = Array.from({ length: 30 }, (_, at) => `${at % 3}`);
    const batches = apart(records, 4, (record) => [record]);
    for (const batch of batches) expect(new Set(batch).size).toBe(batch.length);
    expect(batches.flat().sort()).toEqual([...records].sort());
    const stream = new EpochBatches([...Array(12).keys()], 4, (x) => [`${x}`], 5n, "f");
    const epochs = Array.from({ length: 2 }, () => [stream.next(), stream.next(), stream.next()].flat());
    expect(epochs.map((epoch) => epoch.toSorted((a, b) => a - b))).toEqual(Array(2).fill([...Array(12).keys()]));
    expect(epochs[0]).not.toEqual(epochs[1]);
  });
});

describe("a classifier can be trained", () => {
  test.each([
    { steps: 48, learningRate: 4e-3 },
    { steps: 40, lora: 8, learningRate: 1e-2, finalLearningRate: 1e-2, loraTargets: ["query", "value", "up", "down"] },
  ])("a classifier learns labels with a new head: %j", async (own) => {
    const name = `labels-${"lora" in own}`;
    const session = await EncoderSession.start(labelsOf(own));
    const { outcome, events } = await run(session, name);
    expect(outcome.loss).toBeLessThan(0.5 * (await first(await EncoderSession.start(labelsOf(own)))));
    const notes = events.flatMap((event) => (event.kind === "note" ? [event.text] : []));
    expect(notes.at(-1)).toBe("held out: accuracy 100.0 %");
    const { model: saved } = await nn.loadModel<nn.Encoder>(folder.file(name, "model"));
    const found = await nn.classify(saved, ["the cat red 7", "the house blue 8"]);
    expect(found.map(([best]) => best.label)).toEqual(["animal", "thing"]);
    const tokens = tensor([[2, 5, 6, 7, 3]], { dtype: "int32" });
    const logits = (of: nn.Encoder) => numbers(noGrad(() => of.eval().forward(tokens) as Tensor));
    const [got, want] = [logits(saved), logits(session.model as nn.Encoder)];
    expect(Math.max(...got.map((value, at) => Math.abs(value - want[at])))).toBeLessThan(1e-5);
  });

  test("a head with the same labels continues from its weights and its order", async () => {
    const again = join(folder.file("labels-false"), "model");
    const session = await EncoderSession.start(labelsOf({ model: again }));
    expect(await first(session)).toBeLessThan(0.35);
  });

  test("training resumes with the bits of an uninterrupted run", async () => {
    const session = await EncoderSession.start(labelsOf({ steps: 6 }));
    const losses: number[] = [];
    for (let step = 0; step < 3; step++) losses.push(await first(session));
    await session.save(folder.file("resumed", "checkpoints"));
    const rest = [await first(session), await first(session)];
    const checkpoint: EncoderCheckpoint = await loadCheckpoint(folder.file("resumed", "checkpoints"));
    const resumed = await EncoderSession.resume(checkpoint, encoderSettings({}, checkpoint.extra!.encoder));
    expect([resumed.step, await first(resumed), await first(resumed)]).toEqual([3, ...rest]);
  });
});

test("invalid lines and settings are errors that name them", async () => {
  const lines = (text: string) => {
    const path = folder.file("bad.jsonl");
    writeFileSync(path, text);
    return [path];
  };
  expect(() => readPairs(lines('{"anchor": "a", "positive": ""}'))).toThrow("bad.jsonl:1: expected positive to be a");
  expect(() => readPairs(lines('{"anchor": "a", "negatve": "b"}'))).toThrow('got "negatve"');
  expect(() => readLabeled(lines('{"text": "a", "label": 1.5}'))).toThrow("expected label to be a string or a whole");
  expect(() => pairsOf({ context: 8 })).toThrow("context can't be set");
  expect(() => pairsOf({ batch: 1 })).toThrow("expected batch to be at least 2");
  expect(() => encoderSettings({ ...shared, task: "embed", data: [pairs], prompt: "a" } as never)).toThrow(
    "prompt can't",
  );
  const one = folder.file("one.jsonl");
  writeFileSync(one, '{"text": "a", "label": 1}\n{"text": "b", "label": 1}');
  expect(EncoderSession.start(labelsOf({ data: [one] }))).rejects.toThrow("at least two labels");
  expect(existsSync(folder.file("run"))).toBe(false);
});
