/** Compares wav2vec2 and HuBERT with `transformers`: scripts/fixtures/models/ctc.py. */
import { beforeAll, describe, expect, test } from "bun:test";
import { backward, mul, nn, noGrad, sum, tensor } from "../../../src/index.ts";
import { testFolder } from "../../support/folder.ts";
import { errorOf, weight } from "../models/weights.ts";
import { answers, type CtcCase, cases, gradientOf, writeCtcModel } from "./ctc_oracle.ts";
import { audio } from "./oracle.ts";

const CLOSE = 2e-5;
const folder = testFolder("ctc");
const named = cases.map((own, at) => [at, own.config.model_type, own] as const);

async function load(name: string, own: CtcCase, changes?: object): Promise<nn.Wav2Vec2> {
  await writeCtcModel(folder.file(name), own, changes);
  return (await nn.loadModel<nn.Wav2Vec2>(folder.file(name), { dtype: "float32" })).model;
}

describe.each(named)("speech models with CTC: model %d, %s", (at, _, own) => {
  let model: nn.Wav2Vec2;
  beforeAll(async () => {
    model = await load(`${at}`, own);
  });

  test("text and times of words equal those of transformers", async () => {
    const result = await nn.transcribe(model, tensor(audio(own.audio)), { wordTimestamps: true });
    expect(result.text).toBe(own.text);
    const cased = (word: string) => (own.tokenizer["do_lower_case"] ? word.toLowerCase() : word);
    const words = result.segments.flatMap(({ words = [] }) => words);
    expect(
      words.map(({ word, start, end }) => [word.trim(), ...[start, end].map((s) => Math.round(16_000 * s))]),
    ).toEqual(own.words.map(([word, ...times]) => [cased(word), ...times]));
    for (const segment of result.segments) expect(segment.words!.map(({ word }) => word).join("")).toBe(segment.text);
    for (const { probability } of words) expect(probability).toBeWithin(0, 1.000001);
  });

  if (!answers[`${at}.logits`]) return;

  test("logits and gradients equal those of transformers", () => {
    const logits = model.forward(weight("samples", [2, 330]));
    expect(
      errorOf(
        noGrad(() => logits),
        answers[`${at}.logits`],
      ),
    ).toBeLessThan(CLOSE);
    backward(sum(mul(logits, weight("cotangent", logits.shape))));
    const wanted = Object.keys(answers).filter((key) => key.startsWith(`${at}.gradient.`));
    expect(wanted).toHaveLength(4);
    const wrong = wanted.flatMap((key) => {
      const error = errorOf(gradientOf(model, key.slice(`${at}.gradient.`.length)), answers[key]);
      return error < CLOSE ? [] : [`${key}: off by ${error}`];
    });
    expect(wrong).toEqual([]);
  });
});

test("the names of weight norms in earlier versions are accepted", async () => {
  const older = (key: string) =>
    key
      .replace("parametrizations.weight.original0", "weight_g")
      .replace("parametrizations.weight.original1", "weight_v");
  expect(Object.keys(cases[0].shapes).map(older)).toContain("wav2vec2.encoder.pos_conv_embed.conv.weight_g");
  await writeCtcModel(folder.file("older"), cases[0], {}, older);
  const { model } = await nn.loadModel<nn.Wav2Vec2>(folder.file("older"), { dtype: "float32" });
  const logits = noGrad(() => model.forward(weight("samples", [2, 330])));
  // the weights are drawn by their present names, so they are those of the first model
  expect(errorOf(logits, answers["0.logits"])).toBeLessThan(CLOSE);
});

describe("CTC models have options for times and silence", () => {
  const own = cases[0];
  const recording = tensor(audio(own.audio));

  test("without times, the recording is one segment", async () => {
    const model = await load("whole", own);
    const { segments, duration } = await nn.transcribe(model, recording, { timestamps: false });
    expect(segments.map(({ start, end, text }) => [start, end, text])).toEqual([[0, duration, own.text]]);
  });

  test("silence of less than a frame has no segments", async () => {
    const model = await load("silence", own);
    expect(await nn.transcribe(model, tensor([0, 0, 0]))).toMatchObject({ text: "", segments: [] });
  });

  test("a list of recordings, and float16, are accepted", async () => {
    await load("half", own);
    const { model } = await nn.loadModel<nn.Wav2Vec2>(folder.file("half"), { dtype: "float16" });
    const found = await nn.transcribe(model, [recording, recording]);
    expect(found).toHaveLength(2);
    expect(found[1]).toEqual(found[0]);
    const logits = noGrad(() => model.forward(weight("samples", [2, 330])));
    expect(logits.dtype).toBe("float16");
    expect(errorOf(logits, answers["0.logits"])).toBeLessThan(0.02);
  });

  test.each([
    [{ language: "de" }, "language"],
    [{ task: "translate" as const }, "task"],
    [{ temperature: 0.5, initialPrompt: "x" }, "temperature, initialPrompt"],
  ])("the option %o is rejected", async (options, names) => {
    const model = await load("rejected", own);
    expect(nn.transcribe(model, recording, options)).rejects.toThrow(
      `${names} requires a Whisper model, got a CTC model`,
    );
  });

  test.each([
    [{ add_adapter: true }, "add_adapter is not a supported setting"],
    [{ adapter_attn_dim: 16 }, "adapter_attn_dim is not a supported setting"],
    [{ architectures: ["Wav2Vec2Model"] }, "expected architectures to end with ForCTC or ForSequenceClassification"],
    [{ feat_extract_norm: "batch" }, 'expected feat_extract_norm to be "group" or "layer"'],
    [{ unknown_key: 1 }, "unknown_key is not a supported setting"],
  ])("a config with %o is rejected", (changes, message) => {
    expect(load("config", own, changes)).rejects.toThrow(message);
  });
});
