/** Runs that fine-tune a small random model. */
import { beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { crossEntropy, flatten, io, nn, noGrad, type Tensor, tensor } from "../../../src/index.ts";
import { lossOf } from "../../../src/train/gradients.ts";
import { runSession } from "../../../src/train/run.ts";
import type { ExampleBatch } from "../../../src/train/tuning/batches.ts";
import { type TuningCheckpoint, TuningSession } from "../../../src/train/tuning/session.ts";
import { type TuningFlags, tuningSettings, withContext } from "../../../src/train/tuning/settings.ts";
import { writeModel } from "../../serve/folder.ts";
import { testFolder } from "../../support/folder.ts";

const folder = testFolder("tuning");
const [model, data] = [folder.file("model"), folder.file("chats.jsonl")];
const base: TuningFlags = {
  model,
  data: [data],
  lora: 4,
  context: 96,
  steps: 6,
  warmup: 1,
  batch: 3,
  learningRate: 2e-2,
  finalLearningRate: 2e-3,
  evaluateEvery: 0,
  saveEvery: 0,
  sampleTokens: 3,
};
const settingsOf = (own: TuningFlags = {}) => tuningSettings({ ...base, ...own });
const start = (own: TuningFlags = {}) => TuningSession.start(settingsOf(own));
const numbers = (x: Tensor): number[] => Array.from(x.dataSync(), Number);
const weightsOf = (session: TuningSession) => session.adapter.parameters().map(numbers);

beforeAll(async () => {
  await writeModel(model);
  const lines = Array.from({ length: 24 }, (_, at) => {
    const turn = (k: number) => [
      { role: "user", content: `${"the ".repeat((at % 3) + 1)}${k}` },
      { role: "assistant", content: `${k} is ${"f(x) ".repeat(at % 4)}.` },
    ];
    return JSON.stringify({ messages: at % 2 === 0 ? turn(at) : [...turn(at), ...turn(at + 1)] });
  });
  writeFileSync(data, lines.join("\n"));
});

/** A step, and the loss after it. */
async function losses(session: TuningSession, count: number): Promise<number[]> {
  const found: number[] = [];
  for (let step = 0; step < count; step++) found.push((await session.takeStep()).loss);
  return found;
}

test("the loss falls, held out too, and only the adapter changes", async () => {
  const session = await start({ steps: 20 });
  const weights = () =>
    Object.entries(session.model.stateDict())
      .filter(([name]) => !/\.(down|up)\.weight$/.test(name) || name.includes(".base."))
      .filter(([name]) => !name.includes(".feedForward."))
      .map(([name, x]) => [name, numbers(x)]);
  const before = weights();
  const { loss, heldOutLoss, checkpoint } = await runSession(session, folder.file("a", "checkpoints"), {
    on: () => undefined,
  });
  const first = (await losses(await start({ steps: 20 }), 1))[0];
  expect(loss).toBeLessThan(0.8 * first);
  expect(heldOutLoss).toBeLessThan(0.9 * first);
  expect(weights()).toEqual(before);
  expect(session.data.report.heldOut).toBe(1);

  const { model: other } = await nn.loadModel(model);
  nn.loadLora(other, folder.file("a", "adapter"));
  const tokens = tensor([[1, 2, 3, 4]], { dtype: "int32" });
  const logits = (own: nn.LanguageModel) => numbers(noGrad(() => own.eval().forward(tokens) as Tensor));
  expect(logits(other)).toEqual(logits(session.model));
  const saved = Object.keys(io.loadSafetensors(checkpoint!));
  // two layers, each with adapters of q and v, of two matrices each
  expect(saved.filter((name) => name.startsWith("model.")).length).toBe(8);
});

describe("the tokens that are trained on", () => {
  const batches = (session: TuningSession): ExampleBatch => session.data.train.next(3);

  test("the loss and its gradients match the assistant's tokens alone", async () => {
    const session = await start();
    const batch = batches(session);
    const own = lossOf(session.model, batch);
    const logits = session.model.forward(batch.x);
    const masked = new Int32Array(batch.x.size).fill(-100);
    for (const [at, from] of numbers(batch.from).entries()) masked[from] = numbers(batch.y)[at];
    const loss = crossEntropy(flatten(logits, 0, 1), tensor(masked), { dim: -1 });
    expect(own.item() as number).toBeCloseTo(loss.item() as number, 5);
    expect(batch.targets).toBe(masked.filter((token) => token >= 0).length);
    expect(batch.targets).toBeLessThan(batch.x.size / 2);
    const [x, y, width] = [numbers(batch.x), numbers(batch.y), batch.x.shape[1]];
    const inside = numbers(batch.from).flatMap((from, at) => ((from + 1) % width > 0 ? [[x[from + 1], y[at]]] : []));
    // the end of a padded row is a target, but not an input
    expect(inside.filter(([next, target]) => next !== target && next !== 0)).toEqual([]);
    expect(inside.filter(([next, target]) => next === target).length).toBeGreaterThan(batch.targets - 4);
    const gradients = (of: Tensor): number[] => {
      for (const own of session.adapter.parameters()) own.grad = null;
      of.backward();
      return session.adapter.parameters().flatMap((own) => numbers(own.grad!));
    };
    const [got, want] = [gradients(own), gradients(loss)];
    const largest = Math.max(...want.map(Math.abs));
    expect(Math.max(...got.map((value, at) => Math.abs(value - want[at])))).toBeLessThan(1e-5 * largest);
  });

  test("only hidden states that predict the assistant's tokens have nonzero gradients", async () => {
    const session = await start();
    const batch = batches(session);
    const states = session.model.hiddenStates(batch.x).detach();
    states.requiresGrad = true;
    const stand = { hiddenStates: () => states, logitsOf: (x: Tensor) => session.model.logitsOf(x) };
    lossOf(stand as never, batch).backward();
    const width = states.shape[2];
    const learned = new Set(numbers(batch.from));
    const grads = numbers(states.grad!);
    for (let at = 0; at < batch.x.size; at++) {
      const isZero = grads.slice(at * width, (at + 1) * width).every((value) => value === 0);
      expect([at, isZero]).toEqual([at, !learned.has(at)]);
    }
  });

  test("padding changes nothing: a chat alone has the loss that it has in a batch", async () => {
    const session = await start();
    const { train } = session.data;
    const state = train.getState();
    const all = train.next(3);
    train.setState(state);
    const each = [1, 2, 3].map(() => train.next(1));
    const sum = each.reduce((total, own) => total + own.targets * (lossOf(session.model, own).item() as number), 0);
    expect(lossOf(session.model, all).item() as number).toBeCloseTo(sum / all.targets, 5);
  });

  test("packed chats do not see each other: the loss matches each alone", async () => {
    const packed = await start({ packing: true });
    const batch = packed.data.train.next(2);
    expect(batch.segments!.some((row) => row.length > 2)).toBe(true);
    expect(batch.x.shape[1]).toBeLessThanOrEqual(base.context!);
    const alone = await start();
    let [sum, targets] = [0, 0];
    while (targets < batch.targets) {
      const own = alone.data.train.next(1);
      sum += own.targets * (lossOf(packed.model, own).item() as number);
      targets += own.targets;
    }
    expect(targets).toBe(batch.targets);
    expect(lossOf(packed.model, batch).item() as number).toBeCloseTo(sum / targets, 5);
  });
});

describe("a resumed run continues exactly", () => {
  test.each<[string, TuningFlags]>([
    ["with dropout", { loraDropout: 0.2 }],
    ["packed, in q4_0, with blocks computed again", { packing: true, quantize: "q4_0", checkpointActivations: true }],
  ])("a resumed run equals an uninterrupted one bit by bit: %s", async (name, own) => {
    const whole = await start(own);
    const want = await losses(whole, 6);
    const first = await start(own);
    const before = await losses(first, 3);
    const path = await first.save(folder.file(name, "checkpoints"));
    const checkpoint: TuningCheckpoint = await io.loadCheckpoint(path);
    const next = await TuningSession.resume(checkpoint, tuningSettings({ data: [data] }, checkpoint.extra!.tuning));
    expect([...before, ...(await losses(next, 3))]).toEqual(want);
    expect(weightsOf(next)).toEqual(weightsOf(whole));
  });

  test("resuming rejects other examples, and settings that it can't change", async () => {
    const session = await start();
    await losses(session, 1);
    const checkpoint: TuningCheckpoint = await io.loadCheckpoint(await session.save(folder.file("b", "checkpoints")));
    const { tuning } = checkpoint.extra!;
    expect(() => tuningSettings({ lora: 8 }, tuning)).toThrow("expected lora to be 4, as in the run, got 8");
    expect(() => tuningSettings({ quantize: "q8_0" }, tuning)).toThrow('expected quantize to be ""');
    const other = folder.file("other.jsonl");
    writeFileSync(other, '{"text": "the"}\n{"text": "is f"}');
    const resumed = TuningSession.resume(checkpoint, tuningSettings({ data: [other] }, tuning));
    await expect(resumed).rejects.toThrow("expected the examples with which the run started");
  });
});

describe("recomputed blocks change no result", () => {
  test("recomputed blocks have the same losses and weights", async () => {
    const [plain, again] = [await start(), await start({ checkpointActivations: true })];
    expect(await losses(again, 3)).toEqual(await losses(plain, 3));
    expect(weightsOf(again)).toEqual(weightsOf(plain));
  });
});

describe("the prompt of a sample is a message", () => {
  test("the prompt is a user's message in the model's chat template, with the start of an answer", async () => {
    const session = await start({ prompt: "the 7" });
    const { prompt } = await session.sample();
    expect(prompt).toBe("<|begin|><|start|>user\nthe 7<|end|>\n<|start|>assistant\n");
  });

  test("the default prompt is the first example up to its answer", async () => {
    const session = await start();
    const { tokens, isTarget } = session.data.first;
    const { prompt } = await session.sample();
    const asked = session.tokenizer.decode([...tokens.subarray(0, isTarget.indexOf(1))], { skipSpecialTokens: false });
    expect(prompt).toBe(asked);
    expect(prompt).toMatch(/^<\|begin\|><\|start\|>user\n(?:the )+\d+<\|end\|>\n<\|start\|>assistant\n$/);
  });

  test("the prompt is the text itself for a model without a template", async () => {
    const plain = folder.file("plain");
    await writeModel(plain);
    const path = join(plain, "tokenizer_config.json");
    const { chat_template: _, ...config } = await Bun.file(path).json();
    writeFileSync(path, JSON.stringify(config));
    const texts = folder.file("texts.jsonl");
    writeFileSync(texts, Array.from({ length: 24 }, (_, at) => JSON.stringify({ text: `the ${at}` })).join("\n"));
    const session = await start({ model: plain, data: [texts], prompt: "the 7" });
    expect((await session.sample()).prompt).toBe("<|begin|>the 7");
  });
});

test("accumulated passes equal one of all rows", async () => {
  const whole = await losses(await start({ batch: 4, weightDecay: 0 }), 3);
  const parts = await losses(await start({ batch: 2, accumulate: 2, weightDecay: 0 }), 3);
  for (const [at, loss] of whole.entries()) expect(parts[at]).toBeCloseTo(loss, 4);
});

test.each<[string, TuningFlags]>([
  ["expected --lora with a rank", { lora: 0 }],
  ["expected --data with files of chats", { data: [] }],
  ["expected loraDropout to be at least 0 and below 1, got 1", { loraDropout: 1 }],
  ["expected warmup to be below the number of steps, 3, got 4", { steps: 3, warmup: 4 }],
  ["layers can't be set for a pretrained model", { layers: 2 } as TuningFlags],
])("%s trains an adapter", (problem, own) => {
  expect(() => settingsOf(own)).toThrow(problem);
});

test("the default context is the model's, up to 1024", async () => {
  const { context: _, ...others } = base;
  const session = await TuningSession.start(tuningSettings(others));
  expect([session.model.contextLength, session.settings.context]).toEqual([256, 256]);
  expect(withContext(session.settings, 4096).context).toBe(256);
  expect(withContext({ ...session.settings, context: 0 }, 4096).context).toBe(1024);
});

test("contexts beyond the model's, targets that it does not have, and too long chats are rejected", async () => {
  await expect(start({ context: 1024 })).rejects.toThrow("expected context to be at most 256");
  await expect(start({ loraTargets: ["q_proj"] })).rejects.toThrow('got "q_proj"');
  await expect(start({ context: 4 })).rejects.toThrow("expected an answer within 4 tokens, got none in 24 lines");
  const { data: some } = await start({ context: 40 });
  expect(some.report.truncated).toBeGreaterThan(0);
  expect(some.train.next(4).x.shape[1]).toBeLessThanOrEqual(40);
});

test("the default number of steps sees each example three times", async () => {
  const { settings, data: found } = await start({ steps: 0 });
  expect(settings.steps).toBe(Math.ceil((3 * (found.report.examples - found.report.heldOut)) / 3));
});

test("the adapter is in the run's folder, in PEFT's format", async () => {
  const session = await start({ steps: 2 });
  await runSession(session, join(folder.path, "c", "checkpoints"), { on: () => undefined });
  const config = await Bun.file(folder.file("c", "adapter", "adapter_config.json")).json();
  expect(config).toMatchObject({ peft_type: "LORA", r: 4, target_modules: ["self_attn.q_proj", "self_attn.v_proj"] });
  expect(config.base_model_name_or_path).toBe(session.settings.model);
});
